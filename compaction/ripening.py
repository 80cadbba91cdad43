"""When tool inputs and outputs, and what agents said and thought, have had their use: learned block
by block, the same at any time."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Container
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from compaction.context import Block, FileRef
from compaction.facts.holders import Holders
from compaction.files.reading import READING, reads

_SEARCHES = frozenset({"grep", "rg", "egrep", "fgrep", "ag", "git grep", "grep_search", "glob",
    "find", "fd", "find_file", "search_dir", "search_file", "search_files", "file_search",
    "codebase_search", "ls", "list", "list_dir", "list_directory", "list_files", "tree",
    "git log", "git status"})  # fmt: skip
"""What finds places rather than showing text; its results are of as little use later as others."""

SHOWS = tuple(name for name in READING if name not in _SEARCHES)
"""Tools and programs that show text of files, as far as they only read."""


PAGES = 50
"""Readings of one file that are remembered at most, the newest."""


class Ages(NamedTuple):
    """Steps that each kind of block stands before it is ripe, and the least tokens that count.

    `done` are readings of a file that was changed, or read again, since; `said` is what the agent
    itself wrote, `thought` what it thought, counted from the end of its turn: neither is ever ripe
    where that is 0.
    """

    results: int
    readings: int
    done: int
    inputs: int
    said: int
    thought: int
    least: int


_READING, INPUT, SAID, THOUGHT = (
    Ages._fields.index(name) for name in ("readings", "inputs", "said", "thought")
)
_OWN_WORDS = (SAID, THOUGHT)


class Stub(NamedTuple):
    """What would stand for a block, and its tokens."""

    text: str
    tokens: int


class _Piece(NamedTuple):
    """A tool input or output, or what an agent said: what it is, and of which file it shows or
    changes text."""

    position: int
    born: int
    tokens: int
    kind: int
    """Index of its age in `Ages`."""
    file: FileRef | None = None
    """What its success shows, writes or changes; None for nothing that is known."""
    id: str = ""


@dataclass(slots=True)
class _Queue:
    """What is ripe by some ages, and what will be."""

    looked: int = 0
    due: list[tuple[int, int]] = field(default_factory=list)
    wait: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """By position of what is not ripe yet: born, its age, and the step it was done at."""
    readings: dict[str, list[_Piece]] = field(default_factory=dict)
    since: dict[int, int] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Ripening:
    """Tool inputs and outputs in order, and what made each of them more or less worth keeping.

    It follows from the originals and from the replacements that were ever made, in whatever order
    these are told, so that it is the same after a restart. Work is constant per block, but for
    the logarithm.
    """

    pieces: list[_Piece] = field(default_factory=list)
    turn: int = 0
    thoughts: list[_Piece] = field(default_factory=list)
    """Thinking of the newest turn: providers want it back until the next one begins."""
    lent: dict[int, int] = field(default_factory=dict)
    holders: Holders = field(default_factory=Holders)
    """Of what stands; known only where the objective is lean."""
    stubs: dict[int, Stub] = field(default_factory=dict)
    """By position, of what was looked at so far; the same whenever they are made."""
    _queues: dict[Ages, _Queue] = field(default_factory=dict)

    def add(self, block: Block, use: Block | None) -> None:
        """Take in the next original; positions must ascend."""
        if block.turn > self.turn:
            self.turn = block.turn
            self.pieces += [one._replace(born=block.born) for one in self.thoughts]
            self.thoughts.clear()
        if block.type == "thinking":
            self.thoughts.append(_piece(block, THOUGHT))
        if block.type == "text" and block.role == "assistant":
            self.pieces.append(_piece(block, SAID))
        if block.type not in ("tool_use", "tool_result"):
            return
        file, kind = block.file, 0
        changes = file is not None and file.action in ("write", "edit", "delete")
        if block.type == "tool_use" or changes:
            kind = INPUT
        elif reads(use, SHOWS) if file is None else file.action == "read":
            kind = _READING
        tells = block.type == "tool_result" and not block.error and (changes or kind == _READING)
        self.pieces.append(_piece(block, kind, file if tells else None))

    def lend(self, position: int, step: int) -> None:
        """Take note that what arrives at a step leaves its text to the block at a position."""
        self.lent[position] = max(step, self.lent.get(position, 0))
        for ages, queue in self._queues.items():
            if position in queue.since:
                del queue.since[position]
                del queue.order[bisect_left(queue.order, position)]
                queue.wait[position] = (step, ages.readings, 0)
                heappush(queue.due, (step + ages.readings, position))

    def ripe(
        self, ages: Ages, step: int, noted: Container[str]
    ) -> tuple[list[int], dict[int, int]]:
        """Positions of what is ripe, ascending, and since which step each is; not to be changed.

        `noted` are ids of all blocks and replacements that were ever known: a reading that entered
        as a note on what was shown before does not stand for it.
        """
        queue = self._queues.setdefault(ages, _Queue())
        while queue.looked < len(self.pieces):
            self._look(queue, ages, self.pieces[queue.looked], noted)
            queue.looked += 1
        while queue.due and queue.due[0][0] <= step:
            _, position = heappop(queue.due)
            waits = queue.wait.get(position)
            if waits is None:
                continue
            born, age, done = waits
            due = max(max(born, self.lent.get(position, 0)) + age, done)
            if due > step:
                heappush(queue.due, (due, position))
                continue
            del queue.wait[position]
            queue.since[position] = due
            insort(queue.order, position)
        return queue.order, queue.since

    def taken(self, ages: Ages, positions: list[int]) -> None:
        """Forget of what is ripe what has left, or what never will."""
        queue = self._queues[ages]
        for position in positions:
            self.stubs.pop(position, None)
            del queue.since[position]
            del queue.order[bisect_left(queue.order, position)]

    def _look(self, queue: _Queue, ages: Ages, piece: _Piece, noted: Container[str]) -> None:
        if piece.file is not None and f"dedupe:{piece.id}" not in noted:
            known = queue.readings.pop(piece.file.path, [])
            stay = [one for one in known if not _settles(piece, one)]
            for one in known:
                waits = queue.wait.get(one.position)
                if waits is not None and one not in stay:
                    queue.wait[one.position] = (waits[0], min(waits[1], ages.done), piece.born)
                    heappush(queue.due, (max(waits[0] + ages.done, piece.born), one.position))
            if piece.kind == _READING:
                stay.append(piece)
            if stay:
                queue.readings[piece.file.path] = stay[-PAGES:]
        age = ages[piece.kind]
        if piece.tokens > ages.least and (age or piece.kind not in _OWN_WORDS):
            queue.wait[piece.position] = (piece.born, age, 0)
            heappush(queue.due, (piece.born + age, piece.position))


def _piece(block: Block, kind: int, file: FileRef | None = None) -> _Piece:
    return _Piece(block.position, block.born, block.tokens, kind, file, block.id)


def _settles(later: _Piece, reading: _Piece) -> bool:
    """Whether a reading is done with: its file was changed since, or the same lines read again."""
    new, old = later.file, reading.file
    assert new is not None and old is not None
    if later.born <= reading.born:
        return False
    if new.action != "read" or not new.start:
        return True
    return (
        bool(old.start)
        and new.start <= (old.start or 0)
        and (new.end is None or (old.end is not None and old.end <= new.end))
    )
