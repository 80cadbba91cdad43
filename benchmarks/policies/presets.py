"""Every preset over real logs: the tables in docs/policies/presets.md.

    python -m benchmarks.policies.presets PATH… [--json FILE] [--out docs/policies/presets.md]

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

from compaction.policies.policy import Policy  # noqa: E402
from compaction.policies.presets import PRESETS  # noqa: E402
from compaction.prices.prices import micros  # noqa: E402
from compaction.simulation.recording import Recording  # noqa: E402
from sessions import importers  # noqa: E402
from sessions.actions.imports.imports import FILE_LIMIT, files_under  # noqa: E402
from sessions.actions.lab.simulated_figures import figures_of  # noqa: E402
from sessions.actions.lab.unstored import recording_of_log  # noqa: E402

STEPS, TOKENS = 30, 30_000
WORST = 5
OURS = "balanced"
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
    steps = sum(row["steps"] for row in rows)
    content = sum(row["tokens_sent"] - row["hidden"] for row in rows)
    read = [row for row in rows if row["cache_read_share"] is not None]
    prompts = sum(row["tokens_sent"] for row in read)
    shares = {
        state: sum(row[state] * row["needs"] for row in rows) / max(needs, 1)
        for state in ("in_context", "named", "retrievable", "lost")
    }
    return {
        "sessions": len(rows),
        "priced": len(priced),
        "tokens_sent": _share(rows, "tokens_sent", "tokens_sent_recorded"),
        "content_sent": content / sum(row["everything"] for row in rows),
        "cost": _share(priced, "cost_microusd", "cost_recorded_microusd") if priced else None,
        "charged": _share(priced, "charged_microusd", "cost_recorded_microusd") if priced else None,
        "edits_feasible": sum(row["edits_feasible"] * row["edits"] for row in rows)
        / max(sum(row["edits"] for row in rows), 1),
        "prompts": _share(priced, "prompt_microusd", "prompt_recorded_microusd")
        if priced
        else None,
        "at_most_2_percent_costlier": sum(one <= 1.02 for one in ratios),
        "costliest": ratios[-1] if ratios else None,
        "cache_read_share": sum(row["cache_read_share"] * row["tokens_sent"] for row in read)
        / prompts
        if prompts
        else None,
        **shares,
        "needs": needs,
        "compactions": sum(row["compactions"] for row in rows),
        "read_back_tokens": sum(row["read_back_tokens"] for row in rows),
        "ms_per_step": sum(row["ms_per_step"] * row["steps"] for row in rows) / steps,
    }


def _share(rows: Sequence[Row], part: str, whole: str) -> float:
    return float(sum(row[part] for row in rows) / sum(row[whole] for row in rows))


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Format a table with a line per policy."""
    yield (
        "| preset | prompt tokens | content tokens | cost | with read-backs | prompts' cost "
        "| costlier than 2 % | read from cache | in context | named | retrievable | lost "
        "| edits feasible | compactions | read back | ms a step |"
    )
    yield "|" + " --- |" * 16
    for name in dict.fromkeys(row["policy"] for row in rows):
        one = summed(row for row in rows if row["policy"] == name)
        dear = f"{one['priced'] - one['at_most_2_percent_costlier']} of {one['priced']}"
        yield (
            f"| {name} | {_cell(one['tokens_sent'])} | {_cell(one['content_sent'])} "
            f"| {_cell(one['cost'])} | {_cell(one['charged'])} | {_cell(one['prompts'])} "
            f"| {dear if one['priced'] else '–'} "
            f"| {_cell(one['cache_read_share'])} "
            f"| {one['in_context']:.3f} | {one['named']:.3f} | {one['retrievable']:.3f} "
            f"| {one['lost']:.3f} | {one['edits_feasible']:.3f} | {one['compactions']} "
            f"| {one['read_back_tokens'] // 1000}K | {one['ms_per_step']:.2f} |"
        )


def _cell(share: float | None) -> str:
    return "–" if share is None else f"{share:.3f}"


def costliest(rows: Sequence[Row]) -> Iterator[str]:
    """Return the sessions in which `balanced` saves least, and why."""
    mine = [row for row in rows if row["policy"] == OURS and row["cost_recorded_microusd"]]
    mine.sort(key=lambda row: row["cost_microusd"] / row["cost_recorded_microusd"], reverse=True)
    yield "| session | format | model | calls | cost | output | hidden | edits | why |"
    yield "|" + " --- |" * 9
    for row in mine[:WORST]:
        ratio = row["cost_microusd"] / row["cost_recorded_microusd"]
        yield (
            f"| {row['session']} | {row['format']} | {row['model']} | {row['steps']} | {ratio:.3f} "
            f"| {row['output_share']:.0%} | {row['hidden'] / row['tokens_sent_recorded']:.0%} "
            f"| {row['revisions']} | {_why(row)} |"
        )


def _why(row: Row) -> str:
    most = row["costliest"]
    if not row["revisions"]:
        return "nothing ripe paid before the session ended"
    if most is None:
        return "only new results were shortened; nothing else paid before the session ended"
    left = row["steps"] - most["step"]
    share = most["cost_microusd"] / row["cost_recorded_microusd"]
    return (
        f"at step {most['step']} {most['rewritten']:,} tokens were written again "
        f"({share:.1%} of the cost), and {left} calls were left"
    )


def document(rows: Sequence[Row]) -> str:
    """Build the page docs/policies/presets.md."""
    formats = sorted({row["format"] for row in rows})
    parts = [HEAD.format(sessions=len({row["session"] for row in rows})), *table(rows)]
    for form in formats:
        some = [row for row in rows if row["format"] == form]
        count = len({row["session"] for row in some})
        parts += ["", f"## {form} ({count} session{'' if count == 1 else 's'})", "", *table(some)]
    parts += ["", "## Least savings of balanced", "", *costliest(rows)]
    return "\n".join(parts).rstrip() + "\n"


HEAD = """# Presets on real sessions

Written by `benchmarks/policies/presets.py` over {sessions} recorded sessions of 30 model calls or
more and over 30,000 tokens. Everything is simulated: the agent is assumed to behave as recorded.
The settings of `balanced` were chosen on some of them: [choosing](choosing.md) has the figures of
sessions that they were not chosen on, short ones included.

- **prompt tokens**: sent over whole sessions, hidden system prompt and tool schemas included,
  against the sessions as recorded, with their logged compactions.
- **content tokens**: the same without the hidden prompt, against everything that arrived, never
  compacted: what a policy can change.
- **cost**: dollars with output and all cache writes, against the sessions as recorded, at the
  prices of each session's model; sessions without a price are left out. The TTL is the policy's
  `ttl` (`balanced` and `balanced-lean`: mixed; others and the sessions: as recorded).
- **prompts' cost**: the same without output, which no policy changes.
- **in context … lost**: [needed-later recall](../sources.md#needed-later-recall) over all needs.
- **edits feasible**: edits whose old text is in the context.
- **with read-backs**: the cost if each step whose needs are not in context takes one more call.
- **read back**: tokens to read again for facts that are only retrievable.
- **ms a step**: CPU time of the fold.

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
