"""API schemas for live agents."""

from __future__ import annotations

from typing import Annotated

from ninja import Schema
from pydantic import Field, StrictBool, StrictInt, StrictStr

from compaction.context.edits import Trigger
from compaction.render.paths import FOLDER, LONGEST_FOLDER
from sessions.api.budgets.shapes import BudgetUse
from sessions.api.record.shapes import WindowOut
from sessions.api.tools.shapes import Toolset
from sessions.api.web.shapes import BIGGEST, BodyIn, Json, Text

MESSAGES_AT_ONCE = 1000


class StoredOut(Schema):
    """A stored message and its tokens."""

    seq: int
    tokens: int
    estimated: bool
    blocks: int


class Advice(Schema):
    """The recommended delay before the next call, and why; `retry_after` is `delay_ms` in
    seconds. `level` is ok, warn, trigger, over, or paused."""

    delay_ms: int
    retry_after: float
    level: str
    text: str


class LastRevision(Schema):
    """The newest revision of a managed context; tokens before and after its edits."""

    revision: int
    step: int
    trigger: Trigger
    tokens_before: int
    tokens_after: int


class ActivePolicy(Schema):
    """The policy of a session as `name@number`; `due` if the next call triggers a compaction."""

    name: str
    head: int
    due: bool
    last: LastRevision | None


class DeliveredOut(Schema):
    """The result of an append, and the state of the session. `recorded_revision` rises whenever
    a rewind or a change of tools or system takes something out of the recorded context."""

    appended: int
    known: int
    first_seq: int | None
    last_seq: int | None
    recorded_revision: int
    messages: list[StoredOut]
    steps: int
    tokens: int
    budget: WindowOut
    advice: Advice
    policy: ActivePolicy
    job: str | None
    budgets: list[BudgetUse]
    warnings: list[str]
    notes: list[str]


class MessageList(Schema):
    """Stored messages by number; pass `next` as `after` to get the next page."""

    messages: list[dict[str, Json]]
    next: int | None


class ContextOut(Schema):
    """The context to send: `system`, `tools` and `messages` go to the provider unchanged.

    `recited` is the part of `tokens` that the policy repeats at the end. `retry_of` is the failed
    step that the call retries. `tool_choice` belongs in the request, too. `files` are the names of
    the files in the folder `offloads` that the context names: write each before the call, from
    `GET …/offloads/{file}`. If `since` names the context that was asked about, `messages` follow
    the first `keep` of that one, `files` are those it did not name, and `system` and `tools` are
    null if they did not change. For a model that binds thinking to what was before it,
    `thinking` belongs into the request's own, and `betas` into the header `anthropic-beta`: then
    a thinking block that is no longer valid is dropped, and the request is not refused. Messages
    with `clear_at`, in which a policy recites, are refused without their beta.
    """

    context_id: str | None
    format: str
    step: int
    revision: int
    seq: int
    tokens: int
    budget: WindowOut
    budgets: list[BudgetUse]
    missing: list[str]
    recited: int
    retry_of: int | None = None
    toolset: Toolset | None = None
    tool_choice: Json = None
    thinking: dict[str, Json] | None = None
    betas: list[str] = []
    notes: list[str]
    files: list[str] = []
    since: str | None = None
    keep: int = 0
    system: list[dict[str, Json]] | None = None
    tools: list[dict[str, Json]] | None = None
    messages: list[dict[str, Json]] | None = None
    blocks: list[dict[str, Json]] | None = None


class Recitation(Schema):
    """The text recited at the end of a context; empty if there is none."""

    step: int
    tokens: int
    text: str


class ReadBackOut(Schema):
    """Lines of an offloaded text; `content` has them as blocks, followed by its images."""

    ref: str
    lines: list[int]
    total_lines: int
    text: str
    content: list[dict[str, Json]]
    truncated: bool
    rest: dict[str, Json] | None


class IterationOut(Schema):
    """One of several requests behind one response; `model` is null for the call's own."""

    model: str | None
    usage: dict[str, int | None]


class CallOut(Schema):
    """A model call with its usage: `total` = uncached + cache_read + cache_write_5m + _1h.

    `iterations` is empty if the response took one request.
    """

    step: int
    usage: dict[str, int | None]
    iterations: list[IterationOut]
    reconciles: bool
    cost_microusd: int | None


class Pins(Schema):
    """Numbers of the pinned messages."""

    pins: list[int]


