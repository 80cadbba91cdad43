"""API schemas for erasures."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field, StrictBool, StrictStr

Kind = Literal["session", "task", "metadata", "text", "member", "team"]


class ErasureIn(Schema):
    """What to erase: `value` is a session's id, a task, metadata as KEY=VALUE, a text, a member's
    name, or the team's slug. With `dry_run`, only count."""

    kind: Kind
    value: Annotated[StrictStr, Field(min_length=1, max_length=1000)]
    reason: Annotated[StrictStr, Field(max_length=300)] = ""
    dry_run: StrictBool = False


class ScopeOut(Schema):
    """What an erasure would delete: sessions with their sub-agents, rows by table, bytes of
    messages. `delivered` shares stay in the records of sessions that received them."""

    kind: Kind
    sessions: int
    rows: dict[str, int]
    bytes: int
    delivered: int


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
