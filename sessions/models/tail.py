"""Figures per step of a run as they are stored: settled ones, and a short tail written anew."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from sessions.models.manifest import unpack
from sessions.models.revisions import Run

Card = dict[str, Any]

COLUMNS = (
    *("at", "prompt", "fresh", "read", "write", "output", "cost"),
    *("basis", "turn", "cause", "model", "served", "recited"),
)
"""Of each step: ms since the epoch; reported tokens; micro-dollars; where the figures come from
(`figures.BASIS`); the turn; cause card and model by index, -1 for no card; whether the prompt that
was reported is of a context that we handed out; tokens recited in it, which no entry holds."""


def _no_steps() -> dict[str, list[int | None]]:
    return {name: [] for name in COLUMNS}


class Figures(msgspec.Struct):
    """Columns by step, cause cards of cache breaks, names of models, marks on the timeline."""

    steps: dict[str, list[int | None]] = msgspec.field(default_factory=_no_steps)
    causes: list[Card] = []
    models: list[str] = []
    events: list[Card] = []

    @property
    def count(self) -> int:
        """Steps that the columns hold."""
        return len(next(iter(self.steps.values()), ()))


class Tail(msgspec.Struct):
    """The figures of the steps after those that are settled, and from which step the newest
    measurings wrote figures anew: (generation, step), for whoever has those of an older one.

    `models` are all, as steps name them by index.
    """

    figures: Figures
    rewrites: list[tuple[int, int]] = []


class Stored(NamedTuple):
    """What a run's row holds of its figures, read at once so that its parts fit."""

    columns: bytes | memoryview
    tail: bytes | memoryview | None
    settled: int
    generation: int


def stored(run: Run) -> Stored:
    """The newest that is stored with a run."""
    found = Run.objects.values_list("columns", "tail", "settled", "generation").get(pk=run.pk)
    return Stored(*found)


def stored_with(run: Run) -> Stored:
    """The same of a row that was read with these columns."""
    return Stored(run.columns, run.tail, run.settled, run.generation)


def tail_of(row: Stored) -> Tail:
    """The tail; an empty one where everything is settled."""
    return msgspec.json.decode(row.tail, type=Tail) if row.tail else Tail(Figures())


def figures(row: Stored) -> Figures:
    """All figures of a run."""
    settled = msgspec.json.decode(unpack(row.columns), type=Figures)
    if row.tail is None:
        return settled
    return joined(settled, tail_of(row).figures)


class _Turns(msgspec.Struct):
    turn: list[int] = []


class _Counted(msgspec.Struct):
    steps: _Turns


def figures_json(row: Stored) -> bytes:
    """The same as JSON; where all is settled, the very bytes that are stored."""
    if row.tail is None and row.columns:
        return unpack(row.columns)
    return msgspec.json.encode(figures(row))


def count_of(encoded: bytes) -> int:
    """Steps that figures in JSON hold."""
    return len(msgspec.json.decode(encoded, type=_Counted).steps.turn)


class _Causes(msgspec.Struct):
    causes: list[Card] = []


def causes(row: Stored) -> list[Card]:
    """The cards of cache breaks alone, which is quicker."""
    found = msgspec.json.decode(unpack(row.columns), type=_Causes).causes if row.columns else []
    return found + tail_of(row).figures.causes


def joined(settled: Figures, tail: Figures) -> Figures:
    """Settled figures and those that follow.

    A step has one mark for what failed in it. A result comes with the step after its call's, so
    where that one is counted anew the mark may stand on either side.
    """
    # A column that is newer than what is settled was not told there.
    none: list[int | None] = [None] * settled.count
    steps = {name: settled.steps.get(name, none) + rows for name, rows in tail.steps.items()}
    failed = {mark["step"] for mark in settled.events if mark["kind"] == "error"}
    news = [mark for mark in tail.events if mark["kind"] != "error" or mark["step"] not in failed]
    events = in_order([*settled.events, *news])
    return Figures(steps, settled.causes + tail.causes, tail.models, events)


def in_order(events: list[Card]) -> list[Card]:
    """Marks by step, those of revisions after others."""
    return sorted(events, key=lambda mark: (mark["step"], mark["revision"] or 0))


class Since(NamedTuple):
    """Figures from a step on."""

    step: int
    figures: Figures


def since(row: Stored, steps: int, generation: int) -> Since | None:
    """What somebody lacks who has the figures of so many steps, as an earlier generation wrote
    them; None where that is not known."""
    if row.tail is None:
        if generation != row.generation:
            return None
        return Since(steps + 1, _from(figures(row), 1, steps + 1))
    tail = tail_of(row)
    missed = [step for written, step in tail.rewrites if written > generation]
    if len(missed) != row.generation - generation:
        return None
    first = min([steps + 1, *missed])
    if first > row.settled:
        return Since(first, _from(tail.figures, row.settled + 1, first))
    return Since(first, _from(figures(row), 1, first))


def _from(found: Figures, begins: int, step: int) -> Figures:
    """The part of figures that begin at one step from another one on."""
    return Figures(
        {name: rows[step - begins :] for name, rows in found.steps.items()},
        [card for card in found.causes if card["step"] >= step],
        found.models,
        [mark for mark in found.events if mark["step"] >= step],
    )


def until(found: Figures, step: int) -> Figures:
    """The part of figures up to a step."""
    return Figures(
        {name: rows[:step] for name, rows in found.steps.items()},
        [card for card in found.causes if card["step"] <= step],
        found.models,
        [mark for mark in found.events if mark["step"] <= step],
    )


REWRITES_KEPT = 200


def rewritten(old: Tail, generation: int, step: int) -> list[tuple[int, int]]:
    """The list of rewrites with one more."""
    return [*old.rewrites[1 - REWRITES_KEPT :], (generation, step)]


def first_change(old: Figures, new: Figures, begins: int) -> int:
    """The lowest step at which two figures of the same steps differ; both begin at a step."""
    common = min(old.count, new.count)
    found = begins + common
    for name, rows in new.steps.items():
        before = old.steps.get(name, [])
        if before[:common] != rows[:common]:
            differ = (i for i in range(common) if before[i : i + 1] != rows[i : i + 1])
            found = min(found, begins + next(differ))
    for one, other in ((old.causes, new.causes), (old.events, new.events)):
        if one != other:
            changed = [card for card in one if card not in other]
            changed += [card for card in other if card not in one]
            found = min([found, *(card["step"] for card in changed)])
    return found
