"""Summaries of the longest real sessions, without a model: the tables in strategies.md.

    CONTEXTLAB_CORPUS=/path/to/logs python -m benchmarks.reviews.summaries
    python -m benchmarks.reviews.summaries /path/to/logs --sessions 20 --json figures.json

Reads every log below the folder, takes the sessions with most tokens (o200k, the log's own text
without summaries), and prints of each: tokens before, tokens of the extractive summary of all of
it in the default budget, sections that are there, names it states that the source lacks, how long
it took; what merging saves of the unmerged operations and of the whole summary; and how a summary
grows over ten cycles, each including the one before. Writes nothing of the logs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

from benchmarks.policies.recall import session_of
from compaction import tokens
from compaction.context.blocks import Block
from compaction.context.groups import Groups
from compaction.context.stubs import reference
from compaction.proposals.plan import Span, SummaryForm
from compaction.summaries.extract import extractive
from compaction.summaries.merge import command_line, merge
from compaction.summaries.model.supported import known_to, unsupported
from compaction.summaries.sections import presence
from compaction.summaries.summary import command, file_operation
from sessions.importers import NotALog, parse

BUDGET = 3_000
CYCLES = 10
UNBOUND = 1_000_000
"""A budget that nothing fills, so that only merging tells."""


def sessions(folder: Path, most: int) -> list[tuple[str, tuple[Block, ...], int]]:
    """Return (format and number of steps, blocks, tokens) of the largest sessions, each once."""
    found: dict[str, tuple[str, tuple[Block, ...], int]] = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        try:
            log = parse(path.read_bytes(), path.name)
        except (NotALog, ValueError, RecursionError):
            continue
        for one in log.sessions:
            session = session_of(one, tokens.count)
            if session is None:
                continue
            blocks = tuple(spoken(session.blocks))
            size = sum(block.tokens for block in blocks)
            name = one.external_id or path.name
            if name not in found or found[name][2] < size:
                found[name] = (f"{log.format}, {len(session.calls)} steps", blocks, size)
    return sorted(found.values(), key=lambda one: -one[2])[:most]


def spoken(blocks: tuple[Block, ...]) -> Iterator[Block]:
    """Return texts as blocks of an agent or a person, as they are stored."""
    for block in blocks:
        kind = block.kind
        if kind == "other" and block.type == "text" and block.role in ("assistant", "user"):
            kind = "assistant" if block.role == "assistant" else "user"
        yield replace(block, kind=kind)


def span(blocks: tuple[Block, ...], budget: int = BUDGET, previous: str | None = None,
         form: SummaryForm = "nine") -> Span:  # fmt: skip
    """Return everything as one span."""
    return Span(form, blocks, blocks, previous, budget)


def unmerged(blocks: tuple[Block, ...]) -> tuple[list[str], list[str]]:
    """Write an element for every file operation and every run of a command, in order."""
    uses = {block.tool_call: block for block in blocks if block.type == "tool_use"}
    files: list[str] = []
    runs: list[str] = []
    called: set[str | None] = set()
    for block in blocks:
        done = block.file is not None and block.file.action != "list" and not block.error
        if done and block.file is not None and block.tool_call not in called:
            called.add(block.tool_call)
            files.append(file_operation(block.file.path, block.file.action, reference(block)))
        use = uses.get(block.tool_call)
        if block.type == "tool_result" and use is not None and use.file is None:
            line = command_line(use)
            if line is not None:
                runs.append(command(line[:120], "failed" if block.error else "succeeded"))
    return files, runs


def saved(blocks: tuple[Block, ...]) -> tuple[int, int, int]:
    """Return tokens of unmerged and merged operations, and of the rest of an unlimited summary."""
    made = merge(blocks)
    before = [*unmerged(blocks)[0], *unmerged(blocks)[1]]
    after = [file_operation(one.path, one.action, one.ref) for one in made.files]
    after += [command(one.text[:120], one.status, one.times) for one in made.commands]
    whole = tokens.count(extractive(span(blocks, UNBOUND)))
    was, now = tokens.count("\n".join(before)), tokens.count("\n".join(after))
    return was, now, max(whole - now, 0)


def grown(blocks: tuple[Block, ...]) -> list[int]:
    """Return the tokens of a summary after each of ten cycles, cut between groups."""
    groups = Groups()
    for block in blocks:
        groups.add(block)
    cuts = [groups.cut_at(blocks[len(blocks) * n // CYCLES].position) for n in range(1, CYCLES)]
    sizes: list[int] = []
    previous: str | None = None
    start = 0
    for end in [*cuts, blocks[-1].position + 1]:
        part = tuple(block for block in blocks if start <= block.position < end)
        previous = extractive(span(part, previous=previous))
        sizes.append(tokens.count(previous))
        start = end
    return sizes


@dataclass(frozen=True)
class Row:
    """Figures of one session; sizes in tokens, `operations` and `whole` unmerged and merged."""

    session: str
    before: int
    after: int
    sections: int
    with_text: int
    unsupported: int
    ms: int
    operations: tuple[int, int]
    whole: tuple[int, int]
    cycles: list[int]

    def __str__(self) -> str:
        return (
            f"{self.session} | {self.before:,} | {self.after:,} | {self.sections}/9 | "
            f"{self.with_text} | {self.unsupported} | {self.ms} | {won(self.operations):.0%} | "
            f"{won(self.whole):.0%} | {max(self.cycles) / max(self.after, 1):.2f}"
        )


def won(sizes: tuple[int, int]) -> float:
    """Share that merging saves."""
    return 1 - sizes[1] / sizes[0] if sizes[0] else 0.0


def rows(folder: Path, most: int) -> Iterator[Row]:
    """Yield a row of figures per session."""
    for name, blocks, size in sessions(folder, most):
        one = span(blocks)
        began = time.perf_counter()
        text = extractive(one)
        seconds = time.perf_counter() - began
        states = [part.state for part in presence(text, "nine")]
        was, now, rest = saved(blocks)
        yield Row(
            name,
            size,
            tokens.count(text),
            sum(state != "missing" for state in states),
            states.count("present"),
            len(unsupported(text, known_to(one))),
            round(1_000 * seconds),
            (was, now),
            (was + rest, now + rest),
            grown(blocks),
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", default=os.environ.get("CONTEXTLAB_CORPUS"))
    parser.add_argument("--sessions", type=int, default=12)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if not given.folder:
        sys.exit("Name a folder of logs, or set CONTEXTLAB_CORPUS.")
    print("session | tokens | summary | sections | with text | unsupported | ms | "
          "merging saves of operations, of the summary | most of 10 cycles")  # fmt: skip
    made = []
    for row in rows(Path(given.folder), given.sessions):
        made.append(row)
        print(row)
    busy = [row for row in made if row.operations[0]]
    print(f"median saved by merging: {median(won(row.operations) for row in busy):.1%} of "
          f"operations, {median(won(row.whole) for row in busy):.1%} of a summary without budget; "
          f"growth {median(max(row.cycles) / row.after for row in made):.2f}, "
          f"{max(max(row.cycles) / row.after for row in made):.2f} at most")  # fmt: skip
    if given.json:
        given.json.write_text(json.dumps([asdict(row) for row in made], indent=1))


if __name__ == "__main__":
    main()
