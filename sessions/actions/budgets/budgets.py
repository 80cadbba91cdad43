"""A team's budgets: create, change, remove, list."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from sessions.actions.accounts import audit
from sessions.importers.decoded import clean
from sessions.importers.delivered.delivered import Unacceptable
from sessions.models import Budget, Session, Team

MOST = 10**15
"""Highest limit in tokens or micro-dollars: a billion dollars."""

NAME_CHARS = 300


@dataclass(frozen=True, slots=True)
class BudgetFields:
    """The fields of a budget; see the model. At least one limit is required."""

    scope: str
    name: str = ""
    period: str = ""
    tokens: int | None = None
    microusd: int | None = None
    mode: str = "soft"
    warn: int = 80
    active: bool = True

    def check(self) -> None:
        """Validate the fields. Raises Unacceptable with the invalid field."""
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
            raise Unacceptable("/name", f"must be text of at most {NAME_CHARS} characters")
        if self.tokens is None and self.microusd is None:
            raise Unacceptable(
                "/tokens", "is missing; set a limit in tokens, in micro-dollars, or both"
            )
        for field, limit in (("tokens", self.tokens), ("microusd", self.microusd)):
            if limit is not None and not 0 <= limit <= MOST:
                raise Unacceptable(f"/{field}", f"must be a whole number from 0 to {MOST}")
        if not 1 <= self.warn <= 100:
            raise Unacceptable("/warn", "must be a percentage from 1 to 100")


def put_budget(team: Team, fields: BudgetFields, actor: audit.Actor) -> tuple[Budget, bool]:
    """Create or update the budget of that scope, name and period; also return whether it was
    created.

    What was already spent still counts. Raises Unacceptable.
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


def begin_task(session: Session) -> None:
    """Create the budget that a session's policy sets for its task.

    Does nothing if the team has a budget for that task, or for each task: people decided then.
    """
    tokens = int((session.policy_document or {}).get("task_budget", 0))
    if not tokens or not session.task:
        return
    of_tasks = Budget.objects.filter(team=session.team_id, scope=Budget.Scope.TASK)
    if of_tasks.filter(name__in=("", session.task)).exists():
        return
    with transaction.atomic():
        budget, made = Budget.objects.get_or_create(
            team_id=session.team_id, scope=Budget.Scope.TASK, name=session.task, period="",
            defaults={"tokens": tokens},
        )  # fmt: skip
        if made:
            audit.note(session.team, audit.POLICY, "budget.made", str(budget), tokens=tokens)


def remove_budget(budget: Budget, actor: audit.Actor) -> None:
    """Delete a budget with its usage; calls in progress continue."""
    with transaction.atomic():
        audit.note(budget.team, actor, "budget.removed", str(budget))
        budget.delete()


def budgets_of(team: Team) -> list[Budget]:
    """All budgets of a team: sessions, tasks, agents, each with the unnamed one first."""
    order = {"session": 0, "task": 1, "agent": 2}
    rows = Budget.objects.filter(team=team).select_related("team", "made_by")
    return sorted(rows, key=lambda row: (order[row.scope], row.name, row.period))


def budget_of_teams(teams: list[Team], budget_id: UUID) -> Budget | None:
    """Look up a budget by id in these teams."""
    return Budget.objects.filter(team__in=teams, pk=budget_id).select_related("team").first()


def term_begins(budget: Budget, now: datetime) -> datetime | None:
    """Start of the budget's current day or month (UTC); None without a period."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return {"day": midnight, "month": midnight.replace(day=1)}.get(budget.period)
