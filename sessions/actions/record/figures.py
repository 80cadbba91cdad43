"""Figures per step of a run for the browser: uses, causes, events."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from django.db.models import Min

from compaction.cache import causes
from compaction.cache.uses import Basis, Break, CacheUse
from compaction.context.edits import OWN_COMPACTIONS
from compaction.context.session import Call
from compaction.policies import trigger_words
from sessions.actions.record import events
from sessions.figures import money
from sessions.models import Message, Revision, Run, Session
from sessions.models.record.tail import COLUMNS, Figures, in_order
from sessions.models.web.statements import Statement, given_int, given_uuid

BASIS = {"measured": 0, "estimated": 1, "simulated": 2}
"""Codes for the basis of a figure; keep in sync with the browser."""


def is_break(broken: Break | None) -> bool:
    """Whether cached tokens were lost; a first call has none."""
    return broken is not None and broken.cause != "cold_start"


@dataclass(frozen=True, slots=True)
class FigureInputs:
    """Sources of a run's figures: calls and their cache uses by step; its revisions; turns by the
    step that began them; errors as (step of birth, preview); `managed` are steps with a managed
    context, `recited` the recited tokens by step, which are in no block, `counted` the tokens of
    the recorded context by step, with those that no record shows."""

    run: Run
    calls: Sequence[Call]
    uses: Mapping[int, CacheUse]
    revisions: Sequence[Revision]
    starts: Mapping[int, list[int]]
    errors: Sequence[tuple[int, str]]
    managed: Container[int] = field(default=())
    recited: Mapping[int, int] = field(default_factory=dict)
    counted: Mapping[int, int] = field(default_factory=dict)


class Before(msgspec.Struct):
    """State after earlier steps: the turn, the last model and all models, the number of cause
    cards, the last cache use and the last with a prompt, by how much that exceeded the log, and
    whether a revision followed."""

    turn: int = 0
    model: str = ""
    models: list[str] = []
    causes: int = 0
    use: CacheUse | None = None
    prompted: CacheUse | None = None
    excess: int = 0
    revised: bool = False


def figures(
    session: Session,
    run: Run,
    calls: Sequence[Call],
    uses: Mapping[int, CacheUse],
    recited: Mapping[int, int],
) -> Figures:
    """All figures of a run."""
    revisions = list(run.revisions.order_by("number").prefetch_related("edits"))
    errors = error_rows(session)
    starts = turn_starts(session)
    inputs = FigureInputs(run, calls, uses, revisions, starts, errors, recited=recited)
    found = figures_after(Before(), inputs)
    found.events = in_order([*found.events, *events.sub_agents(session)])
    return found


def figures_after(before: Before, inputs: FigureInputs) -> Figures:
    """Figures of further steps, without sub-agents; advances `before`."""
    rows: list[tuple[int | None, ...]] = []
    causes: list[dict[str, Any]] = []
    made_by = _vendor_edits(inputs)
    recorded = inputs.run.origin == Run.Origin.RECORDED
    for call in inputs.calls:
        before.turn = max([before.turn, *inputs.starts.get(call.step, [])])
        use = inputs.uses.get(call.step)
        cause = -1
        if use is not None and use.broken is not None and is_break(use.broken):
            cause = before.causes + len(causes)
            unseen = recorded and call.step in inputs.managed
            edit = "" if unseen else made_by.get(use.broken.revision or 0, "")
            causes.append(cause_card(call.step, use.broken, edit, use.basis))
        if call.model not in before.models:
            before.models.append(call.model)
        model, managed = before.models.index(call.model), int(call.step in inputs.managed)
        others = before.turn, cause, model, managed, inputs.recited.get(call.step, 0)
        beside = (0, 0) if use is None else _beside(use)
        rows.append((call.at, *_reported(use), *others, *beside))
    marked = events.Marked(
        inputs.run, inputs.calls, inputs.uses, inputs.revisions, inputs.errors, causes,
        inputs.managed, inputs.counted,
        model=before.model, use=before.use, prompted=before.prompted, excess=before.excess,
        revised=before.revised,
    )  # fmt: skip
    _bring_up(before, inputs, len(causes))
    steps = {name: [row[i] for row in rows] for i, name in enumerate(COLUMNS)}
    return Figures(steps, causes, list(before.models), in_order(events.event_marks(marked)))


def _vendor_edits(inputs: FigureInputs) -> dict[int, str]:
    """Names of the revisions that no policy of ours made: those of a recorded run, and in others
    the agent's compactions."""
    agent, every = inputs.run.session.agent, inputs.run.origin == Run.Origin.RECORDED
    return {
        row.number: trigger_words.vendor_edit(row.trigger, agent)
        for row in inputs.revisions
        if every or row.trigger in OWN_COMPACTIONS
    }


