"""Tools that agents are offered and never use, over a team's sessions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.db.models.functions import Coalesce

from sessions.models.accounts.teams import Team
from sessions.models.reviews.assessments import Assessment
from sessions.models.tools.tool_use import LEARNED_FROM
from sessions.models.web.periods import Period
from sessions.models.web.statements import Statement, given_uuid

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
    """Find the tools that no session of an agent used: in the newest assessed sessions whose
    definitions are known, as far as they are of a period. Agents with fewer than `ENOUGH` of these
    are left out. Constant work."""
    agents: dict[str, AgentTools] = {}
    looked_at = 0
    for agent, kept, ended, created in _NEWEST.rows(team=team.pk):
        at = ended if ended is not None else int(created.timestamp()) * 1000
        if period is None or period.since <= at < period.until:
            agents.setdefault(agent, AgentTools(agent)).add(kept)
            looked_at += 1
    found = [one for one in agents.values() if one.sessions >= ENOUGH and one.unused]
    found.sort(key=lambda one: (-(one.microusd or 0), -one.tokens, one.agent))
    return UnusedTools(found, looked_at)


# Neither range nor team is a condition that an index of sessions serves: this way SQLite reads the
# index of assessments with definitions, newest first, and stops.
_NEWEST = Statement(
    lambda: (
        Assessment.objects.filter(unused_tokens__isnull=False)
        .annotate(team=Coalesce("session__team", "session__team"))
        .filter(team=given_uuid("team"))
        .order_by("-changed")
        .values_list("session__agent", "definitions", "session__ended_at", "session__created")[
            :LEARNED_FROM
        ]
    )
)
