"""Tool use of a session for page and API: enabled, used, left out, and likely next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Min

from compaction.prices import prices
from compaction.tools.graph import OWN_USE, ListCost, ToolGraph, list_cost
from compaction.tools.habits import OWN, WITHIN, Habits, Likely, habits_of, likely, read
from sessions.models.accounts.teams import Team
from sessions.models.record.demo_data import counts
from sessions.models.record.messages import Block
from sessions.models.record.sessions import Session
from sessions.models.reviews.assessments import Assessment
from sessions.models.tools.definitions import (
    Definitions,
    DefinitionUse,
    definition_use,
    definitions,
)
from sessions.models.tools.tooling import Tooling, tooling

LEARNED_FROM = 500
"""Most assessed sessions to add habits up from, newest first."""

NEWEST = 50
"""Most sessions of an agent whose tools its next one starts with (our choice, measured:
docs/tools/tools.md)."""

LIKELY = 3


@dataclass(frozen=True, slots=True)
class UsedTool:
    """A tool with its use. `since` is None while it is not enabled, `tokens` if its definition is
    unknown or `deferred`; `depth` counts the tools that must be used before it."""

    name: str
    needs: tuple[str, ...] = ()
    tokens: int | None = None
    since: int | None = None
    by: tuple[str, ...] = ()
    enabled: bool = True
    allowed: bool = True
    uses: int = 0
    first: int | None = None
    failures: int = 0
    depth: int = 0
    deferred: bool = False


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The tools of a session at its next call (`step`), and what the list costs; None without a
    graph, or if unknown. `definitions` prices each definition."""

    step: int
    rows: tuple[UsedTool, ...]
    likely: list[Likely]
    follows: Habits
    definitions: DefinitionUse
    number: int | None = None
    document: dict[str, Any] | None = None
    graph: ToolGraph = field(default_factory=ToolGraph)
    state: str = ""
    cost: ListCost | None = None
    saved_microusd: int | None = None
    rewritten_microusd: int | None = None
    learned_from: int | None = None

    @property
    def by_habit(self) -> list[str]:
        """Tools that the policy left out, by the habits of `learned_from` sessions."""
        return [tool for tool, needs in self.graph.needs.items() if needs == (OWN_USE,)]

    @property
    def mask(self) -> dict[str, Any] | None:
        """The states of the graph; None without any."""
        graph = self.graph
        if not graph.states:
            return None
        states = {state: list(names) for state, names in graph.states.items()}
        return {"states": states, "after": dict(graph.after), "initial": graph.initial}

    @property
    def unused(self) -> list[str]:
        """Known tools that no step used."""
        return [row.name for row in self.rows if not row.uses]

    @property
    def tokens_all(self) -> int | None:
        """Tokens of all definitions; None if no list is known."""
        return _sum(row.tokens for row in self.rows)

    @property
    def tokens_enabled(self) -> int | None:
        """Tokens of the definitions of enabled tools."""
        if self.tokens_all is None:
            return None
        return _sum(row.tokens for row in self.rows if row.enabled) or 0

    @property
    def tokens_at_first(self) -> int | None:
        """Tokens of the definitions that are enabled by use: the savings at the first call, actual
        or possible."""
        if self.tokens_all is None:
            return None
        return _sum(row.tokens for row in self.rows if row.by or not row.enabled) or 0

    @property
    def tokens_left_out(self) -> int | None:
        """Tokens of the definitions that the next call omits, or could omit."""
        if self.tokens_all is None or self.tokens_enabled is None:
            return None
        return self.tokens_all - self.tokens_enabled


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def tool_use(session: Session) -> ToolUse:
    """Collect everything known about a session's tools. Linear in its calls."""
    found, defined = tooling(session), definitions(session)
    sizes = defined.sizes
    step, steps = session.step_count + 1, steps_of(session)
    own = habits_of(steps)
    both = team_habits(session.team)
    both.add(own, OWN)
    rows = _rows(session, found, defined, step)
    used = [row.name for row in rows if row.uses]
    costs = definition_use(session, defined, used, found)
    allowed = {row.name for row in rows if row.allowed}
    ranked = likely(both, steps[-WITHIN:], most=len(allowed) + len(both.uses)) if steps else []
    expected = [one for one in ranked if one.tool in allowed][:LIKELY]
    if found is None:
        return ToolUse(step, rows, expected, own, costs)
    cost = saved = rewritten = None
    if sizes:
        shortened = found.graph.sends == "enabled"
        cost = list_cost(found.enabling, sizes, _prompts(session), shortened=shortened)
        saved, rewritten = _money(session, cost)
    state = found.enabling.state_at(step)
    return ToolUse(
        step, rows, expected, own, costs, found.row.number, found.row.document, found.graph, state,
        cost, saved, rewritten, found.row.learned_from,
    )  # fmt: skip


def steps_of(session: Session) -> list[list[str]]:
    """The tools used by each step, in order; steps without tools are skipped."""
    found: dict[int, list[str]] = {}
    rows = session.blocks.filter(type="tool_use").exclude(tool="").order_by("position")
    for born, tool in rows.values_list("born", "tool"):
        found.setdefault(born, []).append(tool)
    return [found[born] for born in sorted(found)]


