"""Reports: what a provider said of a model call, sent by the agent when it likes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone

from compaction import prices
from sessions.actions import tend
from sessions.actions.append import touch
from sessions.actions.calls import told, unnamed
from sessions.actions.measure import reopen
from sessions.actions.spending import settle, spent_before
from sessions.importers import records
from sessions.importers.delivered import Unacceptable, call_report
from sessions.models import ModelCall, ServedContext, Session
from sessions.models.values import usage_of


def report_call(session: Session, body: Any) -> ModelCall:
    """Attach what a provider reported to a model call: {call?, step?, model?, usage, context_id?,
    started_at?, stop_reason?}.

    Idempotent, and late is fine. The call is found by its id, its step, or the context that it
    was sent with; without any of these it is the newest. An id that is new names the newest call
    if that has neither an id nor usage; else it is of a call whose messages will follow. Raises
    Unacceptable.
    """
    record, step = call_report(body)
    with transaction.atomic():
        locked = Session.objects.select_for_update().get(pk=session.pk)
        check_context(locked, [record.context] if record.context else [])
        call = _find(locked, record, step) or _begin(locked, record)
        before = spent_before([call])
        if told(call, record) or call.pk is None:
            call.cost_microusd = _cost(call)
            call.save()
            locked.measured = False
            touch(locked)
            settle(locked, before, timezone.now())
            reopen(locked, call.step)
            tend.ask(locked)
    return call


def check_context(session: Session, ids: Sequence[str]) -> None:
    """Raises Unacceptable for an id that is of no context that this session was handed."""
    wanted = set(ids)
    if wanted:
        given = ServedContext.objects.filter(pk__in=wanted, run__session=session)
        if given.count() != len(wanted):
            raise Unacceptable("/context_id", "is no context of this session")


def _find(session: Session, record: records.Call, step: int | None) -> ModelCall | None:
    """The call that a report is about; None where its id is new and it has yet to come."""
    found = session.calls.filter(call=record.call).first() if record.call else None
    if found is not None:
        return found
    if step is None and record.context:
        step = ServedContext.objects.get(pk=record.context).step
        found = session.calls.filter(step=step).first()
    elif step is not None:
        found = session.calls.filter(step=step).first()
        if found is None:
            steps = f"this session has {session.step_count}"
            raise Unacceptable("/step", f"there is no such step; {steps}")
    else:
        found = session.calls.order_by("-step").first()
        if found is not None and record.call and not _is_bare(found):
            return None
    if found is None and not record.call:
        raise Unacceptable(
            "/call",
            "is missing, and no message of this call was appended yet: append it first, or name it",
        )
    if found is not None and record.call and unnamed(found):
        found.call = record.call
    return found


def _is_bare(call: ModelCall) -> bool:
    return unnamed(call) and call.fresh is None


def _begin(session: Session, record: records.Call) -> ModelCall:
    session.step_count += 1
    step, model = session.step_count, session.model
    return ModelCall(session=session, call=record.call, step=step, model=model)


def _cost(call: ModelCall) -> int | None:
    usage, price = usage_of(call), prices.price(call.model, call.at)
    return prices.cost(usage, price) if usage and price else None
