"""Tool pages: of a session, and of a team."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET

from compaction.advice.use_lint import tool_remarks
from compaction.tools.habits import WITHIN, Habits
from sessions.access import session_of, team_of
from sessions.actions.web.verdicts import EventVerdict, counted
from sessions.figures import money, tokens
from sessions.models import Session
from sessions.models.tools.tool_use import (
    LEARNED_FROM,
    ToolUse,
    UsedTool,
    team_calls,
    team_habits,
    tool_use,
)
from sessions.models.tools.unused import ENOUGH, UnusedTools, unused_tools
from sessions.models.web.periods import ALL, BadPeriod, Period, asked_for
from sessions.views.tools.graph import drawing
from sessions.views.web.demo_notice import demo_notice
from sessions.views.web.pages import Link, Page
from sessions.views.web.places import step_url

FOLLOWERS = 4
"""Most following tools listed per tool."""


@dataclass(frozen=True, slots=True)
class ToolRow:
    """A tool as a row: tools that followed it, and links to its first use and to where it was
    enabled."""

    row: UsedTool
    follows: list[tuple[str, int]]
    first_url: str
    since_url: str


@require_GET
def session_tools(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Show the tools of a session: requirements, when enabled and by what, and use."""
    session = session_of(request, session_id)
    found = tool_use(session)
    net = _net(found)
    context = {
        "section": "sessions",
        "session": session,
        "session_name": str(session),
        "replay_url": reverse("replay", args=[session.pk]),
        "found": found,
        "layers": _layers(session, found),
        "share_left_out": _share(found),
        "remarks": tool_remarks(sum(row.enabled and row.allowed for row in found.rows)),
        "costlier": max(net, 0) if net is not None else None,
        "cheaper": max(-net, 0) if net is not None else None,
    }
    return render(request, "tools/session.html", context)


def _layers(session: Session, found: ToolUse) -> list[tuple[int, list[ToolRow]]]:
    """Rows by number of prerequisites; tools outside the graph come last."""
    layers: dict[int, list[ToolRow]] = {}
    free = 1 + max((row.depth for row in found.rows), default=0)
    for row in found.rows:
        named = row.name in found.graph.needs
        depth = row.depth if named or found.number is None else free
        layers.setdefault(depth, []).append(_line(session, row, found.follows))
    return sorted(layers.items())


def _line(session: Session, row: UsedTool, habits: Habits) -> ToolRow:
    return ToolRow(
        row,
        habits.after(row.name).most_common(FOLLOWERS),
        step_url(session, row.first) if row.first is not None else "",
        step_url(session, row.since) if row.since is not None and row.by else "",
    )


def _share(found: ToolUse) -> float | None:
    whole, left = found.tokens_all, found.tokens_left_out
    return left / whole if whole and left is not None else None


def _net(found: ToolUse) -> int | None:
    """Net cost of the list in micro-dollars; negative if it saves."""
    if found.saved_microusd is None or found.rewritten_microusd is None:
        return None
    return found.rewritten_microusd - found.saved_microusd


@require_GET
def team_tools(request: HttpRequest) -> HttpResponse:
    """Show the tools used by the team's sessions, and which followed which; also the definitions
    that no session of an agent used, in a range if the URL has one."""
    team = team_of(request)
    habits = team_habits(team)
    period = _period(request)
    unused = unused_tools(team, period)
    rows = _team_rows(habits, team_calls(team), unused)
    context = {
        **demo_notice(request, team),
        "section": "tools",
        "rows": rows,
        "drawing": drawing(habits, unused.offered),
        "verdict": _verdict(unused),
        "within": WITHIN,
        "learned_from": LEARNED_FROM,
        "unused": unused,
        "enough": ENOUGH,
        "period": period,
    }
    return render(request, "tools/team.html", context)


@dataclass(frozen=True, slots=True)
class TeamToolRow:
    """A tool of a team: its calls and their failures, and what its definition cost in
    micro-dollars; None if unknown."""

    name: str
    steps: int
    calls: int
    failures: int
    microusd: int | None
    follows: list[tuple[str, int]]


def _team_rows(
    habits: Habits, calls: dict[str, tuple[int, int]], unused: UnusedTools
) -> list[TeamToolRow]:
    found = []
    for tool, steps in sorted(habits.uses.items(), key=lambda item: (-item[1], item[0])):
        offered = unused.offered.get(tool)
        found.append(
            TeamToolRow(
                tool,
                steps,
                *calls.get(tool, (0, 0)),
                offered.microusd if offered is not None else None,
                habits.after(tool).most_common(FOLLOWERS),
            )
        )
    return found


SMALL = 100_000
"""Micro-dollars below which unused definitions are no reason to warn."""


def _verdict(found: UnusedTools) -> EventVerdict:
    """What definitions of tools cost that no session of their agent used."""
    if not found.offered:
        return EventVerdict("neutral", "Unknown: no session reports its tool definitions.")
    if not found.judged:
        said = "Too few sessions to say which tools are never used."
        needed = (
            f"{counted(found.looked_at, 'session')} so far show the tools that were defined. An "
            f"agent's tools are judged once {ENOUGH} of its sessions do."
        )
        return EventVerdict("neutral", said, needed)
    tools = [one for agent in found.agents for one in agent.unused]
    looked = counted(found.judged, "session")
    if not tools:
        said = f"Every defined tool was used in the {looked} whose logs show the definitions."
        return EventVerdict(
            "neutral", said, "Sessions whose logs show no definitions are not judged."
        )
    costs = [agent.microusd for agent in found.agents if agent.microusd is not None]
    cost = f"Their definitions cost ≈{money(sum(costs))}." if costs else "Cost unknown."
    sizes = tokens(sum(one.tokens for one in tools))
    agents = ", ".join(agent.agent for agent in found.agents if agent.unused and agent.agent)
    looked += f" of {agents}" if agents else ""
    of = f"{len({one.name for one in tools}):,} of {counted(len(found.offered), 'tool')}"
    return EventVerdict(
        "bad" if not costs or sum(costs) >= SMALL else "neutral",
        f"{of} with a known definition were never used. {cost}",
        f"{sizes} tokens of definitions, in the {looked} whose logs show them; others may have "
        "sent them, too.",
    )


def _period(request: HttpRequest) -> Period | None:
    """The range that the URL names; None for all time, also if it names none or a wrong one."""
    asked = request.GET.dict()
    if asked.get("range") == ALL or not any(asked.get(name) for name in RANGE):
        return None
    try:
        return asked_for(asked, int(timezone.now().timestamp() * 1000), None, None)
    except BadPeriod:
        return None


RANGE = ("range", "from", "to")

PAGES = (
    Page(route="sessions/<uuid:session_id>/tools/", view=session_tools, name="session_tools"),
    Page(
        route="tools/",
        query=RANGE,
        view=team_tools,
        name="team_tools",
        link=Link(40, "Tools", "tools", "g e", "tools", "Diagnose"),
        about="unused tools, tools never used, cost of definitions, states, mask, next call",
    ),
)
