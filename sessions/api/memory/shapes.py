"""API schemas for boards, shares and memory."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field, StrictStr

from compaction.board.board import LONGEST
from sessions.api.web.shapes import BodyIn, Text

Kind = Literal["task", "plan", "agent", "knowledge", "task_done"]


class NoteIn(BodyIn):
    """A note for the board of a session's task, or its own board."""

    kind: Kind = Field(description="task replaces the previous one; all others are appended")
    text: Annotated[StrictStr, Field(max_length=LONGEST)]
    key: Annotated[StrictStr, Field(max_length=190)] = Field(
        "",
        description="replaces the note with this key; without a key, equal text is the same note",
    )
    files: dict[
        Annotated[str, Field(max_length=600)], Annotated[StrictStr, Field(max_length=64)]
    ] = Field(
        default_factory=dict,
        max_length=200,
        description="paths it depends on, each with the SHA-256 of its text, or empty; the note is "
        "stale once one changes",
    )


class NoteOut(Schema):
    """A note on a board. `by` is its origin; `share` is the id of the share it came with; `stale`
    says why it may no longer hold. Secrets are masked."""

    id: int
    kind: Kind
    key: str
    text: str
    agent: str
    task: str
    at: int | None
    by: Literal["code", "agent", "person", "share"]
    session: str | None
    message: int | None
    share: int | None
    untrusted: bool
    stale: str
    files: dict[str, str]
    evidence: int = Field(description="how often it was seen, for project knowledge")


class BoardOut(Schema):
    """A board: its owner, a page of its notes from the oldest on, and its XML for a model with its
    tokens (estimated) and the number of notes included."""

    kind: Literal["task", "session", "project"]
    name: str
    entries: int
    notes: list[NoteOut]
    next: str | None
    xml: str
    tokens: int
    included: int


class ShareIn(BodyIn):
    """A manual share."""

    summary: Annotated[StrictStr, Field(max_length=40_000)] = Field(
        "", description="default: the newest report on the board, or the last summary"
    )
    key: Annotated[StrictStr, Field(max_length=190)] = Field(
        "", description="a key that was already shared is not shared again"
    )


class ToolResult(Schema):
    """A tool result that can be read back in its session."""

    ref: str
    tool: str
    path: str


class ShareOut(Schema):
    """A session's share: `version` counts its shares, `files` maps paths to SHA-256 of texts (empty
    if unknown), `delivered` is the number of sessions that received it, `sent` when that was
    finished."""

    id: int
    session: str
    version: int
    cause: Literal["task_done", "compaction", "by_hand"]
    agent: str
    task: str
    step: int
    summary: str
    board: str
    results: list[ToolResult]
    files: dict[str, str]
    masked: dict[str, int]
    delivered: int
    sent: str | None
    created: str


class ShareList(Schema):
    """Shares of a session, newest first, and shares it received."""

    shares: list[ShareOut]
    received: list[ShareOut]
    next: str | None


class SubscriptionIn(BodyIn):
    """A subscription of a session to an agent, a task, or the team."""

    session: Text = Field(description="external id or UUID")
    kind: Literal["agent", "task", "team"]
    value: Annotated[StrictStr, Field(max_length=300)] = Field(
        "", description="name of the agent or task; empty for the team"
    )


class SubscriptionOut(Schema):
    """One subscription."""

    id: int
    session: str
    kind: Literal["agent", "task", "team"]
    value: str
    created: str


class SubscriptionList(Schema):
    """Subscriptions, newest first; pass `next` as `cursor` to get the next page."""

    subscriptions: list[SubscriptionOut]
    next: str | None


class RememberedOut(Schema):
    """A search hit: `kind` is that of a note, or summary for a share. `session` and `message` are
    its source, `board` its board; `untrusted` means not verified, `demo` that a demo session left
    it."""

    kind: str
    text: str
    score: float
    stale: str
    untrusted: bool
    agent: str
    task: str
    board: dict[str, Any]
    session: str | None
    message: int | None
    note: int | None
    share: int | None
    created: str
    demo: bool


class MemoryOut(Schema):
    """Hits, best first, and the words searched for."""

    query: list[str]
    found: list[RememberedOut]
