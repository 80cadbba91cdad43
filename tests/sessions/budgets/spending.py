"""Budgets of tests, and the calls that spend them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sessions.actions.accounts import audit
from sessions.actions.accounts.teams import local_team
from sessions.actions.budgets.budgets import BudgetFields, put_budget
from sessions.actions.budgets.spending import PlannedCall
from sessions.actions.live.deliver import report_call
from sessions.actions.live.handing_out.next_call import check
from sessions.models import Budget, Session, Use
from tests.sessions.live.appends import live, send, user

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


OWNER = audit.COMMAND


def budget(scope: str = "session", limit: int | None = 1_000, **more: Any) -> Budget:
    return put_budget(local_team(), BudgetFields(scope, tokens=limit, **more), OWNER)[0]


def ask(session: Session, call: str, tokens: int | None, now: datetime = NOW) -> dict[str, Any]:
    return check(session, PlannedCall(call, tokens), now)


def report(session: Session, call: str, tokens: int, **more: Any) -> None:
    usage = {"input_tokens": tokens - 10, "output_tokens": 10}
    report_call(session, {"call": call, "usage": usage, **more})


def use(key: str = "run") -> tuple[int, int]:
    """Tokens used and reserved."""
    row = Use.objects.get(key=key)
    return row.used_tokens, row.reserved_tokens


def running(name: str = "run", **fields: Any) -> Session:
    made = live(name, **fields)
    send(made, user("Mend the ferry."))
    return made
