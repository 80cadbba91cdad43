"""Every preset over real logs: the tables in reports/presets.md.

    python -m benchmarks.policies.presets PATH… [--json FILE] [--out FILE]

Reads every log below the paths, of whatever format, takes sessions of 30 model calls or more and
over 30,000 tokens (one that several logs hold once, from the longest), and puts each under every
preset: the figures are those of `contextlab simulate`. Two processes. Writes
figures only, and nothing of the logs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextlab.settings")

import django

django.setup()

from benchmarks.figures import commit_and_date  # noqa: E402
from compaction.policies.policy import Policy  # noqa: E402
from compaction.policies.presets import PRESETS  # noqa: E402
from compaction.prices.prices import micros  # noqa: E402
from compaction.simulation.recording import Recording  # noqa: E402
from sessions import importers  # noqa: E402
from sessions.actions.imports.imports import files_under  # noqa: E402
from sessions.actions.imports.opened import FILE_LIMIT  # noqa: E402
from sessions.actions.lab.simulated_figures import figures_of  # noqa: E402
from sessions.actions.lab.unstored import recording_of_log  # noqa: E402

STEPS, TOKENS = 30, 30_000
FEWEST = 10
"""Sessions of a format with lines of its own."""
WORST = 3
OURS = "balanced"
TOP = (
    "| preset | content tokens | cost | with read-backs | over 2 % costlier | in context | lost "
    "| edits feasible |\n|" + " --- |" * 8
)
Row = dict[str, Any]


def sessions_in(path: Path) -> list[tuple[str, int, str, Recording]]:
    """Return id, length, format and recording of the sessions in a file that made calls."""
    if path.stat().st_size > FILE_LIMIT:
        return []
    try:
        log = importers.parse(path.read_bytes(), path.name)
    except importers.NotALog:
        return []
    found = []
    for session in log.sessions:
        recording = recording_of_log(session)
        if recording is not None and recording.value.calls:
            found.append((session.external_id, len(session.records), log.format, recording))
    return found


def is_long(recording: Recording) -> bool:
    """Whether a session is long enough for the tables."""
    tokens = sum(block.tokens for block in recording.value.blocks)
    return len(recording.value.calls) >= STEPS and tokens > TOKENS


def lengths(path: Path) -> list[tuple[str, int, Path, bool]]:
    """Return the sessions without recordings, which stay in the process that reads them."""
    return [(name, size, path, is_long(one)) for name, size, _, one in sessions_in(path)]


def sources_of(paths: Sequence[Path], *, long: bool = False) -> list[tuple[str, Path]]:
    """Return name and file of each session, of several logs of one the longest."""
    longest: dict[str, tuple[int, Path, bool]] = {}
    with ProcessPoolExecutor(2) as pool:
        for rows in pool.map(lengths, files_under(paths), chunksize=8):
            for name, length, path, is_one in rows:
                if length > longest.get(name, (0, path, False))[0]:
                    longest[name] = length, path, is_one
    return [(name, path) for name, (_, path, one) in sorted(longest.items()) if one or not long]


def figures(source: tuple[str, Path]) -> list[Row]:
    """Return the figures of one session under every policy."""
    found = {name: (form, read) for name, _, form, read in sessions_in(source[1])}
    form, recording = found[source[0]]
    return [_row(name, policy, form, recording) for name, policy in PRESETS.items()]


def _row(name: str, policy: Policy, form: str, recording: Recording) -> Row:
    value, price = recording.value, recording.terms.price
    steps = len(value.calls)
    cost = recording.lived_cost
    output = sum(use.output for use in recording.lived_uses)
    simulated = figures_of(recording, policy)
    written = micros(output * price.output) if price else None
    return {
        "policy": name,
        "format": form,
        "model": value.model,
        "hidden": value.hidden * steps,
        "everything": sum(
            block.tokens * (steps - block.born + 1) for block in value.blocks if block.born <= steps
        ),
        "output_share": written / cost if written is not None and cost else None,
        "prompt_microusd": simulated.cache.prompt_cost,
        "prompt_recorded_microusd": cost - written if cost and written is not None else None,
        **simulated.figures,
        "charged_microusd": (simulated.figures["cost_microusd"] or 0)
        + (simulated.figures["read_backs_microusd"] or 0),
    }


def gathered(paths: Sequence[Path]) -> list[Row]:
    """Return all rows, session by session."""
    sources = sources_of(paths, long=True)
    with ProcessPoolExecutor(2) as pool:
        answer = pool.map(figures, sources)
        return [{**row, "session": number} for number, rows in enumerate(answer, 1) for row in rows]


def summed(rows: Iterable[Row]) -> Row:
    """Sum the figures of one policy; costs over sessions with a price only."""
    rows = list(rows)
    priced = [row for row in rows if row["cost_microusd"] and row["cost_recorded_microusd"]]
    ratios = sorted(row["cost_microusd"] / row["cost_recorded_microusd"] for row in priced)
    needs = sum(row["needs"] for row in rows)
    content = sum(row["tokens_sent"] - row["hidden"] for row in rows)
    shares = {
        state: sum(row[state] * row["needs"] for row in rows) / max(needs, 1)
        for state in ("in_context", "named", "retrievable", "lost")
    }
    return {
        "sessions": len(rows),
        "priced": len(priced),
        "content_sent": content / sum(row["everything"] for row in rows),
        "cost": _share(priced, "cost_microusd", "cost_recorded_microusd") if priced else None,
        "charged": _share(priced, "charged_microusd", "cost_recorded_microusd") if priced else None,
        "edits_feasible": sum(row["edits_feasible"] * row["edits"] for row in rows)
        / max(sum(row["edits"] for row in rows), 1),
        "at_most_2_percent_costlier": sum(one <= 1.02 for one in ratios),
        "costliest": ratios[-1] if ratios else None,
        **shares,
        "needs": needs,
    }


def _share(rows: Sequence[Row], part: str, whole: str) -> float:
    return float(sum(row[part] for row in rows) / sum(row[whole] for row in rows))


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Format a table with a line per policy."""
    yield TOP
    for name in dict.fromkeys(row["policy"] for row in rows):
        yield line(name, [row for row in rows if row["policy"] == name])


