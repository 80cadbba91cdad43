"""Budgets of live agents, their usage, reservations, and approvals for more."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.conf import settings
from django.db import models

from compaction.advice.use_lint import budget_remarks
from compaction.budget.spending import Account, Amount
from compaction.proposals.strategy import Remark


class Budget(models.Model):
    """A limit on what model calls of live sessions may spend: for one named session, task or agent,
    or for each of them if it has no name.

    `tokens` are prompt and output tokens as billed, with cache reads at full count; `microusd` is
    their price in micro-dollars. With a `period` it resets each day or month (UTC). A named budget
    overrides the unnamed one of its scope and period.
    """

    class Scope(models.TextChoices):
        SESSION = "session"
        TASK = "task"
        AGENT = "agent"

    class Mode(models.TextChoices):
        HARD = "hard"
        SOFT = "soft"
        APPROVAL = "approval"

    class Period(models.TextChoices):
        NONE = "", "in total"
        DAY = "day", "per day"
        MONTH = "month", "per month"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(
        "agent_sessions.Team", on_delete=models.CASCADE, related_name="budgets"
    )
    scope = models.CharField(max_length=8, choices=Scope.choices)
    name = models.CharField(max_length=300, blank=True)
    period = models.CharField(max_length=5, choices=Period.choices, blank=True)
    tokens = models.BigIntegerField(null=True)
    microusd = models.BigIntegerField(null=True)
    mode = models.CharField(max_length=8, choices=Mode.choices, default=Mode.SOFT)
    warn = models.PositiveSmallIntegerField(default=80, help_text="percent")
    active = models.BooleanField(default=True)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created = models.DateTimeField(auto_now_add=True)
    changed = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team", "scope", "name", "period"], name="one_budget_per_name"
            ),
            models.CheckConstraint(
                condition=models.Q(tokens__gte=0) | models.Q(microusd__gte=0),
                name="budget_has_a_limit",
            ),
        ]

    def __str__(self) -> str:
        named = f"{self.scope} {self.name}" if self.name else f"each {self.scope}"
        return f"budget of {named}" + (f" per {self.period}" if self.period else "")

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """Known problems with a limit like this one."""
        return budget_remarks(self.mode, self.tokens)

    def term(self, now: datetime) -> str:
        """The day or month (UTC) that `now` falls in; empty for a budget without a period."""
        return {"day": f"{now:%Y-%m-%d}", "month": f"{now:%Y-%m}"}.get(self.period, "")


class Use(models.Model):
    """The spending and reservations of one session, task or agent (`key`) in one term of a budget.

    `extra` was granted beyond the limit. `warned` holds the thresholds (permille) already
    announced.
    """

    budget = models.ForeignKey(Budget, on_delete=models.CASCADE, related_name="uses")
    key = models.CharField(max_length=300)
    term = models.CharField(max_length=10, blank=True)
    used_tokens = models.BigIntegerField(default=0)
    used_microusd = models.BigIntegerField(default=0)
    reserved_tokens = models.BigIntegerField(default=0)
    reserved_microusd = models.BigIntegerField(default=0)
    extra_tokens = models.BigIntegerField(default=0)
    extra_microusd = models.BigIntegerField(default=0)
    warned = models.JSONField(default=list)
    changed = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["budget", "key", "term"], name="one_use_per_key")
        ]

    def __str__(self) -> str:
        return f"{self.key} of {self.budget}"

    @property
    def account(self) -> Account:
        """This usage as a value for the budget engine."""
        return Account(
            mode=self.budget.mode,  # type: ignore[arg-type]
            tokens=self.budget.tokens,
            microusd=self.budget.microusd,
            warn=self.budget.warn / 100,
            used=Amount(self.used_tokens, self.used_microusd),
            reserved=Amount(self.reserved_tokens, self.reserved_microusd),
            extra=Amount(self.extra_tokens, self.extra_microusd),
            warned=frozenset(self.warned),
        )

    def take(self, account: Account) -> None:
        """Copy the amounts of the account into this row, without saving it."""
        for name in ("used", "reserved", "extra"):
            amount = getattr(account, name)
            setattr(self, f"{name}_tokens", amount.tokens)
            setattr(self, f"{name}_microusd", amount.microusd)
        self.warned = sorted(account.warned)


class Reservation(models.Model):
    """The tokens and micro-dollars set aside for an upcoming call, until it is settled or released.

    They are held in `uses`. A repeated request for the same call returns `answer` again and
    reserves nothing more.
    """

    class State(models.TextChoices):
        OPEN = "open"
        SETTLED = "settled"
        RELEASED = "released"

    session = models.ForeignKey(
        "agent_sessions.Session", on_delete=models.CASCADE, related_name="reservations"
    )
    call = models.CharField(max_length=200)
    tokens = models.BigIntegerField()
    microusd = models.BigIntegerField()
    state = models.CharField(max_length=8, choices=State.choices, default=State.OPEN)
    uses = models.JSONField(default=list, help_text="ids of the uses that hold it")
    answer = models.JSONField(default=dict)
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "call"], name="one_reservation_per_call")
        ]
        indexes = [models.Index(fields=["state", "expires"], name="reservation_expires")]

    def __str__(self) -> str:
        return f"{self.tokens} tokens for {self.call}"

    @property
    def amount(self) -> Amount:
        """The reserved amount."""
        return Amount(self.tokens, self.microusd)


class Approval(models.Model):
    """A call that waits for a person's approval, because it would exceed a budget in approval
    mode."""

    class State(models.TextChoices):
        WAITING = "waiting"
        GRANTED = "granted"
        REFUSED = "refused"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    use = models.ForeignKey(Use, on_delete=models.CASCADE, related_name="approvals")
    session = models.ForeignKey(
        "agent_sessions.Session", on_delete=models.CASCADE, related_name="approvals"
    )
    call = models.CharField(max_length=200)
    tokens = models.BigIntegerField(help_text="the call may spend")
    microusd = models.BigIntegerField()
    state = models.CharField(max_length=8, choices=State.choices, default=State.WAITING)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created = models.DateTimeField(auto_now_add=True)
    decided = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["use"], condition=models.Q(state="waiting"), name="one_approval_waits"
            )
        ]
        indexes = [models.Index(fields=["state", "created"], name="approval_waiting")]

    def __str__(self) -> str:
        return f"{self.tokens} tokens for {self.call}: {self.state}"

    @property
    def amount(self) -> Amount:
        """The amount that the call may spend."""
        return Amount(self.tokens, self.microusd)
