"""Pause a live agent at its next model call, and let it resume; by people, with a reason."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from compaction.budget.spending import judge
from sessions.actions.accounts import audit
from sessions.actions.budgets import spending
from sessions.actions.record.append import touch
from sessions.models import Session

REASON_CHARS = 300

RETRY_SECONDS = 5
"""How long a paused agent should wait before it asks again."""


class NotPausable(ValueError):
    """The session is paused already, is not paused, or is over."""


class SessionPaused(Exception):
    """The session is paused: its agent gets no context until a person resumes it."""


def pause(session: Session, actor: audit.Actor, reason: str, now: datetime) -> Session:
    """Refuse contexts and calls of a session from now on. Raises NotPausable."""
    with transaction.atomic():
        locked = Session.objects.select_for_update(of=("self",)).get(pk=session.pk)
        if locked.paused is not None:
            raise NotPausable("This session is already paused.")
        if locked.outcome:
            raise NotPausable("This session is over.")
        locked.paused = {"by": actor.name, "reason": reason, "at": now.isoformat()}
        touch(locked)
        audit.note(session.team, actor, "session.paused", session.external_id, reason=reason)
    return locked


def resume(session: Session, actor: audit.Actor, reason: str, now: datetime) -> Session:
    """Allow contexts and calls of a paused session again. Raises NotPausable."""
    with transaction.atomic():
        locked = Session.objects.select_for_update(of=("self",)).get(pk=session.pk)
        if locked.paused is None:
            raise NotPausable("This session is not paused.")
        since = datetime.fromisoformat(locked.paused["at"])
        locked.paused = None
        touch(locked)
        waited = round((now - since).total_seconds())
        audit.note(
            session.team, actor, "session.resumed", session.external_id,
            reason=reason, seconds=waited,
        )  # fmt: skip
    return locked


def paused_text(session: Session) -> str:
    """Who paused the session and why, and what its agent should do; empty if it is not paused."""
    if session.paused is None:
        return ""
    reason = session.paused["reason"]
    return (
        f"{session.paused['by']} paused this session: “{reason}”. Ask again in {RETRY_SECONDS} "
        "seconds; a person resumes it."
    )


def refuse_paused(session: Session) -> None:
    """Raise SessionPaused if it is paused."""
    if session.paused is not None:
        raise SessionPaused(paused_text(session))


def refused_call(session: Session, wanted: spending.PlannedCall, prompt: int) -> dict[str, object]:
    """The answer to the budget check of a paused session: nothing is reserved."""
    estimate = spending.estimate_of(session, wanted, prompt)
    answer = spending.answer_to(judge((), estimate), estimate, wanted, [], (), None)
    delay = RETRY_SECONDS * 1000
    refused = {"can_proceed": False, "reason": paused_text(session), "paused": True}
    return answer | refused | {"delay_ms": delay, "retry_after": delay / 1000}
