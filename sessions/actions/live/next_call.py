"""The next call of a live agent: the size of its prompt, and whether budgets allow it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sessions.actions.budgets.spending import PlannedCall, reserve
from sessions.actions.live.managed import catch_up
from sessions.actions.live.offers import offer
from sessions.models import ManagedContext, Session
from sessions.models.record.values import wire_blocks


def check(session: Session, wanted: PlannedCall, now: datetime) -> dict[str, Any]:
    """Check whether a call may be made, and reserve it; a missing prompt size is estimated.

    Call before a transaction begins, or while holding the fold.
    """
    return reserve(session, wanted, next_prompt(session) if wanted.tokens is None else 0, now)


def next_prompt(session: Session) -> int:
    """Tokens of the next context in the format last requested, including shared knowledge, without
    omitted tools.

    Call before a transaction begins, or while holding the fold.
    """
    plan = catch_up(session)
    taken = ManagedContext.objects.filter(run=plan.run).order_by("-created")
    form = taken.values_list("format", flat=True).first() or "anthropic"
    setup = [block for block in plan.blocks if block.type == "tools"]
    plan, _ = offer(plan, wire_blocks(session, setup), form)
    return plan.standing.used
