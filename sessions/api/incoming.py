"""What goes into the API: for its document, and for checking what comes in."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import ConfigDict, Field, StrictBool, StrictInt, StrictStr

from compaction.policies.presets import PRESETS
from sessions.actions.choices import MOST, USUAL
from sessions.actions.policies import NOTE_LENGTH
from sessions.actions.simulations import MOST_OTHERS
from sessions.actions.tunings import MOST_TRIALS, TRIALS
from sessions.models.matching import FLAGS

MESSAGES_AT_ONCE = 1000
BIGGEST = 2_147_483_647
"""What a column of whole numbers holds."""
Json = Any
Text = StrictStr


class Wanted(Schema):
    """A body; fields that are none of ours are let through, and kept where there is a place."""

    model_config = ConfigDict(extra="allow")


class SessionWanted(Wanted):
    """What an agent says of its session; what it leaves out stays as it was."""

    agent: Text | None = Field(
        None, description="the program that runs, such as a name and version"
    )
    model: Text | None = Field(
        None,
        description="tells prices, how to count, and the window",
        examples=["claude-sonnet-5"],
    )
    task: Text | None = Field(None, description="what it is to do; sessions of one task compare")
    title: Text | None = Field(None, description="for lists; else the first words that are said")
    parent: Text | None = Field(
        None, description="external id of the session that started this one"
    )
    parent_call: Text | None = Field(None, description="id of the tool call in it that did")
    policy: Text | None = Field(None, description="name of a policy, or name@version")
    window: Annotated[StrictInt, Field(ge=1, le=BIGGEST)] | None = Field(
        None, description="tokens; else that of the model"
    )
    use_case_preset: Text | None = Field(
        None, description="qa, debugging, long-task, or a preset: in place of `policy`"
    )
    history_window_size: Annotated[StrictInt, Field(ge=0, le=BIGGEST)] | None = Field(
        None, description="messages that the sliding window keeps at most: `window.messages`"
    )
    token_budget_per_agent: Annotated[StrictInt, Field(ge=0, le=BIGGEST)] | None = Field(
        None, description="tokens of its conversation that count as full: `window.budget`"
    )
    policy_overrides: dict[str, Json] | None = Field(
        None,
        description="single values of its policy, for this session alone",
        examples=[{"compact.trigger": 0.8, "offload.age": 8, "reserve": 8000}],
    )
    outcome: Literal["succeeded", "failed", "abandoned"] | None = Field(
        None, description="how it ended"
    )
    opening: Literal["none", "board", "project"] | None = Field(
        None,
        description="what it begins with: nothing, the board of its task (or its parent's summary "
        "and board), or that and what is known of its project",
    )
    project: Text | None = Field(
        None, description="what it works on, such as a repository; else metadata's project or cwd"
    )
    metadata: dict[str, Json] | None = Field(
        None, description="whatever you like; fields that are none of these join it"
    )


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
    model: Text | None = Field(
        None, description="that gave these messages; left out, the session's"
    )
    usage: dict[str, Json] | None = Field(
        None, description="as the provider reported it for the call that gave these messages"
    )
    call: Text | None = Field(None, description="the provider's id of that call")
    context_id: Text | None = Field(None, description="of the context that was sent with that call")
    history: StrictBool | None = Field(
        None,
        description="true: the whole conversation again, and what came after it is taken back; "
        "false: new messages; left out, it is recognised",
    )
    stop_reason: Text | None = Field(None, description="of that call")


class CallWanted(Wanted):
    """What a provider reported of one model call."""

    usage: dict[str, Json] = Field(description="as the provider reported it")
    call: Text | None = Field(None, description="the provider's id of the call")
    step: Annotated[StrictInt, Field(ge=1, le=BIGGEST)] | None = Field(
        None, description="number of the call in its session, from 1"
    )
    model: Text | None = Field(None, description="left out, the session's")
    context_id: Text | None = Field(None, description="of the context that was sent with it")
    started_at: StrictInt | Text | None = Field(None, description="ISO 8601, or ms since the epoch")
    stop_reason: Text | None = Field(None, description="why the model stopped")


class PinWanted(Wanted):
    """Which message is to stay verbatim."""

    seq: Annotated[StrictInt, Field(ge=1, le=BIGGEST)]


class CompactionWanted(Wanted):
    """What to mind when the context is compacted."""

    instructions: Annotated[StrictStr, Field(max_length=10_000)] = ""
    task_done: StrictBool = Field(
        False, description="the task is over: its summary takes the form of one that is done"
    )


class SimulationWanted(Wanted):
    """Which policy to try."""

    policy: Text = Field(
        description="name (its newest version) or name@version; presets: " + ", ".join(PRESETS)
    )


class PolicyWanted(Wanted):
    """What a policy is to say: as a document, or as YAML (JSON too), one of the two."""

    document: dict[str, Json] | None = Field(
        None,
        description="name, reserve, steps and recite; what is left out is taken from the preset",
        examples=[{"steps": [{"strategy": "offload", "parameters": {"age": 8}}]}],
    )
    yaml: Text | None = Field(None, description="the readable form, of 64 kB at most")
    based_on: Text | None = Field(
        None, description="a preset, or empty for none; else what the policy was based on"
    )
    note: Annotated[StrictStr, Field(max_length=NOTE_LENGTH)] = Field(
        "", description="why, in a line"
    )


class Choice(Schema):
    """Which sessions a simulation is over; what is left out takes what stands behind it."""

    by: Literal["query", "sample", "hand"] = Field(
        "query",
        description="query: what matches, the newest first; sample: a draw from what matches; "
        "hand: the named ones",
    )
    q: str | None = Field(None, description="text in titles, names, ids and what was said")
    agent: str | None = Field(None, description="exactly this agent")
    model: str | None = Field(None, description="exactly this model")
    source: str | None = Field(None, description="exactly this log format, or api")
    flags: list[str] | None = Field(None, description=f"all of these: {', '.join(FLAGS)}")
    limit: int | None = Field(None, ge=1, le=MOST, description=f"of a query: {USUAL}")
    n: int | None = Field(None, ge=1, le=MOST, description=f"of a sample: {USUAL}")
    seed: int | None = Field(
        None, ge=0, le=BIGGEST, description="of a sample: 0; the same seed draws the same"
    )
    min_steps: int | None = Field(
        None, ge=1, le=1_000_000, description="model calls that a session has at least: 1"
    )
    ids: list[str] | None = Field(None, description="by hand: ids of sessions, yours or ours")


class LabSimulationWanted(Wanted):
    """Which policies to try on which sessions; the active one and the recording come along."""

    sessions: Choice
    draft: Text | dict[str, Json] = Field(
        description="what it is about: name, name@version, or {document, name, based_on} to be "
        "saved as a version",
        examples=["offload-first"],
    )
    others: Annotated[list[Text], Field(max_length=MOST_OTHERS)] = Field(
        default_factory=list, description="further versions to compare: name or name@version"
    )
    note: Annotated[StrictStr, Field(max_length=300)] = Field("", description="why, for people")


class TuningWanted(Wanted):
    """From which policy to search, on which sessions, for what."""

    sessions: Choice
    base: Text = Field(description="name, or name@version", examples=["balanced"])
    objective: Literal["cheap", "lean"] = Field(
        "cheap", description="what is to be little: dollars, or tokens sent"
    )
    trials: Annotated[StrictInt, Field(ge=1, le=MOST_TRIALS)] = Field(
        TRIALS, description="policies that are tried at most"
    )


class ReviewWanted(Wanted):
    """Which compaction people are to judge."""

    session: Text = Field(description="external id or UUID")
    run: Text = Field("served", description="served, recorded, the id of a run, or a policy's name")
    revision: Annotated[StrictInt, Field(ge=1, le=BIGGEST)] = Field(description="its number")


class ContextWanted(Schema):
    """Which context; that for the next call where nothing is said."""

    at: int | None = Field(None, ge=1, le=BIGGEST, description="as it was at this step")
    retry_of: int | None = Field(
        None,
        ge=1,
        le=BIGGEST,
        description="a failed step that the next call is to do again: what it saw, and its error",
    )
    context_id: str = Field(
        "", description="the very context that was handed out under this id, before all else"
    )


class ToolsWanted(Wanted):
    """What the tools of a session need before they are enabled, and which states allow what.

    A name of a need or a state may be that of a group, `browser_*`, or LeastOne: any tool.
    """

    tools: list[Json] = Field(
        description="in the order of registration: a name, or {name, needs}; all needs are to be "
        "met, a group by any of its tools",
        examples=[["edit", {"name": "undo_edit", "needs": ["edit"]}]],
    )
    sends: Json = Field(
        "enabled",
        description="enabled: the list grows with use; all: the list stays, and a mask says which "
        "are allowed, so that the cached prefix stays too",
    )
    states: Json = Field(None, description="names and groups that are allowed, by state")
    after: Json = Field(None, description="the state that a tool's or a group's use leads to")
    initial: Json = Field(None, description="the state at the beginning; else the first")


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