def _reported(use: CacheUse | None) -> tuple[int | None, ...]:
    if use is None:
        return (*(None,) * 6, BASIS["estimated"])
    write = use.write_5m + use.write_1h
    return use.prompt, use.uncached, use.read, write, use.output, use.cost, BASIS[use.basis]


def _beside(use: CacheUse) -> tuple[int, int]:
    """Prompt tokens of a response's other requests, and those read from the cache."""
    billed = use.billed
    return billed.prompt - use.prompt, billed.cache_read - use.read


def _bring_up(before: Before, inputs: FigureInputs, causes: int) -> None:
    before.causes += causes
    before.model = next((call.model for call in reversed(inputs.calls) if call.model), before.model)
    for use in inputs.uses.values():
        before.use = use
        if use.prompt and use.step not in inputs.managed:
            before.prompted, before.revised = use, False
            before.excess = events.excess_at(use, inputs.counted)
    since = before.prompted.step if before.prompted else 0
    before.revised |= any(row.step > since for row in inputs.revisions)


def error_rows(session: Session) -> list[tuple[int, str]]:
    """Errors: step of birth, and preview."""
    rows = session.blocks.filter(error=True).order_by("position")
    return list(rows.values_list("born", "preview"))


def turn_starts(session: Session, seq: int = 0) -> dict[int, list[int]]:
    """Turns that began after a message, by the step that began them."""
    starts: dict[int, list[int]] = {}
    for turn, first in _STARTS.rows(session=session.pk, seq=seq):
        starts.setdefault(first, []).append(turn)
    return starts


_STARTS = Statement(
    lambda: (
        Message.objects.filter(
            session_id=given_uuid("session"), human=True, seq__gt=given_int("seq")
        )
        .values("turn")
        .annotate(first=Min("born"))
        .values_list("turn", "first")
    )
)


_AMOUNT: dict[Basis, str] = {"measured": "+{}", "estimated": "≈+{}", "simulated": "+{} sim"}
"""What a break cost, in words, by where its figures come from."""


def cause_card(
    step: int, broken: Break, vendor_edit: str = "", basis: Basis = "measured"
) -> dict[str, Any]:
    """A cause card for a cache break: cause, tokens written again and the place in the prompt,
    cost, the revision if one caused it, all this in a sentence, and advice. `vendor_edit` names an
    edit that the agent's product made."""
    cost = _AMOUNT[basis].format(money(broken.cost)) if broken.cost else ""
    return {
        "step": step,
        "kind": broken.cause,
        "title": causes.title(broken, vendor_edit),
        "sentence": causes.sentence(broken, cost, vendor_edit),
        "detail": causes.detail(broken),
        "tokens": broken.rewritten,
        "after": broken.after,
        "revision": broken.revision,
        "cost_microusd": broken.cost,
        "idle": broken.idle,
        "ttl": broken.ttl,
        "cut": broken.cut,
        "avoidable": causes.is_avoidable(broken.cause, vendor_edit),
        "advice": causes.advice(broken.cause, vendor_edit),
    }