class RevisionOut(Schema):
    """One change of the managed context: tokens before and after, and measured times: counting
    tokens, the rest of the fold's step (in ms), and writing the summary."""

    number: int
    step: int
    trigger: Trigger
    reason: str
    tokens_before: int | None
    tokens_after: int | None
    estimate_ms: float | None
    shaping_ms: float | None
    summary_ms: int | None
    edits: int


class RevisionList(Schema):
    """The changes of the managed context, in order."""

    revisions: list[RevisionOut]


Transformations = Annotated[
    list[dict[str, Json]],
    Field(max_length=10_000, description="of the provider's answer: thinking that it dropped"),
]


class MessagesIn(BodyIn):
    """A batch of messages in the provider's format; all or nothing is stored."""

    messages: list[dict[str, Json]] | None = Field(
        None,
        max_length=MESSAGES_AT_ONCE,
        description="in Anthropic's, OpenAI's or our own format",
        examples=[[{"role": "user", "content": "What does tests/conftest.py do?"}]],
    )
    tools: list[dict[str, Json]] | None = Field(None, description="if they changed")
    system: Text | list[dict[str, Json]] | None = Field(None, description="if it changed")
    model: Text | None = Field(
        None, description="the model that produced these messages; default: the session's"
    )
    usage: dict[str, Json] | None = Field(
        None, description="as reported by the provider for the call that produced these messages"
    )
    call: Text | None = Field(None, description="the provider's id of that call")
    context_id: Text | None = Field(
        None, description="id of the context that was sent with that call"
    )
    history: StrictBool | None = Field(
        None,
        description="true: the whole conversation, later messages are taken back; false: new "
        "messages; default: recognized automatically",
    )
    after: Annotated[StrictInt, Field(ge=1, le=BIGGEST)] | None = Field(
        None,
        description="number of the last message that you know of; 422 if there are later ones: "
        "then send the whole history",
    )
    recorded_revision: Annotated[StrictInt, Field(ge=0, le=BIGGEST)] | None = Field(
        None,
        description="revision of the recorded context that you know of; 422 if there are later "
        "ones, by a rewind or other tools: then send the whole history",
    )
    stop_reason: Text | None = Field(None, description="why the model stopped")
    input_transformations: Transformations | None = None


class CallIn(BodyIn):
    """Usage of one model call, as reported by the provider."""

    usage: dict[str, Json] = Field(description="as reported by the provider")
    call: Text | None = Field(None, description="the provider's id of the call")
    step: Annotated[StrictInt, Field(ge=1, le=BIGGEST)] | None = Field(
        None, description="number of the call in its session, from 1"
    )
    model: Text | None = Field(None, description="default: the session's")
    context_id: Text | None = Field(None, description="id of the context that was sent with it")
    started_at: StrictInt | Text | None = Field(None, description="ISO 8601, or ms since the epoch")
    stop_reason: Text | None = Field(None, description="why the model stopped")
    input_transformations: Transformations | None = None


class PinIn(BodyIn):
    """The message to pin."""

    seq: Annotated[StrictInt, Field(ge=1, le=BIGGEST)]


class CompactionIn(BodyIn):
    """Instructions for the compaction."""

    instructions: Annotated[StrictStr, Field(max_length=10_000)] = ""
    task_done: StrictBool = Field(
        False,
        description="whether the task is done; then the summary uses the form for finished tasks",
    )


class ContextIn(Schema):
    """The context to get; default: that for the next call."""

    at: int | None = Field(None, ge=1, le=BIGGEST, description="as of this step")
    retry_of: int | None = Field(
        None,
        ge=1,
        le=BIGGEST,
        description="a failed step to retry with the next call: its context and error",
    )
    read_back: bool = Field(True, description="list the tool `read_back` if the policy edits")
    offloads: str = Field(
        "",
        max_length=LONGEST_FOLDER,
        pattern=FOLDER,
        description="folder where you keep offloads as files; paths in it replace references",
    )
    context_id: str = Field(
        "", description="reproduce the context with this id; overrides the other parameters"
    )


class SelectionIn(Schema):
    """Lines to select from a text."""

    lines: str = Field("", max_length=40, description="a range, from 1: 10-40, 10- or 10")
    grep: str = Field("", max_length=1000, description="RE2: the lines that match")
    head: int | None = Field(None, ge=1, le=BIGGEST, description="number of first lines")
    tail: int | None = Field(None, ge=1, le=BIGGEST, description="number of last lines")
    context: int = Field(0, ge=0, le=20, description="lines around each match")
    offset: int = Field(0, ge=0, le=BIGGEST, description="from `rest` of the previous response")

    def first(self) -> str:
        """The name of the first selection given."""
        return next((name for name in ("lines", "grep", "head", "tail") if getattr(self, name)), "")