def by_format(rows: Sequence[Row]) -> Iterator[str]:
    """Format a table of `balanced` with a line per format that has sessions enough."""
    yield TOP.replace("preset", "format", 1)
    for form in sorted({row["format"] for row in rows}):
        some = [row for row in rows if row["format"] == form]
        count = len({row["session"] for row in some})
        if count >= FEWEST:
            yield line(f"{form} ({count})", [row for row in some if row["policy"] == OURS])


def line(title: str, rows: Sequence[Row]) -> str:
    """Format the line of a policy."""
    one = summed(rows)
    dear = f"{one['priced'] - one['at_most_2_percent_costlier']} of {one['priced']}"
    return (
        f"| {title} | {_cell(one['content_sent'])} "
        f"| {_cell(one['cost'])} | {_cell(one['charged'])} "
        f"| {dear if one['priced'] else '–'} "
        f"| {one['in_context']:.3f} | {one['lost']:.3f} | {one['edits_feasible']:.3f} |"
    )


def _cell(share: float | None) -> str:
    return "–" if share is None else f"{share:.3f}"


def costliest(rows: Sequence[Row]) -> Iterator[str]:
    """Return the sessions in which `balanced` saves least, and why."""
    mine = [row for row in rows if row["policy"] == OURS and row["cost_recorded_microusd"]]
    mine.sort(key=lambda row: row["cost_microusd"] / row["cost_recorded_microusd"], reverse=True)
    yield "| model | calls | cost | why |"
    yield "|" + " --- |" * 4
    for row in mine[:WORST]:
        ratio = row["cost_microusd"] / row["cost_recorded_microusd"]
        yield f"| {row['model']} | {row['steps']} | {ratio:.3f} | {_why(row)} |"


def _why(row: Row) -> str:
    most = row["costliest"]
    if not row["revisions"]:
        return "nothing ripe paid before the end"
    if most is None:
        return "nothing but shorter results paid before the end"
    left = row["steps"] - most["step"]
    share = most["cost_microusd"] / row["cost_recorded_microusd"]
    return (
        f"{most['rewritten']:,} tokens written again ({share:.1%} of the cost), {left} calls left"
    )


def document(rows: Sequence[Row]) -> str:
    """Build the page benchmarks/policies/reports/presets.md."""
    sessions = len({row["session"] for row in rows})
    parts = [HEAD.format(origin=commit_and_date(), sessions=sessions), *table(rows)]
    parts += ["", "## `balanced` by format", "", *by_format(rows)]
    parts += ["", "## Least savings of `balanced`", "", *costliest(rows)]
    return "\n".join(parts).rstrip() + "\n"


HEAD = """# Presets on real sessions

Written by `benchmarks/policies/presets.py` ({origin}) over {sessions} recorded sessions of 30 model
calls or more and over 30,000 tokens, simulated: the agent is assumed to behave as recorded.
`balanced` was chosen on some of them; [choosing](choosing.md) has others.
Columns: [sources](../../../docs/sources.md#needed-later-recall);
*content tokens* are without the hidden prompt, against everything that arrived.
Costs are against the sessions as recorded.

## All formats
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    parser.add_argument("--json", type=Path, help="write all rows here, by session and policy")
    parser.add_argument("--out", type=Path, help="write the tables here, as Markdown")
    given = parser.parse_args()
    rows = gathered(given.paths)
    if not rows:
        sys.stderr.write("No session below these paths is long enough.\n")
        return 2
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")
    if given.out:
        given.out.write_text(document(rows))
    sys.stdout.write("\n".join(table(rows)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