def newest_steps(session: Session) -> list[list[str]]:
    """The tools used by the last steps, in order; constant work."""
    found: dict[int, list[str]] = {}
    rows = session.blocks.filter(type="tool_use").exclude(tool="").order_by("-position")
    for born, tool in rows.values_list("born", "tool")[:NEWEST]:
        found.setdefault(born, []).append(tool)
    return [found[born] for born in sorted(found)]


def team_habits(team: Team) -> Habits:
    """The habits of the team's newest assessed sessions that count."""
    rows = Assessment.objects.filter(counts(team.pk, "session__"), session__team=team)
    rows = rows.exclude(tools={})
    made = Habits()
    for stored in rows.order_by("-changed").values_list("tools", flat=True)[:LEARNED_FROM]:
        made.add(read(stored))
    return made


def team_calls(team: Team) -> dict[str, tuple[int, int]]:
    """Calls of each tool and their failures, in the sessions that `team_habits` reads."""
    rows = Assessment.objects.filter(counts(team.pk, "session__"), session__team=team)
    rows = rows.exclude(tools={}).order_by("-changed")
    newest = list(rows.values_list("session", flat=True)[:LEARNED_FROM])
    blocks = Block.objects.filter(session__in=newest).exclude(tool="").order_by().values("tool")
    failed = blocks.filter(type="tool_result", error=True).annotate(n=Count("pk"))
    failures = dict(failed.values_list("tool", "n"))
    called = blocks.filter(type="tool_use").annotate(n=Count("pk"))
    return {tool: (n, failures.get(tool, 0)) for tool, n in called.values_list("tool", "n")}


def agent_habits(session: Session) -> tuple[Habits, int]:
    """The habits of the newest assessed sessions of a session's agent that used tools, without its
    own, and how many these are."""
    rows = Assessment.objects.filter(session__team=session.team_id, session__agent=session.agent)
    rows = rows.exclude(tools={}).exclude(session=session).order_by("-changed")
    found = list(rows.values_list("tools", flat=True)[:NEWEST])
    made = Habits()
    for stored in found:
        made.add(read(stored))
    return made, len(found)


def _rows(
    session: Session, found: Tooling | None, defined: Definitions, step: int
) -> tuple[UsedTool, ...]:
    used, sizes = _used(session), defined.sizes
    graph = found.graph if found is not None else ToolGraph()
    depths = _depths(graph)
    return tuple(
        UsedTool(
            name,
            graph.needs.get(name, ()),
            sizes.get(name),
            *_enabled(found, name, step),
            *used.get(name, (0, None, 0)),
            depths.get(name, 0),
            name in defined.deferred,
        )
        for name in dict.fromkeys([*graph.needs, *sizes, *defined.deferred, *used])
    )


def _enabled(
    found: Tooling | None, name: str, step: int
) -> tuple[int | None, tuple[str, ...], bool, bool]:
    if found is None:
        return None, (), True, True
    one = found.enabling.enabled.get(name)
    since, by = (one.step, one.by) if one is not None else (None, ())
    return since, by, found.enabling.is_enabled(name, step), found.enabling.allows(name, step)


def _used(session: Session) -> dict[str, tuple[int, int | None, int]]:
    """By tool, in order of first use: number of uses, step of the first, and failures."""
    calls = session.blocks.exclude(tool="").order_by().values("tool")
    counted = calls.filter(type="tool_use").annotate(n=Count("pk"), first=Min("born"))
    failed = calls.filter(type="tool_result", error=True).annotate(n=Count("pk"))
    failures = dict(failed.values_list("tool", "n"))
    rows = sorted(counted.values_list("first", "tool", "n"))
    return {tool: (n, max(first - 1, 1), failures.get(tool, 0)) for first, tool, n in rows}


def _depths(graph: ToolGraph) -> dict[str, int]:
    """Minimum number of uses before each tool is enabled; 0 if it requires nothing."""
    depths = {tool: 0 for tool, needs in graph.needs.items() if not needs}
    for depth in range(1, len(graph.needs) + 1):
        came = {
            tool: depth
            for tool, needs in graph.needs.items()
            if tool not in depths
            and all(need in depths or need not in graph.needs for need in needs)
        }
        if not came:
            break
        depths |= came
    return depths


def _prompts(session: Session) -> list[int | None]:
    """Reported prompt tokens by step, from 1 on."""
    parts = ("step", "uncached", "cache_read", "cache_write_5m", "cache_write_1h")
    found: dict[int, int | None] = {}
    for step, uncached, *cached in session.calls.order_by("step").values_list(*parts):
        found[step] = None if uncached is None else uncached + sum(count or 0 for count in cached)
    return [found.get(step) for step in range(1, session.step_count + 1)]


def _money(session: Session, cost: ListCost) -> tuple[int | None, int | None]:
    """Micro-dollars at the model's prices when the session ended: savings from omitted definitions
    at the cache read price, and the extra cost of writing instead of reading."""
    price = prices.price(session.model, session.ended_at)
    if price is None:
        return None, None
    rates = price.at(session.peak_tokens)
    more = max(rates.cache_write_5m - rates.cache_read, 0)
    rewritten = None if cost.rewritten is None else prices.micros(cost.rewritten * more)
    return prices.micros(cost.less * rates.cache_read), rewritten
