"""Stored figures per step of a run: settled ones, and a short tail that is rewritten."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from compaction.cache import causes as rules
from sessions.models.record.manifest import unpack
from sessions.models.record.revisions import Run
from sessions.models.record.sessions import Session
from sessions.models.web.statements import Statement, given_uuid

Card = dict[str, Any]

COLUMNS = (
    *("at", "prompt", "uncached", "read", "write", "output", "cost"),
    *("basis", "turn", "cause", "model", "managed", "recited", "beside", "beside_read"),
)
"""Per step: ms since the epoch; reported tokens; micro-dollars; basis of the figures
(`figures.BASIS`); turn; index of cause card and of model, -1 for no card; whether the reported
prompt was a managed context; recited tokens in it, which are in no entry; prompt tokens of the
response's other requests, which its cost includes, and those of them read from the cache."""


def _no_steps() -> dict[str, list[int | None]]:
    return {name: [] for name in COLUMNS}


class Figures(msgspec.Struct):
    """Columns by step, cause cards of cache breaks, model names, and marks on the timeline."""

    steps: dict[str, list[int | None]] = msgspec.field(default_factory=_no_steps)
    causes: list[Card] = []
    models: list[str] = []
    events: list[Card] = []

    @property
    def count(self) -> int:
        """Number of steps in the columns."""
        return len(next(iter(self.steps.values()), ()))


class Tail(msgspec.Struct):
    """Figures of the steps after the settled ones, and the first step rewritten by each recent
    measurement, as (generation, step), for clients that have an older generation.

    `models` lists all models, because steps refer to them by index.
    """

    figures: Figures
    rewrites: list[tuple[int, int]] = []


class StoredFigures(NamedTuple):
    """A run's stored figures, read in one query so that the parts match; with what an hour's TTL
    would have saved in its session in micro-dollars, None before it is assessed or if unknown."""

    columns: bytes | memoryview
    tail: bytes | memoryview | None
    settled: int
    generation: int
    hour_saved: int | None = None


STORED = ("columns", "tail", "settled", "generation", "session__assessment__hour_saved_microusd")
"""Where the parts of `StoredFigures` are, from a run."""


def stored(run: Run) -> StoredFigures:
    """Read the newest stored figures of a run."""
    return StoredFigures(*Run.objects.values_list(*STORED).get(pk=run.pk))


def hour_saved_in(session: Session) -> int | None:
    """What an hour's TTL would have saved in a session, in micro-dollars, as `StoredFigures`."""
    found: int | None = (_HOURS.first(session=session.pk) or (None,))[0]
    return found


_HOURS = Statement(
    lambda: Run.objects.filter(session_id=given_uuid("session")).values_list(STORED[-1])
)


def judged(cards: list[Card], hour_saved: int | None) -> list[Card]:
    """Cards as stored, with whether each break is avoidable: of an expired TTL that depends on all
    of its session, so only an assessment knows what an hour's TTL would have saved."""
    return [_judged(card, hour_saved) for card in cards]


def _judged(card: Card, hour_saved: int | None) -> Card:
    if card["kind"] != "ttl":
        return {"avoidable": rules.is_avoidable(card["kind"])} | card
    why = rules.why_ttl_stays(
        card.get("idle"), card.get("ttl"), hour_saved, cut=bool(card.get("cut"))
    )
    if not why:
        return card | {"avoidable": True}
    said = str(card.get("sentence") or "").removesuffix(", avoidable.")
    more = {"sentence": f"{said}, not avoidable: {why}."} if said else {}
    return card | more | {"avoidable": False, "advice": rules.NO_ADVICE}


def tail_of(row: StoredFigures) -> Tail:
    """Decode the tail; empty if everything is settled."""
    return msgspec.json.decode(row.tail, type=Tail) if row.tail else Tail(Figures())


def figures(row: StoredFigures) -> Figures:
    """All figures of a run."""
    found = msgspec.json.decode(unpack(row.columns), type=Figures)
    if row.tail is not None:
        found = joined(found, tail_of(row).figures)
    found.causes = judged(found.causes, row.hour_saved)
    return found


