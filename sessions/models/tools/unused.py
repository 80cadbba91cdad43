"""Tools that agents are offered and never use, over a team's sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet

from sessions.models.accounts.teams import Team
from sessions.models.reviews.assessments import Assessment
from sessions.models.tools.tool_use import LEARNED_FROM
from sessions.models.web.periods import LAST, Period, StatementIn, happened_in
from sessions.models.web.statements import Given, given_uuid

ENOUGH = 5
"""Fewest sessions of an agent from which its habits are concluded (our choice)."""


@dataclass(slots=True)
class OfferedTool:
    """A tool over an agent's sessions: how many sent it, the most tokens of its definition, and
    micro-dollars, None if some session has no price."""

    name: str
    sessions: int = 0
    tokens: int = 0
    microusd: int | None = 0

    def add(self, tokens: int, microusd: int | None) -> None:
        """Add a session that sent it."""
        self.sessions += 1
        self.tokens = max(self.tokens, tokens)
        known = self.microusd is not None and microusd is not None
        self.microusd = self.microusd + microusd if known else None  # type: ignore[operator]


@dataclass(slots=True)
class AgentTools:
    """The tools that an agent's sessions were sent; `unused` are those that none of them used,
    the most expensive first."""

    agent: str
    sessions: int = 0
    simulated: bool = False
    offered: dict[str, OfferedTool] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def add(self, kept: dict[str, Any]) -> None:
        """Add the definitions of a session's assessment."""
        self.sessions += 1
        self.simulated |= kept["basis"] == "simulated"
        self.used.update(kept["used"])
        for tool, (tokens, microusd) in kept["tools"].items():
            self.offered.setdefault(tool, OfferedTool(tool)).add(tokens, microusd)

    @property
    def unused(self) -> list[OfferedTool]:
        """Tools that no session used."""
        rows = [one for tool, one in self.offered.items() if tool not in self.used]
        return sorted(rows, key=lambda one: (-(one.microusd or 0), -one.tokens, one.name))

    @property
    def microusd(self) -> int | None:
        """What the unused ones cost."""
        costs = [one.microusd for one in self.unused]
        return None if None in costs else sum(cost or 0 for cost in costs)

    @property
    def tokens(self) -> int:
        """Tokens of the unused definitions."""
        return sum(one.tokens for one in self.unused)

    @property
    def basis(self) -> str:
        """The basis of the money."""
        return "simulated" if self.simulated else "estimated"


@dataclass(frozen=True, slots=True)
class UnusedTools:
    """Agents with unused tools, the most expensive first, and the sessions this was found in."""

    agents: list[AgentTools]
    looked_at: int


def unused_tools(team: Team, period: Period | None = None) -> UnusedTools:
    """Find the tools that no session of an agent used, in the newest assessed sessions of a period
    whose definitions are known; agents with fewer than `ENOUGH` of these are left out."""
    since, until = (period.since, period.until) if period is not None else (0, LAST)
    agents: dict[str, AgentTools] = {}
    rows = _KEPT.rows([(since, until)], team=team.pk)
    for agent, kept in rows:
        agents.setdefault(agent, AgentTools(agent)).add(kept)
    found = [one for one in agents.values() if one.sessions >= ENOUGH and one.unused]
    found.sort(key=lambda one: (-(one.microusd or 0), -one.tokens, one.agent))
    return UnusedTools(found, len(rows))


def _kept(times: Sequence[tuple[Given, Given]]) -> QuerySet[Any, Any]:
    rows = Assessment.objects.filter(
        happened_in(times, "session__"),
        session__team_id=given_uuid("team"),
        unused_tokens__isnull=False,
    )
    return rows.order_by("-changed").values_list("session__agent", "definitions")[:LEARNED_FROM]


_KEPT = StatementIn(_kept)
