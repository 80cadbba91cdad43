"""API schemas for rollouts."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field, StrictInt

from sessions.actions.policies.bounds import BOUNDS, MOST_SESSIONS, SESSIONS
from sessions.actions.policies.rollouts import NOTE_LENGTH, REASON_LENGTH
from sessions.api.web.shapes import BodyIn, Text
from sessions.models import Rollout

_STATES = ", ".join(Rollout.State.values)


def _bound(name: str) -> Any:
    bound = BOUNDS[name]
    text = bound.text(bound.default)
    return Field(bound.default, ge=0, le=bound.high, description=f"{bound.title}; default: {text}")


Percent = StrictInt | None


class Guardrail(Schema):
    """Limits that pause a rollout automatically, in whole percents; null turns one off."""

    sessions: StrictInt = Field(
        SESSIONS, ge=1, le=MOST_SESSIONS, description="sessions per side before limits are checked"
    )
    cost: Percent = _bound("cost")
    recall: Percent = _bound("recall")
    ledger: Percent = _bound("ledger")
    reviews: Percent = _bound("reviews")
    outcomes: Percent = _bound("outcomes")


class RolloutIn(BodyIn):
    """The version to roll out, why, and its guardrail."""

    version: Text = Field(
        description="policy version as name@3, or a name for its newest", examples=["passthrough"]
    )
    note: Annotated[Text, Field(max_length=NOTE_LENGTH)] = Field(
        "", description="the reason, for people"
    )
    guardrail: Guardrail | None = Field(None, description="default limits if omitted")
    simulation: Text | None = Field(
        None, description="id of a simulation of the version, as evidence"
    )


class StageIn(BodyIn):
    """The share to widen a rollout to: its next stage."""

    share: Literal[50, 100] = Field(description="percent of new sessions")


class ReasonIn(BodyIn):
    """The reason, for the record."""

    reason: Annotated[Text, Field(max_length=REASON_LENGTH)] = ""


class RolloutOut(Schema):
    """A rollout; `before` null means the DEFAULT_POLICY setting.

    `share` is percent of the new sessions that name no policy while it is running. `reason` says
    why it paused or ended.
    """

    id: str
    version: str
    before: str | None
    state: str = Field(description=_STATES)
    share: int
    note: str
    reason: str
    guardrail: Guardrail
    simulation: str | None
    proposed_by: str
    decided_by: str
    created: str
    began: str | None
    changed: str
    url: str


class SideOut(Schema):
    """Sessions of one side: their number and sums; `paid` in micro-dollars, as reported."""

    sessions: int
    steps: int
    paid: int | None
    errors: int
    ended: int
    failed: int


class FindingOut(Schema):
    """One limit: the new side's `value` from `n` sessions, and the `other` side's from `n_other`.

    Values are micro-dollars per call for `cost`, else shares from 0 to 1; null if unknown. `few`:
    fewer than `needed` sessions.
    """

    name: str
    state: Literal["ok", "broken", "few", "off"]
    value: float | None
    other: float | None
    n: int
    n_other: int
    needed: int
    bound: int | None
    basis: Literal["measured", "estimated"]


class RolloutSeen(RolloutOut):
    """A rollout with the current figures of its sessions."""

    new: SideOut
    other: SideOut
    bounds: list[FindingOut]


class RolloutList(Schema):
    """Rollouts, newest first."""

    rollouts: list[RolloutOut]
