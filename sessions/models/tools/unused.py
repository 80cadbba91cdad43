"""Tools that agents are offered and never use, over a team's sessions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models.functions import Coalesce

from sessions.models.accounts.teams import Team
from sessions.models.dashboard.added_up import SLICE, slice_of
from sessions.models.dashboard.slices import EVERYTHING, Split
from sessions.models.record.demo_data import counts
from sessions.models.reviews.assessments import Assessment
from sessions.models.tools.tool_use import LEARNED_FROM
from sessions.models.web.periods import LAST, Period
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

    def merge(self, other: OfferedTool) -> None:
        """Add the sessions of another agent."""
        sessions = self.sessions + other.sessions
        self.add(other.tokens, other.microusd)
        self.sessions = sessions


@dataclass(slots=True)
class AgentTools:
    """The tools that an agent's sessions were sent; `unused` are those that none of them used,
    the most expensive first."""

    agent: str
    sessions: int = 0
    simulated: bool = False
    offered: dict[str, OfferedTool] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    _sent: list[tuple[int, dict[str, Any]]] = field(default_factory=list)

    def add(self, at: int, kept: dict[str, Any]) -> None:
        """Add the definitions of a session's assessment; it happened at `at` (ms)."""
        self.sessions += 1
        self._sent.append((at, kept["tools"]))
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

    def costs(self) -> Iterator[tuple[int, int]]:
        """The time of each session, and what the unused ones cost it; 0 without a price."""
        for at, tools in self._sent:
            paid = (cost for tool, (_, cost) in tools.items() if tool not in self.used)
            yield at, sum(cost or 0 for cost in paid)

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
    """Agents with unused tools, the most expensive first, and the sessions this was found in;
    `complete` unless there are older ones that were not looked at. `offered` are all tools of all
    agents. `judged` are the sessions of agents with `ENOUGH` of them."""

    agents: list[AgentTools]
    looked_at: int
    complete: bool = True
    offered: dict[str, OfferedTool] = field(default_factory=dict)
    judged: int = 0

    def costs(self) -> Iterator[tuple[int, int]]:
        """The time of each session in ms, and micro-dollars of its agent's unused tools."""
        for agent in self.agents:
            yield from agent.costs()


def unused_tools(team: Team, period: Period | None = None) -> UnusedTools:
    """Find the tools that no session of an agent used: in the newest assessed sessions whose
    definitions are known, as far as they are of a period. Agents with fewer than `ENOUGH` of these
    are left out. Constant work."""
    [found] = unused_in(team, [(period.since, period.until) if period else (0, LAST)])
    return found


def unused_in(
    team: Team, ranges: Sequence[tuple[int, int]], split: Split = EVERYTHING
) -> list[UnusedTools]:
    """Find them in each of these times, [since, until) in ms, in the sessions of a split."""
    rows = _NEWEST.rows(team=team.pk)
    agents: list[dict[str, AgentTools]] = [{} for _ in ranges]
    looked_at = [0 for _ in ranges]
    for kept, ended, created, *one in rows:
        if not split.matches(slice_of(*one)):
            continue
        at = ended if ended is not None else int(created.timestamp()) * 1000
        for index, (since, until) in enumerate(ranges):
            if since <= at < until:
                agents[index].setdefault(one[0], AgentTools(one[0])).add(at, kept)
                looked_at[index] += 1
    complete = len(rows) < LEARNED_FROM
    return [
        UnusedTools(_worst(found), many, complete, _offered(found.values()), _judged(found))
        for found, many in zip(agents, looked_at, strict=True)
    ]


def _offered(agents: Iterable[AgentTools]) -> dict[str, OfferedTool]:
    """The tools of several agents together."""
    found: dict[str, OfferedTool] = {}
    for agent in agents:
        for name, one in agent.offered.items():
            found.setdefault(name, OfferedTool(name)).merge(one)
    return found


def _judged(agents: dict[str, AgentTools]) -> int:
    return sum(one.sessions for one in agents.values() if one.sessions >= ENOUGH)


def _worst(agents: dict[str, AgentTools]) -> list[AgentTools]:
    found = [one for one in agents.values() if one.sessions >= ENOUGH and one.unused]
    return sorted(found, key=lambda one: (-(one.microusd or 0), -one.tokens, one.agent))


# Neither range nor team is a condition that an index of sessions serves: this way SQLite reads the
# index of assessments with definitions, newest first, and stops.
_NEWEST = Statement(
    lambda: (
        Assessment.objects.filter(unused_tokens__isnull=False)
        .annotate(team=Coalesce("session__team", "session__team"))
        .filter(counts(given_uuid("team"), "session__"), team=given_uuid("team"))
        .order_by("-changed")
        .values_list(
            *("definitions", "session__ended_at", "session__created"),
            *(f"session__{name}" for name in SLICE),
        )[:LEARNED_FROM]
    )
)
