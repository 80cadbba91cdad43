"""What the API tells of a session's tools, for its document."""

from __future__ import annotations

from typing import Any, Literal

from ninja import Schema


class ToolTold(Schema):
    """A tool: what it needs, since which step it is enabled (null: not yet) and by whose use, and
    how it was used. `tokens` of its definition, null where none was sent."""

    name: str
    needs: list[str]
    tokens: int | None
    enabled_at: int | None
    enabled_by: list[str]
    uses: int
    first_step: int | None
    failures: int


class LikelyTool(Schema):
    """A tool that may be next, by what followed in sessions of the team and in this one."""

    tool: str
    share: float


class ListCost(Schema):
    """What a list that grows would leave out over all steps, and write to the cache anew because
    tools come first in a prompt; of a mask both are 0. Null: not known."""

    left_out_tokens: int
    changed_at: list[int]
    rewritten_tokens: int | None
    saved_microusd: int | None
    rewritten_microusd: int | None
    basis: Literal["estimated"]


class ToolTokens(Schema):
    """Of the definitions: all, the enabled ones, and the rest. Null where none was ever sent."""

    all: int | None
    enabled: int | None
    left_out: int | None


class ToolMask(Schema):
    """The allowed set as a mask over a list that stays: groups by state, and where uses lead."""

    states: dict[str, list[str]]
    after: dict[str, str]
    initial: str


class ToolsTold(Schema):
    """The tools of a session at its next call. `number` and `graph` are null without a graph;
    then every tool that is known is enabled."""

    number: int | None
    graph: dict[str, Any] | None
    step: int
    state: str
    enabled: list[str]
    allowed: list[str]
    mask: ToolMask | None
    tools: list[ToolTold]
    unused: list[str]
    likely: list[LikelyTool]
    tokens: ToolTokens
    list_cost: ListCost | None
