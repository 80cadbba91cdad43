"""When blocks become ripe for offloading: tool inputs and outputs, assistant text and thinking.

Learned block by block, deterministic at any time.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Container
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from compaction.context.blocks import Block, FileRef
from compaction.facts.holders import Holders
from compaction.seen.commands import commits
from compaction.seen.reading import READING, reads

_SEARCHES = frozenset({"grep", "rg", "egrep", "fgrep", "ag", "git grep", "grep_search", "glob",
    "find", "fd", "find_file", "search_dir", "search_file", "search_files", "file_search",
    "codebase_search", "ls", "list", "list_dir", "list_directory", "list_files", "tree",
    "git log", "git status"})  # fmt: skip
"""Searches, which find places rather than show text; their results get no longer age."""

SHOWS = tuple(name for name in READING if name not in _SEARCHES)
"""Tools and programs that show text of files and only read."""


PAGES = 50
"""Maximum readings remembered per file, the newest."""


class Ages(NamedTuple):
    """Steps after which each kind of block becomes ripe, and the minimum tokens to count.

    `done` applies to readings of a file that was changed, or read again, since; `settled` to those
    since which a person wrote or a commit was made; `said` to assistant text, `thought` to
    thinking, counted from the end of its turn: 0 means never for these two.
    """

    results: int
    readings: int
    done: int
    settled: int
    inputs: int
    said: int
    thought: int
    least: int


_READING, INPUT, SAID, THOUGHT = (
    Ages._fields.index(name) for name in ("readings", "inputs", "said", "thought")
)
_OWN_WORDS = (SAID, THOUGHT)
_BOUNDARY = -1
"""The kind of a piece that only says that a task ended: a person wrote, or a commit was made."""


class Stub(NamedTuple):
    """The text that would replace a block, and its tokens."""

    text: str
    tokens: int


class _Piece(NamedTuple):
    """A tool input or output, or an assistant text, and the file it shows or changes."""

    position: int
    born: int
    tokens: int
    kind: int
    """Index of its age in `Ages`."""
    file: FileRef | None = None
    """The file it shows, writes or changes if it succeeds; None if unknown."""
    id: str = ""


@dataclass(slots=True)
class _Queue:
    """The blocks that are ripe under some ages, and those that will be."""

    looked: int = 0
    due: list[tuple[int, int]] = field(default_factory=list)
    wait: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """For blocks that are not ripe yet, by position: born, age, and the step it was done at."""
    readings: dict[str, list[_Piece]] = field(default_factory=dict)
    unsettled: list[int] = field(default_factory=list)
    """Positions of the readings since the last boundary."""
    since: dict[int, int] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Ripening:
    """Tool inputs and outputs in order, and what made each of them more or less worth keeping.

    Depends only on the originals and on all replacements ever made, in any order, so that it is the
    same after a restart. Work per block is logarithmic at most.
    """

    pieces: list[_Piece] = field(default_factory=list)
    turn: int = 0
    thoughts: list[_Piece] = field(default_factory=list)
    """Thinking of the newest turn: providers require it until the next turn begins."""
    lent: dict[int, int] = field(default_factory=dict)
    holders: Holders = field(default_factory=Holders)
    """For the blocks in the context; maintained for policies with payback."""
    stubs: dict[int, Stub] = field(default_factory=dict)
    """By position, for the blocks examined so far; independent of when they are made."""
    _queues: dict[Ages, _Queue] = field(default_factory=dict)

    def add(self, block: Block, use: Block | None) -> None:
        """Add the next original; positions must ascend."""
        if block.turn > self.turn:
            self.turn = block.turn
            self.pieces.append(_piece(block, _BOUNDARY))
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
        if block.type == "tool_result" and not block.error and use and commits(use):
            self.pieces.append(_piece(block, _BOUNDARY))
        holds = block.type == "tool_result" and not block.error and (changes or kind == _READING)
        self.pieces.append(_piece(block, kind, file if holds else None))

    def lend(self, position: int, step: int) -> None:
        """Record that a block arriving at a step relies on the text of the block at a position."""
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
        """Return the positions of ripe blocks, ascending, and the step since which each is;
        read-only.

        `noted` contains the ids of all blocks and replacements ever made: a reading that entered as
        a note on earlier content does not count as a repeat of it.
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
        """Drop ripe positions that have left the context, or never will."""
        queue = self._queues[ages]
        for position in positions:
            self.stubs.pop(position, None)
            del queue.since[position]
            del queue.order[bisect_left(queue.order, position)]

    def _look(self, queue: _Queue, ages: Ages, piece: _Piece, noted: Container[str]) -> None:
        if piece.kind == _BOUNDARY:
            for position in queue.unsettled:
                self._sooner(queue, position, ages.settled, piece.born)
            queue.unsettled.clear()
            return
        if piece.file is not None and f"dedupe:{piece.id}" not in noted:
            known = queue.readings.pop(piece.file.path, [])
            stay = [one for one in known if not _settles(piece, one)]
            for one in known:
                if one not in stay:
                    self._sooner(queue, one.position, ages.done, piece.born)
            if piece.kind == _READING:
                stay.append(piece)
            if stay:
                queue.readings[piece.file.path] = stay[-PAGES:]
        age = ages[piece.kind]
        if piece.tokens > ages.least and (age or piece.kind not in _OWN_WORDS):
            queue.wait[piece.position] = (piece.born, age, 0)
            heappush(queue.due, (piece.born + age, piece.position))
            if piece.kind == _READING:
                queue.unsettled.append(piece.position)

    def _sooner(self, queue: _Queue, position: int, age: int, done: int) -> None:
        """Let a reading be ripe at this age, but not before it was done, if that is sooner."""
        waits = queue.wait.get(position)
        if waits is None:
            return
        born, before, since = waits
        if max(born + age, done) < max(born + before, since):
            queue.wait[position] = (born, age, done)
            heappush(queue.due, (max(born + age, done), position))


def _piece(block: Block, kind: int, file: FileRef | None = None) -> _Piece:
    return _Piece(block.position, block.born, block.tokens, kind, file, block.id)


def _settles(later: _Piece, reading: _Piece) -> bool:
    """Return whether a reading is done: its file was changed, or the lines read again."""
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
