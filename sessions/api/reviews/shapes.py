"""API schemas for reviews."""

from __future__ import annotations

from typing import Annotated, Literal

from ninja import Schema
from pydantic import Field, StrictInt

from sessions.api.web.shapes import BIGGEST, BodyIn, Text


class ReviewOut(Schema):
    """One person's review of a compaction: goal, constraints, state and next from 1 to 5, and
    whether the summary invents nothing; `marks` give the true state of facts."""

    reviewer: str
    scores: dict[str, int | bool]
    verdict: Literal["pass", "fix", "fail"]
    note: str
    marks: dict[str, Literal["kept", "retrievable", "lost", "unsupported"]]
    submitted: str


class ReviewItemOut(Schema):
    """A compaction in the review queue: why it was selected, how many reviewers it needs, and their
    reviews.

    Until it is finished, reviewers see only their own review, and programs none.
    """

    id: str
    session: str
    run: Literal["recorded", "managed", "simulated"]
    revision: int
    step: int
    policy: str | None
    reason: Literal["share", "low_score", "after_effects", "hand"]
    wanted: int
    created: str
    finished: str | None
    reviews: list[ReviewOut]
    url: str


class ReviewList(Schema):
    """Compactions in the review queue, newest first; pass `next` as `after` to get the next
    page."""

    reviews: list[ReviewItemOut]
    next: str | None


class ReviewIn(BodyIn):
    """The compaction to add to the queue."""

    session: Text = Field(description="external id or UUID")
    run: Text = Field(
        "managed", description="managed, recorded, the id of a run, or a policy's name"
    )
    revision: Annotated[StrictInt, Field(ge=1, le=BIGGEST)] = Field(description="its number")
