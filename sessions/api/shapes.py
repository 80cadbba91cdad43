"""What goes in and out of the API, for its document and for checking what comes in.

Answers are written as they are and not checked against these: the tests do that.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import ConfigDict, Field, StrictBool, StrictInt, StrictStr

from compaction.policy import PRESETS

MESSAGES_AT_ONCE = 1000
BIGGEST = 2_147_483_647
Json = Any
Text = StrictStr
Count = Annotated[StrictInt, Field(ge=0, le=BIGGEST)]


class Wanted(Schema):
    """A body; fields that are none of ours are let through, and kept where there is a place."""

    model_config = ConfigDict(extra="allow")


class SessionWanted(Wanted):
    """What an agent says of its session; what it leaves out stays as it was."""

    agent: Text | None = Field(
        None, description="the program that runs, such as a name and version"
    )
    model: Text | None = Field(None, examples=["claude-sonnet-4-5"])
    task: Text | None = None
    title: Text | None = None
    parent: Text | None = Field(
        None, description="external id of the session that started this one"
    )
    parent_call: Text | None = Field(None, description="id of the tool call in it that did")
    policy: Text | None = Field(None, description="name of a policy, or name@version")
    window: Annotated[StrictInt, Field(ge=1, le=BIGGEST)] | None = Field(
        None, description="tokens; else that of the model"
    )
    outcome: Literal["succeeded", "failed", "abandoned"] | None = None
    metadata: dict[str, Json] | None = None


class MessagesWanted(Wanted):
    """A batch of messages as the provider takes them; all of it is stored, or nothing."""

    messages: list[dict[str, Json]] | None = Field(
        None,
        max_length=MESSAGES_AT_ONCE,
        description="in the form of Anthropic, of OpenAI, or our own",
        examples=[[{"role": "user", "content": "What does tests/conftest.py do?"}]],
    )
    tools: list[dict[str, Json]] | None = Field(None, description="where they changed")
    system: Text | list[dict[str, Json]] | None = Field(None, description="where it changed")
    model: Text | None = None
    usage: dict[str, Json] | None = Field(
        None, description="as the provider reported it for the call that gave these messages"
    )
    call: Text | None = Field(None, description="the provider's id of that call")
    context_id: Text | None = Field(None, description="of the context that was sent with that call")
    history: StrictBool | None = Field(
        None, description="the whole conversation again; left out, it is recognised"
    )
    stop_reason: Text | None = None


class CallWanted(Wanted):
    """What a provider reported of one model call."""

    usage: dict[str, Json]
    call: Text | None = None
    step: Annotated[StrictInt, Field(ge=1, le=BIGGEST)] | None = None
    model: Text | None = None
    context_id: Text | None = None
    started_at: StrictInt | Text | None = Field(None, description="ISO 8601, or ms since the epoch")
    stop_reason: Text | None = None


class PinWanted(Wanted):
    """Which message is to stay verbatim."""

    seq: Annotated[StrictInt, Field(ge=1, le=BIGGEST)]


class CompactionWanted(Wanted):
    """What to mind when the context is compacted."""

    instructions: Annotated[StrictStr, Field(max_length=10_000)] = ""


class SimulationWanted(Wanted):
    """Which policy to try."""

    policy: Text = Field(json_schema_extra={"enum": list(PRESETS)})


class SelectionWanted(Schema):
    """Which lines of a text."""

    lines: str = Field("", max_length=40, description="a range, from 1: 10-40, 10- or 10")
    grep: str = Field("", max_length=1000, description="RE2: the lines that match")
    head: int | None = Field(None, ge=1, le=BIGGEST, description="so many first lines")
    tail: int | None = Field(None, ge=1, le=BIGGEST, description="so many last lines")
    context: int = Field(0, ge=0, le=20, description="lines around each match")
    offset: int = Field(0, ge=0, le=BIGGEST, description="as `rest` of the last answer says")

    def first(self) -> str:
        """The name of the first choice that was made."""
        return next((name for name in ("lines", "grep", "head", "tail") if getattr(self, name)), "")


class Fault(Schema):
    """One thing that is wrong: `pointer` is a JSON pointer into the body, or `?name`."""

    pointer: str
    detail: str


class Problem(Schema):
    """What went wrong, and in `detail` what to do about it (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[Fault] = []


class Budget(Schema):
    """How full the window is, in tokens; `delay_ms` is how long to wait before the next call."""

    used: int
    window: int
    room: int
    share: float
    state: Literal["ok", "warn", "trigger", "over"]
    trigger: int | None
    target: int | None
    delay_ms: int


class Tokens(Schema):
    """Of the context: now and at its fullest; `ratio` is permille of o200k tokens."""

    used: int | None
    peak: int
    ratio: int
    basis: Literal["exact", "calibrated", "estimated"]


class SessionTold(Schema):
    """A session as it stands."""

    id: str
    external_id: str
    agent: str
    model: str
    title: str
    task: str
    policy: str | None
    window: int
    window_assumed: bool
    steps: int
    messages: int
    turns: int
    tokens: Tokens
    budget: Budget
    outcome: str
    url: str
    created: str
    version: int


class SessionList(Schema):
    """A page of sessions, newest first; `next` is the cursor of what follows, or null."""

    sessions: list[SessionTold]
    next: str | None


class Stored(Schema):
    """A message that was stored, and the tokens that it adds."""

    seq: int
    tokens: int
    estimated: bool
    blocks: int


class Advice(Schema):
    """How long to wait before the next call, and why."""

    delay_ms: int
    level: str
    text: str


class Delivered(Schema):
    """What became of a batch, and how the session stands now."""

    appended: int
    known: int
    first_seq: int | None
    last_seq: int | None
    messages: list[Stored]
    steps: int
    tokens: int
    budget: Budget
    advice: Advice
    policy: dict[str, Json] | None
    job: str | None
    notes: list[str]


class MessageList(Schema):
    """Stored messages by number; `next` is the `after` of what follows, or null."""

    messages: list[dict[str, Json]]
    next: int | None


class Context(Schema):
    """The context to send: `system`, `tools` and `messages` go to the provider as they are."""

    context_id: str | None
    format: str
    step: int
    revision: int
    seq: int
    tokens: int
    budget: Budget
    missing: list[str]
    notes: list[str]
    system: list[dict[str, Json]] | None = None
    tools: list[dict[str, Json]] | None = None
    messages: list[dict[str, Json]] | None = None
    blocks: list[dict[str, Json]] | None = None


class ReadBack(Schema):
    """Lines of what was offloaded."""

    ref: str
    lines: list[int]
    total_lines: int
    text: str
    truncated: bool
    rest: dict[str, Json] | None


class CallTold(Schema):
    """A model call with its usage: `total` = fresh + cache_read + cache_write_5m + _1h."""

    step: int
    usage: dict[str, int | None]
    reconciles: bool
    cost_microusd: int | None


class Pins(Schema):
    """Numbers of the pinned messages."""

    pins: list[int]


class JobAsked(Schema):
    """A job that was asked for, and where to watch it."""

    job: str
    job_url: str


class SimulationAsked(JobAsked):
    """The same, and the name of the run that it will make."""

    run: str


class ImportAsked(JobAsked):
    """The same, with the import and the page of its report."""

    import_: str = Field(alias="import")
    files: int
    url: str


class JobTold(Schema):
    """A job: how far it is, and how it ended."""

    id: str
    kind: str
    state: Literal["queued", "running", "done", "partial", "failed", "cancelled"]
    attempts: int
    done_units: int
    total_units: int | None
    unit: str
    result: dict[str, Json] | None
    problem: dict[str, Json] | None
    version: int
    created: str
    started: str | None
    finished: str | None


class RevisionTold(Schema):
    """One change of the served context; tokens before and after it."""

    number: int
    step: int
    trigger: str
    reason: str
    tokens_before: int | None
    tokens_after: int | None
    edits: int


class RevisionList(Schema):
    """The changes of the served context, in order."""

    revisions: list[RevisionTold]
