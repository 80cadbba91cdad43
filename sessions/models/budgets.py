"""What live agents of a team may spend, what they spent of it, and whom they ask for more."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.conf import settings
from django.db import models

from compaction.policies.lint import Remark
from compaction.policies.use_lint import budget_remarks
from compaction.spending import Account, Amount


class Budget(models.Model):
    """A limit on what model calls of live sessions spend: of one session, task or agent, or, with
    no name, of each one.

    `tokens` are prompt and output as billed, cache reads at their full count; `microusd` is the
    same by price. With a `period` it begins anew each day or month (UTC). A budget with a name
    stands in for the nameless one of its scope and period.
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
        NONE = "", "in all"
        DAY = "day", "a day"
        MONTH = "month", "a month"

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
        return f"budget of {named}" + (f" a {self.period}" if self.period else "")

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """What is known to go wrong with a limit like this."""
        return budget_remarks(self.mode, self.tokens)

    def term(self, now: datetime) -> str:
        """The day or month that counts at a time (UTC); empty for a budget without a period."""
        return {"day": f"{now:%Y-%m-%d}", "month": f"{now:%Y-%m}"}.get(self.period, "")


class Use(models.Model):
    """What one session, task or agent (`key`) has spent of a budget in a term, and has reserved.

    `extra` was granted beyond the limit. `warned` are thresholds in permille that were told.
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
        """The same as a value."""
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
        """Become what the account says; not yet stored."""
        for name in ("used", "reserved", "extra"):
            amount = getattr(account, name)
            setattr(self, f"{name}_tokens", amount.tokens)
            setattr(self, f"{name}_microusd", amount.microusd)
        self.warned = sorted(account.warned)


class Reservation(models.Model):
    """What a call that is to come may spend; held in `uses` until it is settled or released.

    The same call asked for again is answered `answer` again, and reserves nothing more.
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
    uses = models.JSONField(default=list, help_text="ids of what it is held in")
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
        """What it holds."""
        return Amount(self.tokens, self.microusd)


class Approval(models.Model):
    """A call that waits for a person's yes, as it would go beyond a budget that asks for one."""

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
    tokens = models.BigIntegerField(help_text="that the call may take")
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
        """What the call may take."""
        return Amount(self.tokens, self.microusd)
