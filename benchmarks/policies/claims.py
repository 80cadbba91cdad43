"""Every number that our sources publish, and ours beside it: reports/claims.md.

    python -m benchmarks.policies.claims [PATH…] [--out FILE]

Paths are logs or folders of logs, of whatever format: of their sessions of 30 model calls or more
and over 30,000 tokens some lines take the mean (some seconds a session, two processes). Without
paths those lines say so; the others take ten seconds. Writes figures only, and nothing of the logs.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextlab.settings")

import django

django.setup()

from benchmarks.figures import commit_and_date  # noqa: E402
from benchmarks.memory.boards import boards  # noqa: E402
from benchmarks.policies.claims_measured import Claim, Row, said  # noqa: E402
from benchmarks.policies.claims_published import CLAIMS, DESIGN, MODEL, THEIRS, UNLOGGED  # noqa: E402
from benchmarks.policies.plain import window  # noqa: E402
from benchmarks.policies.presets import sessions_in, sources_of  # noqa: E402
from benchmarks.reviews.summaries import saved, spoken, won  # noqa: E402
from compaction import tokens  # noqa: E402
from compaction.board.board import BoardSize, render  # noqa: E402
from compaction.policies.presets import PRESETS  # noqa: E402
from compaction.simulation.recording import Recording  # noqa: E402
from compaction.simulation.run import simulate_cache  # noqa: E402
from compaction.simulation.simulate import Run  # noqa: E402
from sessions.actions.lab.simulated_figures import figures_of  # noqa: E402

MANAGED = ("balanced", "offload-first", "recitation", "seven-principles")
REACHED, MISSED, SESSIONS = "reached", "missed by", "needs recorded sessions"
VERDICTS = (REACHED, MISSED, DESIGN, MODEL, UNLOGGED, THEIRS, SESSIONS)
"""How a verdict begins."""
Line = tuple[str, Claim, str, str]
"""Source, claim, our figure, verdict."""


def row_of(source: tuple[str, Path]) -> Row:
    """The figures of one recorded session."""
    found = {name: one for name, _, _, one in sessions_in(source[1])}
    return row_of_recording(found[source[0]])


def row_of_recording(one: Recording) -> Row:
    """The figures of a recording; shares are of what was recorded."""
    value, blocks = one.value, one.value.blocks
    content = sum(block.tokens for block in blocks)
    board = render(list(boards(value))[-1].values(), BoardSize(), one.counter())
    newest = window(10)(value, one.counter())
    read = simulate_cache(newest, value.calls, one.terms).cache_read_share
    was, now, rest = saved(tuple(spoken(blocks)))
    estimated = tokens.estimate(block.text for block in blocks)
    row: Row = {
        "steps": len(value.calls),
        "tokens after 15 steps": sum(block.tokens for block in blocks if block.born <= 16),
        "error of the estimate": abs(estimated / content - 1),
        "saved by the board": 1 - board.tokens / content,
        "saved by merging": won((was + rest, now + rest)),
    }
    for name in MANAGED:
        simulated = figures_of(one, PRESETS[name])
        figures, cost = simulated.figures, simulated.figures["cost_microusd"]
        row[f"{name}, cost"] = cost / one.lived_cost if cost and one.lived_cost else None
        row[f"{name}, tokens"] = figures["tokens_sent"] / figures["tokens_sent_recorded"]
        share = figures["cache_read_share"]
        row[f"{name}, read"] = share - read if share is not None and read is not None else None
        row[f"{name}, results"] = 1 - results(simulated.run) / max(results(one.lived), 1)
    return row


def results(run: Run) -> int:
    """Tokens of tool results that a run sends."""
    end = len(run.steps) + 1
    return sum(
        one.block.tokens * max((one.to_step or end) - one.from_step, 0)
        for one in run.entries
        if one.block.type == "tool_result"
    )


def recorded(paths: Sequence[Path]) -> list[Row]:
    """A row for each long session below the paths."""
    if not paths:
        return []
    with ProcessPoolExecutor(2) as pool:
        return list(pool.map(row_of, sources_of(paths, long=True)))


def verdict(claim: Claim, value: float | None) -> str:
    """Say whether a figure of ours reaches a published one; begins with one of VERDICTS."""
    if claim.goal is None:
        return claim.why
    if value is None:
        return SESSIONS
    low, high = claim.goal
    if low - 1e-9 <= value <= high + 1e-9:
        return REACHED
    if claim.why:
        return f"{DESIGN}: {claim.why}"
    short = said(low - value if value < low else value - high, claim.unit)
    return f"{MISSED} {short.replace('%', 'points')}"


def judged(rows: Sequence[Row]) -> Iterator[Line]:
    """Judge every claim."""
    for source, claims in CLAIMS.items():
        for claim in claims:
            value = claim.ours.value(rows)
            ours = "–" if value is None else said(value, claim.unit)
            yield source, claim, ours, verdict(claim, value)


def page(lines: Sequence[Line], sessions: int) -> Iterator[str]:
    """Return the paragraphs and rows of benchmarks/policies/reports/claims.md."""
    starts = (next(one for one in VERDICTS if found.startswith(one)) for *_, found in lines)
    counts = Counter(starts)
    yield HEAD.format(
        origin=commit_and_date(),
        sessions=said(sessions, "recorded sessions"),
        counts=", ".join(
            f"{name.removesuffix(' by')} {counts[name]}" for name in VERDICTS if counts[name]
        ),
        all=len(lines),
        unlisted=sum(not is_listed(line) for line in lines),
    )
    for source in CLAIMS:
        yield f"\n## {source}\n"
        mine = [line for line in lines if line[0] == source and is_listed(line)]
        for name in VERDICTS:
            if open_ := [line for line in mine if line[2] == "–" and line[3].startswith(name)]:
                yield f"{name.capitalize()}: {'; '.join(_open(line) for line in open_)}.\n"
        yield "| claim | published | ours |\n" + "| --- " * 3 + "|"
        for line in mine:
            if line[2] != "–":
                yield "| " + " | ".join(cell.replace("|", "\\|") for cell in _row(line)) + " |"


def is_listed(line: Line) -> bool:
    """Return whether the page has a line: not those that our code reaches by itself, and not what
    a source says of its own use."""
    _, claim, _, found = line
    if found == THEIRS:
        return False
    return found != REACHED or claim.ours.how.startswith(("logs", "["))


def _open(line: Line) -> str:
    _, claim, _, found = line
    why = found.partition(": ")[2]
    return f"{claim.claim} {claim.published}".strip() + (f" ({why})" if why else "")


def _row(line: Line) -> tuple[str, str, str]:
    _, claim, value, found = line
    if cited := re.match(r"\[.+\](\(.+\)): ", claim.ours.how):
        value = f"[{value}]{cited[1]}"
    elif claim.ours.how.startswith("logs"):
        value += " (logs)"
    ending = "" if found == REACHED else f", {found}"
    ending = re.sub(f", {MISSED} .+", ", missed", ending)
    return claim.claim, claim.published, value + ending


HEAD = """# Published numbers, and ours

Written by `make claims LOGS=folder` ({origin}), with {sessions}. *Logs*: means over sessions of 30
model calls or more and over 30,000 tokens, simulated, as shares of the session as recorded; a
linked number is from that page; all others are from our code. The claims are in the
[sources](../../../docs/sources.md). Of {all}: {counts}; `make claims` also prints the
{unlisted} that our code reaches or that are their own use. Try what needs a model with
[`contextlab probe`](../../../docs/lab/lab.md#asking-a-model)."""


def main() -> None:
    """Print a line for each claim, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = recorded(given.paths)
    lines = list(judged(rows))
    if given.out:
        given.out.write_text("\n".join(page(lines, len(rows))) + "\n")
    for source, claim, ours, found in lines:
        sys.stdout.write(f"{source}: {claim.claim}: {claim.published}; ours {ours}: {found}\n")


if __name__ == "__main__":
    main()
