"""Budgets of a team: made, changed and removed by people, and how each stands."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from sessions.actions import audit
from sessions.importers.decoded import clean
from sessions.importers.delivered import Unacceptable
from sessions.models import Budget, Team

MOST = 10**15
"""Tokens or micro-dollars of a limit at most: a thousand million dollars."""

NAME_CHARS = 300


@dataclass(frozen=True, slots=True)
class BudgetFields:
    """What somebody says of a budget; see the model. At least one of the limits is given."""

    scope: str
    name: str = ""
    period: str = ""
    tokens: int | None = None
    microusd: int | None = None
    mode: str = "soft"
    warn: int = 80
    active: bool = True

    def check(self) -> None:
        """Raises Unacceptable, which names the field."""
        choices = (
            ("scope", self.scope, Budget.Scope.values),
            ("period", self.period, Budget.Period.values),
            ("mode", self.mode, Budget.Mode.values),
        )
        for field, value, known in choices:
            if value not in known:
                named = ", ".join(one or "nothing" for one in known)
                raise Unacceptable(f"/{field}", f"must be one of: {named}")
        if len(self.name) > NAME_CHARS or self.name != clean(self.name):
            raise Unacceptable("/name", f"must be text of {NAME_CHARS} characters at most")
        if self.tokens is None and self.microusd is None:
            raise Unacceptable("/tokens", "is missing: give a limit in tokens, in money, or both")
        for field, limit in (("tokens", self.tokens), ("microusd", self.microusd)):
            if limit is not None and not 0 <= limit <= MOST:
                raise Unacceptable(f"/{field}", f"must be a whole number from 0 to {MOST}")
        if not 1 <= self.warn <= 100:
            raise Unacceptable("/warn", "must be a percentage from 1 to 100")


def put_budget(team: Team, fields: BudgetFields, actor: audit.Actor) -> tuple[Budget, bool]:
    """Make the budget of that scope, name and period, or bring it up to date; whether it was made.

    What was spent of it stays spent. Raises Unacceptable.
    """
    fields.check()
    which = {"scope": fields.scope, "name": fields.name, "period": fields.period}
    says = {name: value for name, value in asdict(fields).items() if name not in which}
    with transaction.atomic():
        budget, made = Budget.objects.select_for_update().get_or_create(
            team=team, **which, defaults=says | {"made_by": actor.user}
        )
        changes = {name: value for name, value in says.items() if getattr(budget, name) != value}
        for name, value in changes.items():
            setattr(budget, name, value)
        if changes:
            budget.save()
        if made or changes:
            action = "budget.made" if made else "budget.changed"
            audit.note(team, actor, action, str(budget), **(says if made else changes))
    return budget, made


def remove_budget(budget: Budget, actor: audit.Actor) -> None:
    """Take a budget away, with what was counted of it; calls under way go on."""
    with transaction.atomic():
        audit.note(budget.team, actor, "budget.removed", str(budget))
        budget.delete()


def budgets_of(team: Team) -> list[Budget]:
    """All of a team: sessions, tasks, agents, each the nameless one first."""
    order = {"session": 0, "task": 1, "agent": 2}
    rows = Budget.objects.filter(team=team).select_related("team", "made_by")
    return sorted(rows, key=lambda row: (order[row.scope], row.name, row.period))


def budget_of_teams(teams: list[Team], budget_id: UUID) -> Budget | None:
    """A budget of one of these teams."""
    return Budget.objects.filter(team__in=teams, pk=budget_id).select_related("team").first()


def limits_in_force(team: Team) -> list[dict[str, Any]]:
    """The active budgets as plain values (scope, name, period, mode, tokens, microusd), for whoever
    compares policies with them."""
    names = ("scope", "name", "period", "mode", "tokens", "microusd")
    return [{name: getattr(row, name) for name in names} for row in budgets_of(team) if row.active]


def term_begins(budget: Budget, now: datetime) -> datetime | None:
    """When the day or month of a budget began (UTC); None for one without a period."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return {"day": midnight, "month": midnight.replace(day=1)}.get(budget.period)
