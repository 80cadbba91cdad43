"""A recorded session as the moments that forecasts are made at: what its log shows of each call."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from compaction.cache.forecast import Change, Moment, changes_at
from compaction.cache.rules import strips_thinking
from compaction.cache.simulator import Cause
from compaction.edits import Entry, Revision
from compaction.session import Call
from compaction.simulate import Run

_LEFT = "<command-name>/exit</command-name>"
"""How Claude Code logs that a person left; who goes on after that has started it anew."""

_CAUSES: dict[str, Cause] = {"rewind": "rewind"}


def moments(run: Run, calls: Sequence[Call]) -> Iterator[Moment]:
    """What the log shows up to each call, its own usage left out; one for every call.

    `run` holds the contexts that the session had, with the edits that the log records.
    """
    opens: dict[int, list[Entry]] = {}
    closes: dict[int, list[Entry]] = {}
    for entry in run.entries:
        opens.setdefault(entry.from_step, []).append(entry)
        if entry.to_step is not None and entry.to_step != entry.from_step:
            closes.setdefault(entry.to_step, []).append(entry)
    recorded: dict[int, list[Revision]] = {}
    for revision in run.revisions:
        recorded.setdefault(revision.step, []).append(revision)
    seen = _Seen()
    for call in calls:
        yield seen.next(
            call,
            [one for one in opens.get(call.step, ()) if one.to_step != one.from_step],
            closes.get(call.step, ()),
            recorded.get(call.step, ()),
        )


@dataclass(slots=True)
class _Seen:
    """What stands: positions in order, those of images, of this turn's thinking, and the turn."""

    standing: list[int] = field(default_factory=list)
    images: set[int] = field(default_factory=set)
    thinking: list[int] = field(default_factory=list)
    turn: int = 0
    step: int = 0

    def next(
        self,
        call: Call,
        opens: Sequence[Entry],
        closes: Sequence[Entry],
        revisions: Sequence[Revision],
    ) -> Moment:
        pictured = bool(self.images)
        arrived = [one for one in opens if one.opened_by is None]
        human = any(one.block.turn > self.turn for one in arrived) and self.step > 0
        changes = self._changes(closes, [one for one in opens if one.opened_by], revisions)
        if human and strips_thinking(call.model):
            changes += changes_at("thinking", self._places(self.thinking))
            self.thinking.clear()
        left = any(_LEFT in one.block.text for one in arrived if one.block.role == "user")
        if left and self.step:
            changes += (Change("restart", 0),)
        for one in closes:
            self._close(one.block.position)
        for one in opens:
            # What comes with a prompt is the last response: it was in no prompt yet.
            self._open(one, thought=not human)
        if self.step and pictured != bool(self.images):
            changes += (Change("images", 0),)
        self.turn = max([self.turn, *(one.block.turn for one in arrived)])
        self.step = call.step
        return Moment(
            step=call.step,
            model=call.model,
            at=call.at,
            blocks=len(self.standing),
            changes=changes,
            human=human,
            wrote=any(_writes(one) for one in arrived),
        )

    def _changes(
        self, closes: Sequence[Entry], replaced: Sequence[Entry], revisions: Sequence[Revision]
    ) -> tuple[Change, ...]:
        touched = [one.block.position for one in (*closes, *replaced)]
        if not touched or not revisions:
            return ()
        cause = _CAUSES.get(revisions[-1].trigger, "edit")
        return changes_at(cause, self._places(touched))

    def _places(self, positions: Iterable[int]) -> list[int]:
        return [bisect_left(self.standing, position) for position in positions]

    def _close(self, position: int) -> None:
        place = bisect_left(self.standing, position)
        if self.standing[place : place + 1] == [position]:
            del self.standing[place]
        self.images.discard(position)

    def _open(self, entry: Entry, thought: bool) -> None:
        position = entry.block.position
        insort(self.standing, position)
        if entry.block.type == "image":
            self.images.add(position)
        if thought and entry.block.type == "thinking" and entry.opened_by is None:
            self.thinking.append(position)


def _writes(entry: Entry) -> bool:
    block = entry.block
    changed = block.file is not None and block.file.action in ("write", "edit", "delete")
    return changed and block.type == "tool_use"
