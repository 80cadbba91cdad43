"""A recorded session as the moments that its calls are made at: what its log shows of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from compaction.cache.forecast import Change, Moment, whole_change
from compaction.cache.places import Places
from compaction.cache.rules import strips_thinking
from compaction.cache.simulator import Cause
from compaction.edits import Entry, Revision
from compaction.session import Call
from compaction.simulate import Run

_CAUSES: dict[str, Cause] = {"rewind": "rewind"}
_SETUPS: tuple[Cause, ...] = ("tools", "system")
"""In the order of the prompt."""

WRITES = ("write", "edit", "delete")
"""What a tool call does that changes a file."""

_PROSE = (".md", ".markdown", ".rst", ".txt", ".adoc")


def is_program(path: str) -> bool:
    """Whether a file may be part of a program, so that who changed it may start that anew."""
    return not path.lower().endswith(_PROSE)


class Placed(NamedTuple):
    """A block that comes into a context: its position, and what of it matters to a cache.

    `wrote`: it asks a tool to change a file of a program; `revised`: a revision put it there.
    """

    position: int
    image: bool = False
    thinking: bool = False
    wrote: bool = False
    revised: bool = False


@dataclass(slots=True)
class Since:
    """What happened to a context since the call before: blocks that came, positions that left,
    revisions, and whether a person wrote."""

    opens: list[Placed] = field(default_factory=list)
    closes: list[int] = field(default_factory=list)
    revisions: list[Revision] = field(default_factory=list)
    human: bool = False


@dataclass(slots=True)
class Standing:
    """What stands in a context, and what its last call was sent with, as far as the log shows.

    `images` are positions, `thinking` those of this turn's thinking, in order.
    """

    places: Places = field(default_factory=Places)
    images: set[int] = field(default_factory=set)
    thinking: list[int] = field(default_factory=list)
    settings: str = ""
    client: str = ""
    begun: bool = False

    def next(self, call: Call, since: Since) -> Moment:
        """Take in what happened, and give the moment of the next call."""
        human = since.human and self.begun
        pictured = bool(self.images)
        changes = [*self._revised(since), *self._told(call)]
        if human and strips_thinking(call.model):
            changes += self._first("thinking", self.thinking)
            self.thinking.clear()
        for position in since.closes:
            self.places.remove(position)
            self.images.discard(position)
        for one in since.opens:
            # What comes with a prompt is the last response: it was in no prompt yet.
            self._open(one, thought=one.thinking and not human and not one.revised)
        if self.begun and pictured != bool(self.images):
            changes.append(Change("images", 0))
        self.begun = True
        return Moment(
            step=call.step,
            model=call.model,
            at=call.at,
            blocks=len(self.places),
            changes=tuple(changes),
            human=human,
            wrote=any(one.wrote for one in since.opens),
        )

    def _revised(self, since: Since) -> list[Change]:
        """What revisions changed: other tools before another system prompt before the rest."""
        found = [
            whole_change(setup, one.number or None)
            for setup in _SETUPS
            for one in since.revisions
            if one.trigger == "setup" and setup in {edit.strategy for edit in one.edits}
        ]
        others = [one for one in since.revisions if one.trigger != "setup"]
        touched = [*since.closes, *(one.position for one in since.opens if one.revised)]
        if others and touched:
            cause = _CAUSES.get(others[-1].trigger, "edit")
            found += self._first(cause, touched, others[-1].number or None)
        return found

    def _told(self, call: Call) -> list[Change]:
        """What the log says of the request beside its messages."""
        found = []
        if self.client and call.client not in ("", self.client):
            found.append(Change("restart", 0))
        if self.settings and call.settings not in ("", self.settings):
            found.append(Change("settings", 0))
        self.client = call.client or self.client
        self.settings = call.settings or self.settings
        return found

    def _first(
        self, cause: Cause, positions: Iterable[int], revision: int | None = None
    ) -> list[Change]:
        """The change at the first of these positions, if there is any."""
        first = min(positions, default=None)
        return [] if first is None else [Change(cause, self.places.before(first), revision)]

    def _open(self, one: Placed, *, thought: bool) -> None:
        self.places.add(one.position)
        if one.image:
            self.images.add(one.position)
        if thought:
            self.thinking.append(one.position)


def moments(run: Run, calls: Sequence[Call]) -> Iterator[Moment]:
    """What the log shows up to each call, its own usage left out; one for every call.

    `run` holds the contexts that the session had, with the edits that the log records.
    """
    steps: dict[int, Since] = {}
    turns: dict[int, int] = {}
    for entry in run.entries:
        block = entry.block
        if entry.opened_by is None:
            turns[block.turn] = min(block.born, turns.get(block.turn, block.born))
        if entry.to_step == entry.from_step:
            continue
        steps.setdefault(entry.from_step, Since()).opens.append(_placed(entry))
        if entry.to_step is not None:
            steps.setdefault(entry.to_step, Since()).closes.append(block.position)
    for turn, born in turns.items():
        steps.setdefault(born, Since()).human |= turn > 0
    for revision in run.revisions:
        steps.setdefault(revision.step, Since()).revisions.append(revision)
    standing = Standing()
    for call in calls:
        yield standing.next(call, steps.get(call.step, Since()))


def _placed(entry: Entry) -> Placed:
    block = entry.block
    file = block.file
    changed = file is not None and file.action in WRITES and is_program(file.path)
    return Placed(
        block.position,
        image=block.type == "image",
        thinking=block.kind == "thinking",
        wrote=changed and block.type == "tool_use" and entry.opened_by is None,
        revised=entry.opened_by is not None,
    )
