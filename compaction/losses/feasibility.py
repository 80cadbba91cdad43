"""Edit feasibility: whether the text that an edit replaces was in the context when it was made."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

from compaction.context.blocks import Block
from compaction.context.session import Session
from compaction.facts.facts import texts_of
from compaction.facts.recall import Intervals, ManagedRun
from compaction.seen.changes import change_of

_NUMBER = re.compile(r"\s{0,12}\d{1,9}(?:→|\t|[:|] ?)")
"""The line number that reading tools write before a line."""


@dataclass(frozen=True, slots=True)
class Feasibility:
    """The number of edits whose old text was seen before, and the share of them whose old text is
    in the context at their step; 1 without any."""

    edits: int
    share: float


class EditIndex:
    """The edits of a session as (step, lines of their old text), and the originals that had shown
    each line; built once and used for every policy.

    Lines count without number, indentation and blank ends, so that an excerpt serves as well as the
    whole file. Lines that were never seen are left out, and edits without any other. Work and
    memory are linear in the text.
    """

    def __init__(self, session: Session) -> None:
        changes = [
            (block.born - 1, frozenset(_old_lines(block)))
            for block in session.blocks
            if block.type == "tool_use"
        ]
        self.lines = frozenset[str]().union(*(lines for _, lines in changes))
        self.shown: dict[str, list[Block]] = {}
        for block in sorted(session.blocks, key=_born) if self.lines else ():
            for line in self.lines.intersection(_lines_of(block)):
                self.shown.setdefault(line, []).append(block)
        seen = [
            (step, [line for line in lines if self._was_seen(line, step)])
            for step, lines in changes
        ]
        self.edits = [(step, lines) for step, lines in seen if lines]

    def _was_seen(self, line: str, step: int) -> bool:
        shown = self.shown.get(line)
        return shown is not None and shown[0].born <= step

    def newest(self, line: str, step: int) -> Block:
        """Return the newest block that had shown a line before a step; KeyError if none had."""
        before = bisect_right(self.shown[line], step, key=_born)
        return self.shown[line][before - 1]


def _born(block: Block) -> int:
    return block.born


def _old_lines(use: Block) -> Iterator[str]:
    change = change_of(use)
    for swap in change.swaps if change is not None else ():
        yield from plain_lines(swap.old)


def _lines_of(block: Block) -> Iterator[str]:
    for text in texts_of(block):
        yield from plain_lines(text)


def plain_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text that have words, without number, indentation and blank ends."""
    for line in text.split("\n"):
        if stripped := _NUMBER.sub("", line, count=1).strip():
            yield stripped


def feasibility(index: EditIndex, run: ManagedRun) -> Feasibility:
    """Measure a run by the edits that the recorded session made.

    An edit is feasible if every line of its old text that was seen before is in the context of its
    step, in an original or in a replacement. Linear in the text of the replacements.
    """
    if not index.edits:
        return Feasibility(0, 1.0)
    context = Intervals(run, set())
    kept: dict[str, list[str]] = {}
    made = {entry.block.id: entry.block for entry in run.entries if entry.block.replaces}
    for name, block in made.items():
        for line in index.lines.intersection(_lines_of(block)):
            kept.setdefault(line, []).append(name)

    def stands(line: str, step: int) -> bool:
        shown = index.shown[line]
        # The newest first: of thousands of blocks with the line they are most likely still there.
        before = islice(reversed(shown), len(shown) - bisect_right(shown, step, key=_born), None)
        names = chain((block.id for block in before), kept.get(line, ()))
        return any(context.stands(name, step) for name in names)

    good = sum(all(stands(line, step) for line in lines) for step, lines in index.edits)
    return Feasibility(len(index.edits), good / len(index.edits))
