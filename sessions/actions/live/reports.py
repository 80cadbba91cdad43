"""Usage reports of model calls, sent by the agent at any time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone

from sessions.actions.budgets.spending import settle, spent_before
from sessions.actions.live import tend
from sessions.actions.record.append import touch
from sessions.actions.record.calls import unnamed, update_call
from sessions.actions.record.measure import reopen
from sessions.importers import records
from sessions.importers.delivered.delivered import Unacceptable, call_report
from sessions.models import ManagedContext, ModelCall, Session
from sessions.models.record.model_calls import cost_of_call
from sessions.models.web.statements import StatementAmong, given_uuid


def report_call(session: Session, body: Any) -> ModelCall:
    """Attach reported usage to a model call: {call?, step?, model?, usage, context_id?,
    started_at?, stop_reason?}.

    Idempotent, and may arrive late. The call is found by id, step or context; without these it is
    the newest. An unknown id names the newest call if that has neither id nor usage; otherwise it
    belongs to a call whose messages will follow. Raises Unacceptable.
    """
    record, step = call_report(body)
    with transaction.atomic():
        locked = Session.objects.select_for_update().get(pk=session.pk)
        check_context(locked, [record.context] if record.context else [])
        call = _find(locked, record, step) or _begin(locked, record)
        before = spent_before([call])
        if update_call(call, record) or call.pk is None:
            call.cost_microusd = cost_of_call(call)
            call.save()
            locked.measured = False
            touch(locked)
            settle(locked, before, timezone.now())
            reopen(locked, call.step)
            tend.ask_later(locked)
    return call


def check_context(session: Session, ids: Sequence[str]) -> None:
    """Raise Unacceptable for an id that is not a context of this session."""
    wanted = set(ids)
    if wanted and len(_GIVEN.rows(sorted(wanted), session=session.pk)) != len(wanted):
        raise Unacceptable("/context_id", "is not a context of this session")


_GIVEN = StatementAmong(
    lambda ids: ManagedContext.objects.filter(
        pk__in=ids, run__session_id=given_uuid("session")
    ).values_list("pk")
)


def _find(session: Session, record: records.Call, step: int | None) -> ModelCall | None:
    """The call of a report; None if its id is new and its messages are still to come."""
    found = session.calls.filter(call=record.call).first() if record.call else None
    if found is not None:
        return found
    if step is None and record.context:
        step = ManagedContext.objects.get(pk=record.context).step
        found = session.calls.filter(step=step).first()
    elif step is not None:
        found = session.calls.filter(step=step).first()
        if found is None:
            steps = f"this session has {session.step_count}"
            raise Unacceptable("/step", f"does not exist; {steps}")
    else:
        found = session.calls.order_by("-step").first()
        if found is not None and record.call and not _is_bare(found):
            return None
    if found is None and not record.call:
        raise Unacceptable(
            "/call",
            "is missing, and this call has no message yet; append one first, or send its id",
        )
    if found is not None and record.call and unnamed(found):
        found.call = record.call
    return found


def _is_bare(call: ModelCall) -> bool:
    return unnamed(call) and call.uncached is None


def _begin(session: Session, record: records.Call) -> ModelCall:
    session.step_count += 1
    step, model = session.step_count, session.model
    return ModelCall(session=session, call=record.call, step=step, model=model)
