"""What goes into and comes out of the rollouts' part of the API, for its document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field, StrictInt

from sessions.actions.bounds import BOUNDS, MOST_SESSIONS, SESSIONS
from sessions.actions.rollouts import NOTE_LENGTH, REASON_LENGTH
from sessions.api.incoming import Text, Wanted
from sessions.models import Rollout

_STATES = ", ".join(Rollout.State.values)


def _bound(name: str) -> Any:
    bound = BOUNDS[name]
    text = bound.text(bound.default)
    return Field(bound.default, ge=0, le=bound.high, description=f"{bound.title}, usually {text}")


Percent = StrictInt | None


class Guardrail(Schema):
    """What pauses a rollout by itself, in whole percents; a bound that is null is off."""

    sessions: StrictInt = Field(
        SESSIONS, ge=1, le=MOST_SESSIONS, description="on a side, before a bound is looked at"
    )
    cost: Percent = _bound("cost")
    recall: Percent = _bound("recall")
    ledger: Percent = _bound("ledger")
    reviews: Percent = _bound("reviews")
    outcomes: Percent = _bound("outcomes")


class RolloutWanted(Wanted):
    """Which version is to go out, why, and what is to stop it."""

    version: Text = Field(
        description="of a policy, as name@3 or by its name", examples=["unmanaged"]
    )
    note: Annotated[Text, Field(max_length=NOTE_LENGTH)] = Field("", description="why, for people")
    guardrail: Guardrail | None = Field(None, description="left out, the usual bounds")
    simulation: Text | None = Field(None, description="id of a simulation of it, as evidence")


class StageWanted(Wanted):
    """To which share a rollout is to be brought: the stage that comes next."""

    share: Literal[50, 100] = Field(description="percent of the new sessions")


class ReasonWanted(Wanted):
    """Why, for those who look at it later."""

    reason: Annotated[Text, Field(max_length=REASON_LENGTH)] = ""


class RolloutTold(Schema):
    """A rollout as it stands; `before` null stands for the setting DEFAULT_POLICY.

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


class SideTold(Schema):
    """The sessions of one side: how many, and their sums; `paid` in micro-dollars, as reported."""

    sessions: int
    steps: int
    paid: int | None
    errors: int
    ended: int
    failed: int


class FindingTold(Schema):
    """One bound: the new side's `value` from `n` sessions beside the `other` from `n_other`.

    Values are micro-dollars per call for `cost`, else shares from 0 to 1; null where nothing
    tells. `few`: not yet `needed` sessions.
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


class RolloutSeen(RolloutTold):
    """A rollout, and what its sessions have come to by now."""

    new: SideTold
    other: SideTold
    bounds: list[FindingTold]


class RolloutList(Schema):
    """Rollouts, the newest first."""

    rollouts: list[RolloutTold]
