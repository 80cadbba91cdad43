"""Deliver: store what a live agent sends, and answer with the session's standing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef
from django.utils import timezone

from compaction.tools import read_tool
from sessions.actions.budgets.spending import Settled, settle, spent_before
from sessions.actions.live import tend
from sessions.actions.live.answer import answer, note_use
from sessions.actions.live.conversation import Incoming, bring_in, prepare
from sessions.actions.live.live_sessions import choose_for_new, fix_counting, learn_model
from sessions.actions.live.reports import check_context, report_call
from sessions.actions.live.retries import check_retries
from sessions.actions.memory import openings
from sessions.actions.record.append import first_words
from sessions.actions.record.erased import refuse_gone
from sessions.actions.record.measure import reopen
from sessions.actions.record.numbering import Numbering
from sessions.actions.record.writing import write
from sessions.actions.tools.graphs import leave_out_unused
from sessions.actions.web.once import AnotherRequest, Once, answer_of
from sessions.importers import records
from sessions.importers.delivered.delivered import Batch, Unacceptable, delivery
from sessions.live import hint
from sessions.models import Budget, Job, ManagedContext, Reservation, Run, Session
from sessions.models.erasure.kept import SessionErased
from sessions.models.web.statements import Statement, Update, given_columns, given_text, given_uuid

__all__ = [
    "AnotherRequest",
    "Delivered",
    "Batch",
    "Once",
    "Unacceptable",
    "deliver",
    "delivery",
    "report_call",
    "wait_for_disk",
]

CREATED = 201


@dataclass(frozen=True, slots=True)
class Delivered:
    """The answer to an append, the session as it was stored, and whether the answer is repeated for
    a retry."""

    answer: dict[str, Any]
    session: Session
    again: bool = False


def deliver(
    session: Session,
    batch: Batch,
    *,
    once: Once | None = None,
    now: int | None = None,
    notes: Sequence[str] = (),
) -> Delivered:
    """Append a batch in one transaction: rows, the answer for retries, and the tend job.

    All or nothing is stored and committed on return. `now` (ms since the epoch; default: the clock)
    is the time of messages without one; `notes` precede our own. Raises Unacceptable, and
    AnotherRequest for a reused key.
    """
    now = now if now is not None else time.time_ns() // 1_000_000
    answers = [one for one in batch.messages if one.role == "assistant" and one.at is None][-1:]
    for message in batch.messages:
        message.at = now if message.at is None else message.at
    if answers and (asked := _asked_at(session, batch)) is not None:
        # A call that is reported with the next append began long before: its cache may be cold.
        answers[0].at = min(asked, now)
    incoming = _prepared(session, batch)
    try:
        return _in_one_go(session, incoming, once, notes)
    except IntegrityError:
        # A concurrent request with this key was faster, or the error is unrelated to keys.
        session.reread()
        if known := _answered(session, once):
            return known
        raise


def wait_for_disk(session: Session) -> None:
    """Wait until all that was committed is on the disk (synced_later): a commit that changes
    nothing does."""
    Session.objects.filter(pk=session.pk).update(version=F("version"))


def _answered(session: Session, once: Once | None) -> Delivered | None:
    stored = once.answered(session.team) if once else None
    return Delivered(answer_of(stored), session, again=True) if stored else None


def _prepared(session: Session, batch: Batch) -> Incoming:
    """The batch, counted and compressed as far as it seems to be new, outside any transaction."""
    stored = _STANDING.first(session=session.pk)
    # The session we were given may have been loaded long ago.
    fold, session.message_count = stored or ({}, 0)
    _leave_out_ours(session, batch)
    return prepare(session, fold, batch)


_STANDING = Statement(
    lambda: Run.objects.filter(
        session_id=given_uuid("session"), origin=Run.Origin.RECORDED
    ).values_list("fold", "session__message_count")
)


def _in_one_go(
    session: Session, incoming: Incoming, once: Once | None, notes: Sequence[str]
) -> Delivered:
    with transaction.atomic():
        locked = _LOCKED.first(session=session.pk)
        if locked is None:
            raise SessionErased(done=True)
        refuse_gone(locked)
        if known := _answered(locked, once):
            return known
        if locked.message_count != incoming.stored:
            # Another request appended meanwhile, perhaps the calls that this batch answers.
            incoming = Incoming(locked, incoming.batch)
        _begin(locked, incoming.batch)
        if _leave_out_ours(locked, incoming.batch):
            incoming = Incoming(locked, incoming.batch)  # its policy was only selected now
        opens = not locked.step_count
        new = Numbering(locked, live=True)
        _check_known(new, incoming.batch)
        visible = bring_in(new, incoming).visible
        before = spent_before(new.calls) if locked.is_budgeted else []
        write(new)
        if opens and incoming.batch.tools:
            leave_out_unused(locked, incoming.batch.tools)
        settled = settle(locked, before, timezone.now()) if locked.is_budgeted else Settled()
        managed = _managed(locked)
        note_use(locked, managed, visible)
        made = answer(new, managed, settled, _announce(new), notes)
        if once is not None:
            once.keep(locked.team, CREATED, made, locked.pk)
    return Delivered(made, locked)


_LOCKED = Statement(
    lambda: (
        Session.objects.select_for_update(of=("self",))
        .select_related("team", "policy_version__policy")
        .defer("sparkline")
        .filter(pk=given_uuid("session"))
        .annotate(
            is_budgeted=Exists(Budget.objects.filter(team=OuterRef("team")).values("pk"))
            | Exists(
                Reservation.objects.filter(session=OuterRef("pk"), state=Reservation.State.OPEN)
            )
        )
    )
)
"""Sessions with their rows locked, and whether a budget counts their spending."""


def _check_known(new: Numbering, batch: Batch) -> None:
    """Refuse a batch that follows other messages than those that stand. Raises Unacceptable."""
    count, revision = new.session.message_count, new.run.head
    if batch.after not in (None, count):
        said = f"the session has {count} messages"
        raise Unacceptable("/after", f"is not the last one: {said}; send the whole history")
    if batch.recorded_revision not in (None, revision):
        said = f"the recorded context has revision {revision}"
        raise Unacceptable(
            "/recorded_revision", f"is not the last one: {said}; send the whole history"
        )


def _contexts(batch: Batch) -> list[str]:
    return [one.context for one in batch.records if isinstance(one, records.Call) and one.context]


def _asked_at(session: Session, batch: Batch) -> int | None:
    """When the context of the reported call was sent (ms since the epoch)."""
    named = _contexts(batch)[-1:]
    sent = _SENT.first(session=session.pk, context=named[0]) if named else None
    return None if sent is None else int(sent[0].timestamp() * 1000)


_SENT = Statement(
    lambda: ManagedContext.objects.filter(
        run__session_id=given_uuid("session"), pk=given_text("context")
    ).values_list("created")
)


def _begin(session: Session, batch: Batch) -> None:
    """Refuse references to missing objects; set the model, token counting and policy."""
    if contexts := _contexts(batch):
        check_context(session, contexts)
    if any(message.retry_of is not None for message in batch.messages):
        check_retries(session, batch.messages)
    if batch.model and batch.model != session.model:
        learn_model(session, batch.model)
    if not session.message_count:
        fix_counting(session)
    if session.policy_version is None:
        choose_for_new(session)
        session.save(update_fields=["overrides"])
    if not session.message_count:
        openings.fix(session)


def _leave_out_ours(session: Session, batch: Batch) -> bool:
    """Remove `read_back` from a tool list that contains what our contexts add to it; return whether
    it was there."""
    given = batch.tools or []
    own = [tool for tool in given if not read_tool.is_ours(tool)]
    if len(own) == len(given) or not session.reads_back:
        return False
    batch.tools = own
    return True


def _managed(session: Session) -> Run | None:
    return Run.of(session, Run.Origin.MANAGED)


def _announce(new: Numbering) -> Job | None:
    """Save the session as its next version, notify open pages, and queue the tend job."""
    if not new.changed:
        return None
    session = new.session
    session.title = session.title or first_words(new.fresh)
    session.measured = False
    session.version += 1
    session.changed = timezone.now()
    _KEEP.run(session=session.pk, **{name: getattr(session, name) for name in _KEPT})
    hint(f"session:{session.pk}", session.version)
    hint(f"sessions:{session.team_id}", session.version)
    if new.reopened is not None:
        reopen(session, new.reopened)
    return tend.ask_later(session)


_KEPT = (
    *("model", "window", "title", "token_ratio", "token_basis"),
    *("policy_version_id", "policy_from", "rollout_id"),
    *("message_count", "block_count", "step_count", "turn_count", "tool_call_count"),
    *("error_count", "compaction_count", "used_tokens", "peak_tokens", "measured"),
    "counted_tokens",
    *("started_at", "ended_at", "changed", "version"),
)
"""Columns of a session that an append may change."""

_KEEP = Update(
    lambda: (Session.objects.filter(pk=given_uuid("session")), given_columns(Session, _KEPT))
)
