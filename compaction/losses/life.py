"""The life of a text in a context: where it was first seen, when it left, when it was needed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from compaction.context.blocks import Block
from compaction.context.edits import Entry
from compaction.facts.facts import texts_of
from compaction.facts.paths import find_path, path_of
from compaction.facts.recall import State

_WORD = re.compile(r"[A-Za-z0-9_]")

Shown = State | Literal["unseen"]
"""How a text stands at a step; `unseen` before the first block that shows it."""


@dataclass(frozen=True, slots=True)
class Stay:
    """Steps [since, until) with one state; `until` is one after the last step of the session.

    `revisions` are the numbers of those whose edits ended the stay, or removed at its end a block
    that had just arrived.
    """

    since: int
    until: int
    state: Shown
    revisions: tuple[int, ...] = ()

    @property
    def steps(self) -> int:
        """Length in steps."""
        return self.until - self.since

    @property
    def where(self) -> str:
        """The steps in words: "step 7", "steps 7–9"."""
        if self.steps == 1:
            return f"step {self.since}"
        return f"steps {self.since}–{self.until - 1}"


@dataclass(frozen=True, slots=True)
class Sight:
    """A block that shows the text, the step whose model call made or first saw it, and how the text
    stood at that step before the block arrived."""

    step: int
    block: Block
    before: Shown

    @property
    def at(self) -> int:
        """The step at which it happened: that of the call which used it or asked for it; of a
        message, the step that first saw it."""
        return self.call if self.block.type == "tool_result" else self.step

    @property
    def call(self) -> int:
        """The model call that used it or asked for it."""
        return self.step if self.block.role == "assistant" else max(self.step - 1, 1)


@dataclass(frozen=True, slots=True)
class Life:
    """The life of a text.

    `seen`: blocks that showed it to the model (results, messages), in order. `used`: the agent's
    own tool inputs and words that hold it, after it was seen. `stays` cover all steps, in order.
    `asked` is the step whose need is looked at; None for the first.
    """

    text: str
    steps: int
    seen: tuple[Sight, ...]
    used: tuple[Sight, ...]
    stays: tuple[Stay, ...]
    asked: int | None = None

    @property
    def needed(self) -> Sight | None:
        """The first use without the text, or the first block that had to show it again. Of the
        step asked about, or else the last before it: there it came back into the context. What a
        call showed is not why that call used it."""
        needs = sorted([*self.missed, *self.again], key=lambda sight: sight.step)
        if self.asked is not None:
            asked = self.asked
            last = max((sight.at for sight in needs if sight.at <= asked), default=None)
            needs = [sight for sight in needs if sight.at == last] or needs
        return needs[0] if needs else None

    @property
    def left(self) -> Stay | None:
        """The stay in the context after which the text was needed, else the last that ended; None
        if it never left. Of a text that was removed as it arrived, the time before: no step had
        it."""
        ended = [
            stay
            for stay in self.stays[:-1]
            if stay.state == "in_context" or (stay.state == "unseen" and stay.revisions)
        ]
        needed = self.needed
        if needed is not None:
            ended = [stay for stay in ended if stay.until <= needed.step] or ended
        return ended[-1] if ended else None

    @property
    def missed(self) -> tuple[Sight, ...]:
        """Uses at steps whose context no longer showed the text: what the call that first asked for
        it says beside is no use of it."""
        return tuple(use for use in self.used if use.before not in ("in_context", "unseen"))

    @property
    def again(self) -> tuple[Sight, ...]:
        """Blocks that showed the text again after it had left."""
        return tuple(sight for sight in self.seen if sight.before not in ("in_context", "unseen"))

    def fleeting(self, sight: Sight) -> bool:
        """Whether a result or message was removed before the model call of its step saw it."""
        own = sight.block.role == "assistant"
        return not own and sight.step <= self.steps and self.at(sight.step) != "in_context"

    def at(self, step: int) -> Shown:
        """Return how the text stands at a step."""
        return next((stay.state for stay in self.stays if stay.since <= step < stay.until), "lost")


def shows(block: Block, text: str) -> bool:
    """Return whether a block's text, or a text in its tool input, shows this text: a path as
    `paths.tells` says, like the fact ledger; any other in any case, and not only as a part of a
    longer word."""
    return any(place_of(text, one) is not None for one in texts_of(block))


def place_of(text: str, shown: str) -> tuple[int, int] | None:
    """Return where a text of a block first shows a text, by the rule of `shows`: start and end."""
    path = path_of(text)
    if path is not None:
        return find_path(path, shown)
    match = _pattern_of(text).search(shown) if text.lower() in shown.lower() else None
    return match.span() if match is not None else None


def least_of(text: str) -> str:
    """Return, in lower case, what every text that shows a text holds."""
    path = path_of(text)
    return text.lower() if path is None else "/".join(path.split("/")[-2:]).lstrip(".")


@lru_cache(maxsize=64)
def _pattern_of(text: str) -> re.Pattern[str]:
    """The pattern of a text in any case, outside longer words. ASCII only, because other scripts
    put no blanks between words; a line break may be written as JSON does."""
    before = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))" if _WORD.match(text[:1]) else ""
    after = r"(?![A-Za-z0-9_])" if _WORD.match(text[-1:]) else ""
    return re.compile(before + re.escape(text) + after, re.IGNORECASE)


def life_of(text: str, holders: Sequence[Block], entries: Iterable[Entry], steps: int) -> Life:
    """Return the life of a text in a run of `steps` model calls.

    `holders` are the originals that hold it, in order; `entries` those of the run, replacements
    with their texts. In context: an original that holds it stands there. Named: a replacement in
    the context holds it. Retrievable: a replacement there refers to a block that holds it.
    Otherwise lost. The output of step k is born at k + 1. Linear in entries, but for sorting.
    """
    held = {block.id for block in holders}
    spans: dict[State, list[Entry]] = {"in_context": [], "named": [], "retrievable": []}
    for entry in entries:
        if entry.block.replaces is None:
            if entry.block.id in held:
                spans["in_context"].append(entry)
        elif shows(entry.block, text):
            spans["named"].append(entry)
        elif not held.isdisjoint(entry.block.refs):
            spans["retrievable"].append(entry)
    stays = _stays(spans, steps)
    unplaced = Life(text, steps, (), (), stays)
    seen: list[Sight] = []
    used: list[Sight] = []
    for block in holders:
        own = block.role == "assistant"
        step = max(block.born - 1, 1) if own else block.born
        sight = Sight(step, block, "unseen")
        if seen:
            sight = replace(sight, before=unplaced.at(sight.call))
        (used if own and seen else seen).append(sight)
    return Life(text, steps, tuple(seen), tuple(used), stays)


def _stays(spans: dict[State, list[Entry]], steps: int) -> tuple[Stay, ...]:
    """Return the states by step, best first where several hold."""
    end = steps + 1
    bounds = {1, end}
    for entries in spans.values():
        for entry in entries:
            bounds |= {min(entry.from_step, end), min(entry.to_step or end, end)}
    ordered = sorted(bound for bound in bounds if bound >= 1)
    first = min((entry.from_step for entry in spans["in_context"]), default=end)
    stays: list[Stay] = []
    for since, until in zip(ordered, ordered[1:], strict=False):
        state: Shown = "unseen" if since < first else "lost"
        for name, entries in spans.items():
            if any(one.from_step <= since < (one.to_step or end) for one in entries):
                state = name
                break
        closed = {one.closed_by for one in spans["in_context"] if one.to_step == until}
        revisions = tuple(sorted(number for number in closed if number is not None))
        if stays and stays[-1].state == state:
            stays[-1] = Stay(stays[-1].since, until, state, revisions)
        else:
            stays.append(Stay(since, until, state, revisions))
    return tuple(stays)
