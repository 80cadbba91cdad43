"""A recorded session as the moments of its calls: what its log shows about each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from compaction.cache.forecast import Moment, PromptChange, whole_change
from compaction.cache.places import Places
from compaction.cache.rules import rules_of, strips_thinking, takes_breakpoints
from compaction.cache.uses import Cause
from compaction.context.edits import Entry, Revision
from compaction.context.session import Call
from compaction.simulation.simulate import Run

_CAUSES: dict[str, Cause] = {"rewind": "rewind"}
_SETUPS: tuple[Cause, ...] = ("tools", "system")
"""In the order of the prompt."""

WRITES = ("write", "edit", "delete")
"""What a tool call does that changes a file."""

_PROSE = (".md", ".markdown", ".rst", ".txt", ".adoc")


def is_program(path: str) -> bool:
    """Return whether a file may belong to a program that its author restarts after a change."""
    return not path.lower().endswith(_PROSE)


def is_search(type: str, kind: str) -> bool:
    """Return whether a block says that the provider ran a tool within the call, by itself."""
    return type == "other" and kind == "assistant"


class Placed(NamedTuple):
    """A block added to a context: its position, and its properties that matter to a cache.

    `wrote`: it asks a tool to change a file of a program; `revised`: a revision added it;
    `searched`: the provider ran a tool within the call, such as a web search.
    """

    position: int
    image: bool = False
    thinking: bool = False
    wrote: bool = False
    revised: bool = False
    searched: bool = False


@dataclass(slots=True)
class ContextChange:
    """Changes of a context since the last call: added blocks, removed positions, revisions."""

    opens: list[Placed] = field(default_factory=list)
    closes: list[int] = field(default_factory=list)
    revisions: list[Revision] = field(default_factory=list)
    human: bool = False


@dataclass(slots=True)
class ContextState:
    """The blocks in a context, and the settings of its last call, as far as the log shows.

    `images` are positions, `thinking` those of this turn's thinking, in order.
    """

    places: Places = field(default_factory=Places)
    images: set[int] = field(default_factory=set)
    thinking: list[int] = field(default_factory=list)
    settings: str = ""
    client: str = ""
    begun: bool = False

    def next(self, call: Call, since: ContextChange) -> Moment:
        """Apply the changes and return the moment of the next call."""
        human = since.human and self.begun
        pictured = bool(self.images)
        changes = [*self._revised(since), *self._changes_of(call)]
        searched = any(one.searched for one in since.opens)
        if searched and not takes_breakpoints(rules_of(call.model)):
            # The reported prompt held what the tool found; that of the call before it did not.
            changes.append(PromptChange("search", len(self.places) - 1))
        if human and strips_thinking(call.model):
            changes += self._first("thinking", self.thinking)
            self.thinking.clear()
        for position in since.closes:
            self.places.remove(position)
            self.images.discard(position)
        for one in since.opens:
            # A new prompt adds the last response, which was in no prompt before.
            self._open(one, thought=one.thinking and not human and not one.revised)
        if self.begun and pictured != bool(self.images):
            changes.append(PromptChange("images", 0))
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

    def _revised(self, since: ContextChange) -> list[PromptChange]:
        """Return the changes by revisions: tools before system prompt before the rest."""
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

    def _changes_of(self, call: Call) -> list[PromptChange]:
        """Return the changes of the request's settings, as logged."""
        found = []
        if self.client and call.client not in ("", self.client):
            found.append(PromptChange("restart", 0))
        if self.settings and call.settings not in ("", self.settings):
            found.append(PromptChange("settings", 0))
        self.client = call.client or self.client
        self.settings = call.settings or self.settings
        return found

    def _first(
        self, cause: Cause, positions: Iterable[int], revision: int | None = None
    ) -> list[PromptChange]:
        """Return the change at the first of these positions, if any."""
        first = min(positions, default=None)
        return [] if first is None else [PromptChange(cause, self.places.before(first), revision)]

    def _open(self, one: Placed, *, thought: bool) -> None:
        self.places.add(one.position)
        if one.image:
            self.images.add(one.position)
        if thought:
            self.thinking.append(one.position)


def moments(run: Run, calls: Sequence[Call]) -> Iterator[Moment]:
    """Yield what the log shows about each call, without its usage.

    `run` holds the contexts that the session had, with the edits that the log records.
    """
    steps: dict[int, ContextChange] = {}
    turns: dict[int, int] = {}
    for entry in run.entries:
        block = entry.block
        if entry.opened_by is None:
            turns[block.turn] = min(block.born, turns.get(block.turn, block.born))
        if entry.to_step == entry.from_step:
            continue
        steps.setdefault(entry.from_step, ContextChange()).opens.append(_placed(entry))
        if entry.to_step is not None:
            steps.setdefault(entry.to_step, ContextChange()).closes.append(block.position)
    for turn, born in turns.items():
        steps.setdefault(born, ContextChange()).human |= turn > 0
    for revision in run.revisions:
        steps.setdefault(revision.step, ContextChange()).revisions.append(revision)
    standing = ContextState()
    for call in calls:
        yield standing.next(call, steps.get(call.step, ContextChange()))


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
        searched=is_search(block.type, block.kind),
    )
