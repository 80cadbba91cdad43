"""Budgets and approvals as they go into the API and come out of it."""

from __future__ import annotations

from typing import Annotated, Literal

from ninja import Schema
from pydantic import Field, StrictBool, StrictInt, StrictStr

from sessions.actions.budgets import MOST, NAME_CHARS

CALL_CHARS = 200
LONGEST_HELD = 3600

Limit = Annotated[StrictInt, Field(ge=0, le=MOST)]


class Amount(Schema):
    """Tokens, prompt and output as billed; and micro-dollars."""

    tokens: int
    microusd: int


class Limits(Schema):
    """The same as limits; null where there is none in that unit."""

    tokens: int | None
    microusd: int | None


class BudgetUse(Schema):
    """What one session, task or agent (`key`) has taken of a budget: `share` is of what it may.

    `term` is the day or month (UTC) that counts, where the budget has a period. `granted` is what
    people allowed beyond the limit.
    """

    id: str
    scope: Literal["session", "task", "agent"]
    key: str
    period: Literal["", "day", "month"]
    term: str
    mode: Literal["hard", "soft", "approval"]
    used: Amount
    reserved: Amount
    limit: Limits
    granted: Amount
    share: float
    state: Literal["ok", "warn", "over"]
    delay_ms: int


class CheckWanted(Schema):
    """A call that is to come; what is left out is estimated."""

    call: Annotated[StrictStr, Field(max_length=CALL_CHARS)] = Field(
        "", description="your id of the call, or its context_id; without one nothing is reserved"
    )
    tokens: Limit | None = Field(
        None, description="prompt and output; else the next context and the last outputs' mean"
    )
    microusd: Limit | None = Field(None, description="its cost; else by the last calls, or price")
    seconds: Annotated[StrictInt, Field(ge=1, le=LONGEST_HELD)] = Field(
        600, description="that the reservation holds, unless the call's usage settles it"
    )


class Checked(Schema):
    """Whether the call may go out. `warnings` come once for each threshold that is passed."""

    can_proceed: bool
    reason: str
    require_approval: bool
    approval: str | None = Field(description="what waits for a person; null without a `call`")
    warnings: list[str]
    delay_ms: int
    retry_after: float = Field(description="the same in seconds")
    call: str
    estimate: Amount
    estimated: bool
    expires: str | None = Field(description="until when it is reserved; null where nothing is")
    budgets: list[BudgetUse]


class Released(Schema):
    """How many reservations were given back."""

    released: int


class BudgetWanted(Schema):
    """A limit; scope, name and period say which it is. One of the two limits at least."""

    scope: Literal["session", "task", "agent"]
    name: Annotated[StrictStr, Field(max_length=NAME_CHARS)] = Field(
        "", description="external id, task or agent; empty for each one"
    )
    period: Literal["", "day", "month"] = Field("", description="begins anew, in UTC")
    tokens: Limit | None = None
    microusd: Limit | None = None
    mode: Literal["hard", "soft", "approval"] = "soft"
    warn: Annotated[StrictInt, Field(ge=1, le=100)] = Field(80, description="percent")
    active: StrictBool = True


class BudgetTold(BudgetWanted):
    """A budget, who made it, and its fullest uses of this term."""

    id: str
    made_by: str | None
    uses: list[BudgetUse]


class BudgetList(Schema):
    """The team's budgets: of sessions, of tasks, of agents."""

    budgets: list[BudgetTold]


class ApprovalTold(Schema):
    """A call that waits for a person, or waited."""

    id: str
    state: Literal["waiting", "granted", "refused"]
    session: str
    call: str
    asked: Amount
    use: BudgetUse
    created: str
    decided: str | None
    decided_by: str | None


class ApprovalList(Schema):
    """What was asked, the newest first."""

    approvals: list[ApprovalTold]


class DecisionWanted(Schema):
    """Yes or no; with a yes, what may be taken beyond what the call asked for."""

    granted: StrictBool
    tokens: Limit = 0
    microusd: Limit = 0