class _TurnColumn(msgspec.Struct):
    turn: list[int] = []


class _Counted(msgspec.Struct):
    steps: _TurnColumn


def figures_json(row: StoredFigures) -> bytes:
    """All figures as JSON; the stored bytes if everything is settled, and no TTL expired."""
    if row.tail is None and row.columns:
        data = unpack(row.columns)
        if b'"kind":"ttl"' not in data:
            return data
    return msgspec.json.encode(figures(row))


def count_of(encoded: bytes) -> int:
    """Number of steps in figures encoded as JSON."""
    return len(msgspec.json.decode(encoded, type=_Counted).steps.turn)


class _Causes(msgspec.Struct):
    causes: list[Card] = []


def causes(row: StoredFigures) -> list[Card]:
    """The cards of cache breaks, judged; faster than decoding all figures."""
    return judged(_causes(row), row.hour_saved)


def _causes(row: StoredFigures) -> list[Card]:
    found = msgspec.json.decode(unpack(row.columns), type=_Causes).causes if row.columns else []
    return found + tail_of(row).figures.causes


def cards_of(session: Session) -> list[Card]:
    """The cards of a session's cache breaks, not judged: the recorded run has those of all calls.
    A session without a message has no run yet."""
    run = Run.objects.filter(session=session, origin=Run.Origin.RECORDED).first()
    if run is None:
        return []
    row = stored(run)
    return _causes(row) if row.columns or row.tail is not None else []


def joined(settled: Figures, tail: Figures) -> Figures:
    """Combine settled figures with the tail.

    A step has one mark for what failed in it. A result arrives one step after its call, so when
    that step is measured again the mark may be on either side.
    """
    # A column newer than the settled figures is missing there.
    none: list[int | None] = [None] * settled.count
    steps = {name: settled.steps.get(name, none) + rows for name, rows in tail.steps.items()}
    failed = {mark["step"] for mark in settled.events if mark["kind"] == "error"}
    news = [mark for mark in tail.events if mark["kind"] != "error" or mark["step"] not in failed]
    events = in_order([*settled.events, *news])
    return Figures(steps, settled.causes + tail.causes, tail.models, events)


def in_order(events: list[Card]) -> list[Card]:
    """Sort marks by step, revisions last."""
    return sorted(events, key=lambda mark: (mark["step"], mark["revision"] or 0))


class Since(NamedTuple):
    """Figures from a step on."""

    step: int
    figures: Figures


def since(row: StoredFigures, steps: int, generation: int) -> Since | None:
    """The figures a client lacks that has `steps` steps as of `generation`; None if unknown."""
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
        found = _from(tail.figures, row.settled + 1, first)
        found.causes = judged(found.causes, row.hour_saved)
        return Since(first, found)
    return Since(first, _from(figures(row), 1, first))


def _from(found: Figures, begins: int, step: int) -> Figures:
    """Figures from `step` on, out of figures that begin at step `begins`."""
    return Figures(
        {name: rows[step - begins :] for name, rows in found.steps.items()},
        [card for card in found.causes if card["step"] >= step],
        found.models,
        [mark for mark in found.events if mark["step"] >= step],
    )


def until(found: Figures, step: int) -> Figures:
    """Figures up to a step."""
    return Figures(
        {name: rows[:step] for name, rows in found.steps.items()},
        [card for card in found.causes if card["step"] <= step],
        found.models,
        [mark for mark in found.events if mark["step"] <= step],
    )


REWRITES_KEPT = 200


def rewritten(old: Tail, generation: int, step: int) -> list[tuple[int, int]]:
    """Append a rewrite to the bounded list."""
    return [*old.rewrites[1 - REWRITES_KEPT :], (generation, step)]


def first_change(old: Figures, new: Figures, begins: int) -> int:
    """The lowest step at which two figures differ; both begin at step `begins`."""
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
