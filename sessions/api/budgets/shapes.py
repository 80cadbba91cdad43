"""API schemas for budgets and approvals."""

from __future__ import annotations

from typing import Annotated, Literal

from ninja import Schema
from pydantic import Field, StrictBool, StrictInt, StrictStr

from sessions.actions.budgets.budgets import MOST, NAME_CHARS
from sessions.api.web.shapes import Problem

CALL_CHARS = 200
LONGEST_HELD = 3600

Limit = Annotated[StrictInt, Field(ge=0, le=MOST)]


class AmountOut(Schema):
    """Tokens (prompt and output as billed) and micro-dollars."""

    tokens: int
    microusd: int


class Limits(Schema):
    """Limits in tokens and micro-dollars; null for no limit."""

    tokens: int | None
    microusd: int | None


class BudgetUse(Schema):
    """The usage of a budget by one session, task or agent (`key`); `share` is relative to limit
    plus grants.

    `term` is the current day or month (UTC), if the budget has a period. `granted` was allowed by
    people beyond the limit.
    """

    id: str
    scope: Literal["session", "task", "agent"]
    key: str
    period: Literal["", "day", "month"]
    term: str
    mode: Literal["hard", "soft", "approval"]
    used: AmountOut
    reserved: AmountOut
    limit: Limits
    granted: AmountOut
    share: float
    state: Literal["ok", "warn", "over"]
    delay_ms: int


class CheckIn(Schema):
    """A planned call; omitted values are estimated."""

    call: Annotated[StrictStr, Field(max_length=CALL_CHARS)] = Field(
        "", description="your id of the call, or its context_id; without one nothing is reserved"
    )
    tokens: Limit | None = Field(
        None,
        description="prompt and output; default: the next context plus the mean of recent outputs",
    )
    microusd: Limit | None = Field(
        None, description="its cost; default: estimated from recent calls or list prices"
    )
    seconds: Annotated[StrictInt, Field(ge=1, le=LONGEST_HELD)] = Field(
        600, description="duration of the reservation, unless usage settles it earlier"
    )


class Checked(Schema):
    """Whether the call may be made. `warnings` has one entry for each threshold crossed since the
    last check."""

    can_proceed: bool
    reason: str
    paused: bool = Field(description="whether a person has paused the session")
    require_approval: bool
    approval: str | None = Field(
        description="the approval that the call waits for; null without a `call`"
    )
    warnings: list[str]
    delay_ms: int
    retry_after: float = Field(description="`delay_ms` in seconds")
    call: str
    estimate: AmountOut
    estimated: bool
    expires: str | None = Field(
        description="when the reservation expires; null if nothing is reserved"
    )
    budgets: list[BudgetUse]


class Released(Schema):
    """The number of reservations released."""

    released: int


class BudgetIn(Schema):
    """A budget, identified by scope, name and period. At least one of the two limits is
    required."""

    scope: Literal["session", "task", "agent"]
    name: Annotated[StrictStr, Field(max_length=NAME_CHARS)] = Field(
        "", description="external id, task or agent; empty for each of them"
    )
    period: Literal["", "day", "month"] = Field("", description="when it resets, in UTC")
    tokens: Limit | None = None
    microusd: Limit | None = None
    mode: Literal["hard", "soft", "approval"] = "soft"
    warn: Annotated[StrictInt, Field(ge=1, le=100)] = Field(80, description="percent")
    active: StrictBool = True


class BudgetOut(BudgetIn):
    """A budget with its creator and its fullest uses in the current term."""

    id: str
    made_by: str | None
    uses: list[BudgetUse]


class BudgetList(Schema):
    """The team's budgets, by session, task and agent."""

    budgets: list[BudgetOut]


class ApprovalOut(Schema):
    """A call that waits or waited for approval."""

    id: str
    state: Literal["waiting", "granted", "refused"]
    session: str
    call: str
    asked: AmountOut
    use: BudgetUse
    created: str
    decided: str | None
    decided_by: str | None


class ApprovalList(Schema):
    """Approvals, newest first."""

    approvals: list[ApprovalOut]


class DecisionIn(Schema):
    """A decision; with a grant, the amount allowed beyond what the call needs."""

    granted: StrictBool
    tokens: Limit = 0
    microusd: Limit = 0


class OverBudgetOut(Problem):
    """A context refused for budget reasons: whether an approval is possible, and the state of the
    budgets."""

    require_approval: bool
    approval: str | None
    budgets: list[BudgetUse]
