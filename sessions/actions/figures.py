"""Figures per step of a run, as the browser gets them: uses, causes, events."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from django.db.models import Min

from compaction.cache import causes
from compaction.cache.simulator import Break, CacheUse
from compaction.session import Call
from sessions.actions import events
from sessions.models import Revision, Run, Session
from sessions.models.tail import COLUMNS, Figures, in_order

BASIS = {"measured": 0, "estimated": 1, "simulated": 2}
"""Codes of where a figure comes from; the browser repeats them."""


def is_break(broken: Break | None) -> bool:
    """Whether cached tokens were lost; a first call has none to lose."""
    return broken is not None and broken.cause != "cold_start"


@dataclass(frozen=True, slots=True)
class Told:
    """What a run's figures are made of: calls, and by step their uses; its revisions; turns by
    the step that began them; errors as (step of birth, preview); `served` are steps whose prompt
    we had handed out, `recited` tokens by step that stood in its prompt and in no block."""

    run: Run
    calls: Sequence[Call]
    uses: Mapping[int, CacheUse]
    revisions: Sequence[Revision]
    starts: Mapping[int, list[int]]
    errors: Sequence[tuple[int, str]]
    served: Container[int] = field(default=())
    recited: Mapping[int, int] = field(default_factory=dict)


class Before(msgspec.Struct):
    """What the steps before have left: the turn, the last model and all, how many cause cards,
    the last use of the cache and the last with a prompt, and whether a revision came since."""

    turn: int = 0
    model: str = ""
    models: list[str] = []
    causes: int = 0
    use: CacheUse | None = None
    prompted: CacheUse | None = None
    revised: bool = False


def figures(
    session: Session,
    run: Run,
    calls: Sequence[Call],
    uses: Mapping[int, CacheUse],
    recited: Mapping[int, int],
) -> Figures:
    """Figures of a run as a whole."""
    revisions = list(run.revisions.order_by("number").prefetch_related("edits"))
    errors = error_rows(session)
    starts = turn_starts(session)
    told = Told(run, calls, uses, revisions, starts, errors, recited=recited)
    found = figures_after(Before(), told)
    found.events = in_order([*found.events, *events.sub_agents(session)])
    return found


def figures_after(before: Before, told: Told) -> Figures:
    """Figures of the steps that follow others, without sub-agents; brings `before` up to them."""
    rows: list[tuple[int | None, ...]] = []
    causes: list[dict[str, Any]] = []
    for call in told.calls:
        before.turn = max([before.turn, *told.starts.get(call.step, [])])
        use = told.uses.get(call.step)
        cause = -1
        if use is not None and use.broken is not None and is_break(use.broken):
            cause = before.causes + len(causes)
            causes.append(cause_card(call.step, use.broken))
        if call.model not in before.models:
            before.models.append(call.model)
        model, served = before.models.index(call.model), int(call.step in told.served)
        others = before.turn, cause, model, served, told.recited.get(call.step, 0)
        rows.append((call.at, *_reported(use), *others))
    marked = events.Marked(
        told.run, told.calls, told.uses, told.revisions, told.errors, causes, told.served,
        model=before.model, use=before.use, prompted=before.prompted, revised=before.revised,
    )  # fmt: skip
    _bring_up(before, told, len(causes))
    steps = {name: [row[i] for row in rows] for i, name in enumerate(COLUMNS)}
    return Figures(steps, causes, list(before.models), in_order(events.event_marks(marked)))


def _reported(use: CacheUse | None) -> tuple[int | None, ...]:
    if use is None:
        return (*(None,) * 6, BASIS["estimated"])
    write = use.write_5m + use.write_1h
    return use.prompt, use.fresh, use.read, write, use.output, use.cost, BASIS[use.basis]


def _bring_up(before: Before, told: Told, causes: int) -> None:
    before.causes += causes
    before.model = next((call.model for call in reversed(told.calls) if call.model), before.model)
    for use in told.uses.values():
        before.use = use
        if use.prompt:
            before.prompted, before.revised = use, False
    since = before.prompted.step if before.prompted else 0
    before.revised |= any(row.step > since for row in told.revisions)


def error_rows(session: Session, position: int = 0) -> list[tuple[int, str]]:
    """Errors from a position on: the step of birth, and one line of what failed."""
    rows = session.blocks.filter(error=True, position__gte=position).order_by("position")
    return list(rows.values_list("born", "preview"))


def turn_starts(session: Session, seq: int = 0) -> dict[int, list[int]]:
    """Turns that began after a message, by the step that began them."""
    rows = session.messages.filter(human=True, seq__gt=seq).values("turn")
    starts: dict[int, list[int]] = {}
    for row in rows.annotate(first=Min("born")):
        starts.setdefault(row["first"], []).append(row["turn"])
    return starts


def cause_card(step: int, broken: Break) -> dict[str, Any]:
    """What a page says about one cache break: cause, tokens paid again and behind which
    place of the prompt, dollars, the revision where one did it, what to do."""
    return {
        "step": step,
        "kind": broken.cause,
        "title": str(broken),
        "detail": causes.detail(broken),
        "tokens": broken.rewritten,
        "after": broken.after,
        "revision": broken.revision,
        "cost_microusd": broken.cost,
        "advice": causes.advice(broken.cause),
    }
