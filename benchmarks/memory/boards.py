"""Boards of real sessions: how large they are, and what of them is kept across compactions.

    python -m benchmarks.memory.boards /path/to/logs     # or CONTEXTLAB_CORPUS

Of each session of 30 steps or more and over 30,000 tokens the board is gathered block by block. At
each compaction of three presets (`seven-principles`, `offload-first`, `sliding-window`; extractive
summaries, a window of 60,000 tokens so that short sessions compact, too) an entry is kept where
the next context contains its first line, without the board and with it. Writes nothing of the
logs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.policies.recall import long_sessions
from compaction import tokens
from compaction.board.board import BoardNote, BoardSize, put, render
from compaction.board.notes import Gatherer
from compaction.context.edits import context_at
from compaction.context.session import Session
from compaction.policies.presets import PRESETS
from compaction.simulation.simulate import simulate
from compaction.summaries.lines import IndexedLines

NAMES = ("seven-principles", "offload-first", "sliding-window")
WINDOW = 60_000

Count = Callable[[str], int]


def boards(session: Session) -> Iterator[dict[str, BoardNote]]:
    """Return the board before each step."""
    gatherer, board, step = Gatherer("agent"), dict[str, BoardNote](), 0
    for block in session.blocks:
        while step < block.born:
            step += 1
            yield dict(board)
        for entry in gatherer.add(block):
            put(board, entry)
    yield dict(board)


def kept(board: dict[str, BoardNote], texts: list[str]) -> int:
    """Count the entries whose first line a text mentions."""
    lines = IndexedLines("\n".join(texts)[:2_000_000])
    return sum(lines.say(_first(entry)) for entry in board.values())


def _first(entry: BoardNote) -> str:
    """Return the start of an answer that quotes its question; else the first line with a word."""
    listed = [line for line in entry.text.splitlines() if line.strip()]
    return (listed or [""])[0].removeprefix("Asked: ")[:200]


def compactions(session: Session, name: str, count: Count) -> Iterator[tuple[int, list[str]]]:
    """Return the steps at which a preset summarized, and the texts of the following context."""
    policy = PRESETS[name]
    run = simulate(replace(session, window=WINDOW), policy, count)
    for revision in run.revisions:
        made = [edit.replacement for edit in revision.edits]
        if any(block is not None and block.kind == "summary" for block in made):
            after = context_at(run.entries, revision.step)
            yield revision.step, [block.text for block in after.values()]


def main() -> int:
    """Print both tables."""
    corpus = os.environ.get("CONTEXTLAB_CORPUS")
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path(corpus) if corpus else None)
    folder = parser.parse_args().folder
    if folder is None:
        parser.error("which folder of logs?")
    sizes: list[int] = []
    result: list[float] = []
    entries: list[int] = []
    spent, blocks = 0.0, 0
    found = {name: [0, 0, 0, 0] for name in NAMES}
    size = BoardSize()
    for _, session in long_sessions(folder, tokens.count):
        began = time.perf_counter()
        by_step = list(boards(session))
        if not by_step[-1]:
            continue
        spent, blocks = spent + time.perf_counter() - began, blocks + len(session.blocks)
        made = render(by_step[-1].values(), size, tokens.count)
        sizes.append(made.tokens)
        entries.append(len(by_step[-1]))
        result.append(len(made.kept) / max(len(by_step[-1]), 1))
        for name in NAMES:
            for step, texts in compactions(session, name, tokens.count):
                board = by_step[min(step, len(by_step)) - 1]
                text = render(board.values(), size, tokens.count).text
                row = found[name]
                row[0] += 1
                row[1] += len(board)
                row[2] += kept(board, texts)
                row[3] += kept(board, [*texts, text])
    if not sizes:
        return 1
    within = sum(500 <= one <= 2_000 for one in sizes)
    smaller = sum(one < 500 for one in sizes)
    print(f"{len(sizes)} sessions: entries median {statistics.median(entries):.0f}, "
          f"most {max(entries)}; tokens median {statistics.median(sizes):.0f}, most {max(sizes)}; "
          f"{within} of 500 to 2,000, {smaller} smaller; "
          f"includes {statistics.mean(result):.3f} of the entries; "
          f"{1000 * spent / blocks:.3f} ms a block")  # fmt: skip
    print("| preset | compactions | entries | kept without the board | with it |")
    print("| --- | --- | --- | --- | --- |")
    for name, (times, many, without, with_it) in found.items():
        if many:
            print(f"| `{name}` | {times} | {many} | {without / many:.3f} | {with_it / many:.3f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
