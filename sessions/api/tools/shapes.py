"""API schemas for tools."""

from __future__ import annotations

from typing import Any, Literal

from ninja import Schema
from pydantic import Field

from sessions.api.web.shapes import BodyIn, Json


class ToolOut(Schema):
    """A tool: its requirements, the step that enabled it (null: not yet) and by which tools, and
    its use. `tokens` of its definition, null if none was sent."""

    name: str
    needs: list[str]
    tokens: int | None
    enabled_at: int | None
    enabled_by: list[str]
    uses: int
    first_step: int | None
    failures: int


class LikelyTool(Schema):
    """A tool likely to be used next, by habits of the team's sessions and this one."""

    tool: str
    share: float


class ListCostOut(Schema):
    """Estimated effect of a growing tool list: tokens omitted over all steps, and tokens written to
    the cache again, because tools come first in a prompt; with a mask both are 0. Null: unknown."""

    left_out_tokens: int
    changed_at: list[int]
    rewritten_tokens: int | None
    saved_microusd: int | None
    rewritten_microusd: int | None
    basis: Literal["estimated"]


class DefinitionCostOut(Schema):
    """A tool's definition: its tokens, the calls that sent it, and what that cost. Null: no price
    is known."""

    tool: str
    tokens: int
    calls: int
    microusd: int | None
    used: bool


class DefinitionsOut(Schema):
    """What definitions cost over the session's calls; sizes are our count. `unused_microusd` is the
    saving if the unused ones had not been sent from the start.

    Estimated: charged as usage was reported. Simulated: some calls reported none. `deferred` tools
    are sent only once the model has searched for them. `hidden_tokens` of each prompt are not in
    the log, inferred from the first reported prompt.
    """

    tools: list[DefinitionCostOut]
    tokens: int
    microusd: int | None
    unused_tokens: int
    unused_microusd: int | None
    basis: Literal["estimated", "simulated"]
    deferred: list[str]
    hidden_tokens: int
    hidden_microusd: int | None


class ToolTokens(Schema):
    """Tokens of all definitions, of the enabled ones, and of the rest. Null if none was ever
    sent."""

    all: int | None
    enabled: int | None
    left_out: int | None


class ToolMask(Schema):
    """The allowed tools as a mask over a constant list: groups by state, and state changes by
    use."""

    states: dict[str, list[str]]
    after: dict[str, str]
    initial: str


class ToolsOut(Schema):
    """The tools of a session at its next call. `number` and `graph` are null without a graph; then
    all known tools are enabled."""

    number: int | None
    graph: dict[str, Any] | None
    step: int
    state: str
    enabled: list[str]
    allowed: list[str]
    mask: ToolMask | None
    tools: list[ToolOut]
    unused: list[str]
    likely: list[LikelyTool]
    tokens: ToolTokens
    list_cost: ListCostOut | None
    definitions: DefinitionsOut | None = Field(description="null if no list of tools is known")


class LeftOutTool(Schema):
    """A tool that a context does not offer, and why."""

    tool: str
    reason: str


class Toolset(Schema):
    """The tools offered by a context according to the session's graph with that `number`.

    `listed` tools are sent, in order; of these only `allowed` ones may be used in this `state`. If
    the policy chose the tools from habits, `next` are those likely to be used next.
    """

    number: int
    state: str
    listed: list[str]
    allowed: list[str]
    left_out_tokens: int
    left_out: list[LeftOutTool]
    next: list[LikelyTool]


class ToolsIn(BodyIn):
    """A session's tool graph: requirements that enable tools, and states that allow them.

    A requirement or state may name a group such as `browser_*`, or LeastOne: any tool.
    """

    tools: list[Json] = Field(
        description="in order of registration: a name, or {name, needs}; all needs must be met, a "
        "group by any of its tools",
        examples=[["edit", {"name": "undo_edit", "needs": ["edit"]}]],
    )
    sends: Json = Field(
        "enabled",
        description="enabled: the list grows with use; all: the list is constant, and a mask says "
        "which tools are allowed, so that the cached prefix stays valid",
    )
    states: Json = Field(None, description="allowed tools and groups, by state")
    after: Json = Field(None, description="the state entered after a tool or group is used")
    initial: Json = Field(None, description="the initial state; default: the first")
