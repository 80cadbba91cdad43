"""What goes into and comes out of the API about boards, shares and memory."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field, StrictStr

from compaction.board.board import LONGEST
from sessions.api.incoming import Text, Wanted

Kind = Literal["task", "plan", "agent", "knowledge", "task_done"]


class AnchorWanted(Wanted):
    """An entry for the board of a session's task, or its own."""

    kind: Kind = Field(description="task is set; all others are appended")
    text: Annotated[StrictStr, Field(max_length=LONGEST)]
    key: Annotated[StrictStr, Field(max_length=190)] = Field(
        "", description="another of the same key takes its place; else the same text is the same"
    )
    files: dict[
        Annotated[str, Field(max_length=600)], Annotated[StrictStr, Field(max_length=64)]
    ] = Field(
        default_factory=dict,
        max_length=200,
        description="paths that it rests on, each with the SHA-256 of its text, or empty: it is "
        "stale once one changed",
    )


class AnchorTold(Schema):
    """One entry of a board. `by` says who put it there; `share` is the number of the share that it
    came with, `stale` why it may no longer hold. Secrets are masked."""

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
    evidence: int = Field(description="how often it was seen, for what is known of a project")


class BoardTold(Schema):
    """A board: whose it is, a page of its entries from the oldest on, and as XML for a model, with
    its tokens (estimated) and how many of its entries that tells."""

    kind: Literal["task", "session", "project"]
    name: str
    entries: int
    anchors: list[AnchorTold]
    next: str | None
    xml: str
    tokens: int
    told: int


class ShareWanted(Wanted):
    """What to share by hand."""

    summary: Annotated[StrictStr, Field(max_length=40_000)] = Field(
        "", description="left out, the newest report on the board, or the last summary"
    )
    key: Annotated[StrictStr, Field(max_length=190)] = Field(
        "", description="what is shared under it already is not shared again"
    )


class ToolResult(Schema):
    """A result that can be read back in its session."""

    ref: str
    tool: str
    path: str


class ShareTold(Schema):
    """What a session shared: `version` counts its shares, `files` are SHA-256 of texts by path
    (empty where unknown), `delivered` how many sessions it came to, `sent` when that was done."""

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
    """Shares of a session, newest first, and those that came to it."""

    shares: list[ShareTold]
    received: list[ShareTold]
    next: str | None


class SubscriptionWanted(Wanted):
    """Which session is to have what is shared from now on, and by whom."""

    session: Text = Field(description="external id or UUID")
    kind: Literal["agent", "task", "team"]
    value: Annotated[StrictStr, Field(max_length=300)] = Field(
        "", description="name of the agent, or the task; none for the team"
    )


class SubscriptionTold(Schema):
    """One subscription."""

    id: int
    session: str
    kind: Literal["agent", "task", "team"]
    value: str
    created: str


class SubscriptionList(Schema):
    """Subscriptions, newest first; `next` is the cursor of what follows, or null."""

    subscriptions: list[SubscriptionTold]
    next: str | None


class RememberedTold(Schema):
    """One thing that was found: kind is that of an anchor, or summary for a share. `session` and
    `message` are where it was read, `board` where it stands; `untrusted`: nobody checked it."""

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
    anchor: int | None
    share: int | None
    created: str


class MemoryTold(Schema):
    """What was found, the best first, and the words that were looked for."""

    query: list[str]
    found: list[RememberedTold]
