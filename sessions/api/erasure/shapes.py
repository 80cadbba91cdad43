"""API schemas for erasures."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field, StrictBool, StrictInt

from sessions.api.web.shapes import StorableText

Kind = Literal["session", "task", "metadata", "text", "member", "team"]


class ErasureIn(Schema):
    """What to erase: `value` is a session's id, a task, metadata as KEY=VALUE, a text, a member's
    name, or the team's slug. With `dry_run`, only count."""

    kind: Kind
    value: Annotated[StorableText, Field(min_length=1, max_length=1000)]
    reason: Annotated[StorableText, Field(max_length=300)] = ""
    dry_run: StrictBool = False


class ScopeOut(Schema):
    """What an erasure would delete: sessions with their sub-agents, rows by table, bytes of
    messages. `delivered` shares stay in the records of sessions that received them. `first` are the
    ids of up to 20 of the sessions; `held` is the legal hold that forbids it."""

    kind: Kind
    sessions: int
    rows: dict[str, int]
    bytes: int
    delivered: int
    first: list[str]
    held: str | None


class ErasureOut(Schema):
    """An erasure. `state` is running, done or failed; `receipt` is null until it is done."""

    id: str
    kind: str
    content_only: bool
    state: str
    by: str
    reason: str
    sessions: int
    rows: dict[str, int]
    created: str
    finished: str | None
    job: str | None
    receipt: dict[str, Any] | None


class ErasureList(Schema):
    """The erasures of a team, newest first."""

    erasures: list[ErasureOut]


class ReceiptVerdictOut(Schema):
    """Whether a receipt holds: its `signature` is valid, changed, or of another key; `sessions` and
    `content` are what of it is in the store, `stored_again` what later sessions sent again."""

    holds: bool
    signature: str
    sessions: int
    content: int
    stored_again: int
    checked: int
    text: str


Days = Annotated[StrictInt, Field(ge=1, le=36_500)]
Reason = Annotated[StorableText, Field(min_length=1, max_length=300)]


class RetentionIn(Schema):
    """For how many days to keep content and sessions; null is forever. With `dry_run`, only count
    what that would erase."""

    content_days: Days | None
    session_days: Days | None
    dry_run: StrictBool = False


class RetentionOut(Schema):
    """For how many days a team keeps content and sessions; null is forever."""

    content_days: int | None
    session_days: int | None


class DueOut(Schema):
    """What a retention erases: sessions whose content goes, sessions that go, bytes of their
    messages. `at_work` of them got something in the last 30 minutes, and go later; `held` more stay
    because of a hold."""

    content: int
    sessions: int
    bytes: int
    held: int
    at_work: int


class ArchivingIn(Schema):
    """After how many days from their last step to archive sessions; null is never. With `dry_run`,
    only count them."""

    days: Days | None
    dry_run: StrictBool = False


class ArchivingOut(Schema):
    """After how many days a team's sessions are archived; null is never. `sessions` are archived,
    with `text_bytes` of messages in `bytes`."""

    days: int | None
    sessions: int
    bytes: int
    text_bytes: int


class ColdOut(Schema):
    """What is archived: sessions, bytes of their messages. `at_work` of them got something in the
    last 30 minutes or have unfinished jobs, and are archived later; `held` more stay because of a
    hold."""

    sessions: int
    bytes: int
    held: int
    at_work: int


class HoldIn(Schema):
    """What to hold: `value` is a session's id or a task's name; nothing for the team."""

    kind: Literal["session", "task", "team"]
    value: Annotated[StorableText, Field(max_length=300)] = ""
    reason: Reason


class ReleaseIn(Schema):
    """Why a hold ends."""

    reason: Reason


class HoldOut(Schema):
    """A legal hold. `value` is a session's id or a task's name; empty for the team."""

    id: str
    kind: str
    value: str
    reason: str
    by: str
    created: str


class HoldList(Schema):
    """The legal holds of a team, oldest first."""

    holds: list[HoldOut]
