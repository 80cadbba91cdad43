"""API schemas for sessions and imports."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field, StrictInt

from compaction.context.blocks import Kind
from sessions.api.jobs.shapes import JobAsked
from sessions.api.web.shapes import BIGGEST, BodyIn, Json, Text
from sessions.models.search.search_words import QUERY_CHARS


class WindowOut(Schema):
    """The fill of the window, in tokens; `delay_ms` is the recommended delay before the next call.

    `used` is `counted`, our own count, corrected by reported usage of earlier calls.
    """

    used: int
    counted: int
    window: int
    room: int
    share: float
    state: Literal["ok", "warn", "trigger", "over"]
    trigger: int | None
    target: int | None
    delay_ms: int


class Tokens(Schema):
    """Tokens of the context, current and peak. `ratio` is permille of o200k tokens, fixed for a
    live session; `learned_ratio` is the one that its usage shows, which its simulations use."""

    used: int | None
    peak: int
    ratio: int
    learned_ratio: int | None
    basis: Literal["exact", "calibrated", "estimated"]


class SessionOut(Schema):
    """A session; `policy_from` says who selected its policy: the creating request, a rollout, the
    team, or the server default."""

    id: str
    external_id: str
    agent: str
    model: str
    title: str
    task: str
    policy: str | None
    policy_from: Literal["request", "rollout", "team", "default"] | None
    window: int
    window_assumed: bool
    steps: int
    messages: int
    turns: int
    tokens: Tokens
    budget: WindowOut
    outcome: str
    running: bool = Field(description="whether its agent is probably still running")
    paused: dict[str, str] | None = Field(
        description="who paused it (`by`), `reason` and since when (`at`); null while it may go on"
    )
    url: str
    demo: bool
    created: str
    version: int


class EffectiveValue(Schema):
    """One setting of a session's policy: `source` says where it comes from; `strategy` is empty for
    settings of the whole policy."""

    path: str
    strategy: str
    name: str
    value: Any
    source: Literal["request", "policy", "preset", "environment", "default"]
    help: str


class SessionPolicy(Schema):
    """The policy of a session, as a document and setting by setting; empty without a policy."""

    policy: str | None
    policy_from: Literal["request", "rollout", "team", "default"] | None
    document: dict[str, Any] | None
    values: list[EffectiveValue]


class SessionPut(SessionOut):
    """A session, with notes on the request, such as unknown fields."""

    notes: list[str]


class SessionList(Schema):
    """A page of sessions, newest first; pass `next` as `cursor` to get the next page."""

    sessions: list[SessionOut]
    next: str | None


class ImportAsked(JobAsked):
    """A queued import, with its id and the page of its report."""

    import_: str = Field(alias="import")
    files: int
    url: str


class SessionIn(BodyIn):
    """Session fields; omitted ones stay unchanged."""

    agent: Text | None = Field(None, description="the program, such as a name and version")
    model: Text | None = Field(
        None,
        description="determines prices, token counting and window",
        examples=["claude-sonnet-5"],
    )
    task: Text | None = Field(
        None, description="what the session works on; sessions of one task can be compared"
    )
    title: Text | None = Field(
        None, description="for lists; default: the first words of the first message"
    )
    parent: Text | None = Field(
        None, description="external id of the session that started this one"
    )
    parent_call: Text | None = Field(
        None, description="id of the tool call that started this session"
    )
    policy: Text | None = Field(None, description="name of a policy, or name@version")
    window: Annotated[StrictInt, Field(ge=1, le=BIGGEST)] | None = Field(
        None, description="tokens; default: the model's"
    )
    use_case_preset: Text | None = Field(
        None, description="qa, debugging, long-task, or a preset; alternative to `policy`"
    )
    history_window_size: Annotated[StrictInt, Field(ge=0, le=BIGGEST)] | None = Field(
        None, description="maximum messages kept by the sliding window: `window.messages`"
    )
    token_budget_per_agent: Annotated[StrictInt, Field(ge=0, le=BIGGEST)] | None = Field(
        None, description="conversation tokens that count as full: `window.budget`"
    )
    token_budget_per_task: Annotated[StrictInt, Field(ge=0, le=BIGGEST)] | None = Field(
        None, description="tokens of a budget for its task, if there is none: `task_budget`"
    )
    policy_overrides: dict[str, Json] | None = Field(
        None,
        description="single settings, for this session only",
        examples=[{"compact.trigger": 0.8, "offload.age": 8, "reserve": 8000}],
    )
    outcome: Literal["succeeded", "failed", "abandoned"] | None = Field(
        None, description="the outcome"
    )
    opening: Literal["none", "board", "project"] | None = Field(
        None,
        description="knowledge to start with: none, the board of its task (or its parent's "
        "summary and board), or also that of its project; by default the board of its task, if "
        "its policy's `board` is above 0",
    )
    project: Text | None = Field(
        None, description="the project, such as a repository; default: project or cwd in metadata"
    )
    metadata: dict[str, Json] | None = Field(
        None, description="any JSON object; unknown fields are added to it"
    )


HitState = Literal["in_context", "named", "retrievable", "lost", "left", "ended"]


class SearchIn(Schema):
    """What to search for; each property narrows."""

    q: str = Field("", max_length=QUERY_CHARS, description='words; "quotes" keep words together')
    agent: str = Field("", max_length=120)
    model: str = Field("", max_length=120)
    tool: str = Field("", max_length=120, description="blocks of this tool")
    kind: Kind | None = Field(None, description="blocks of this kind")
    error: bool = Field(False, description="only results of failed tool calls")
    since: str = Field("", max_length=40, description="sessions from this time on, ISO 8601")
    until: str = Field("", max_length=40, description="sessions before this time, ISO 8601")
    cost: float | None = Field(None, ge=0, le=10**9, description="lowest cost in dollars")
    state: HitState | None = Field(None, description="blocks that end the session like this")
    demo: bool = Field(False, description="demo sessions too, where a team has others")


class SearchedSession(Schema):
    """The session of a hit."""

    id: str
    external_id: str
    title: str
    agent: str
    model: str
    demo: bool


class ExcerptPart(Schema):
    """A part of an excerpt, and whether it matches."""

    text: str
    matches: bool


class HitOut(Schema):
    """A block that holds what was searched.

    `step` is the first whose context has it. `state` is where it is at the end of `run`:
    `in_context`; `named`, only in a replacement's text; `retrievable`, offloaded; `lost`; or
    `left`, by a rewind; since step `state_since`. With `replacement`, the text is that of a stub or
    summary in a managed context, `block` the first that it replaced, and `state` may be `ended`:
    it was replaced or undone itself.
    """

    session: SearchedSession
    block: str
    message: int
    index: int
    step: int
    kind: str
    tool: str
    error: bool
    excerpt: list[ExcerptPart]
    run: Literal["recorded", "managed"]
    replacement: bool
    state: HitState
    state_since: int | None
    url: str


class SearchOut(Schema):
    """Hits, newest first; `waiting` counts sessions with text that is not indexed, up to 1,000,
    `archived` those whose text is not searched."""

    hits: list[HitOut]
    next: int | None
    complete: bool
    waiting: int
    archived: int
