"""The tool definitions in a session's prompts: their tokens, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from compaction import tokens
from compaction.context import wire
from compaction.prices.prices import micros
from compaction.tools.definitions import (
    Definition,
    DefinitionCost,
    DefinitionCosts,
    ToolList,
    definition_costs,
)
from compaction.tools.listed import SizedTool, sized
from sessions.models.record.model_calls import calls_of
from sessions.models.record.revisions import Entry, Run
from sessions.models.record.sessions import Session
from sessions.models.record.values import contents
from sessions.models.tools.tooling import Tooling


@dataclass(frozen=True, slots=True)
class Definitions:
    """A session's lists of tools, and the tokens of each definition of the next prompt.

    `deferred` tools are sent only once the model has searched for them: they are in no prompt.
    """

    lists: tuple[ToolList, ...] = ()
    sizes: dict[str, int] = field(default_factory=dict)
    deferred: dict[str, int] = field(default_factory=dict)


def definitions(session: Session) -> Definitions:
    """The tools of the session's lists, in order, with their tokens in the session's counting;
    no lists if none is known. Linear in the lists."""
    rows = session.blocks.filter(type="tools").order_by("position")
    found = list(rows.values_list("position", "born", "message__role", "sha"))
    ended = _ended(session, [place for place, *_ in found]) if found else {}
    data = contents(session, [sha for *_, sha in found])
    lists: list[ToolList] = []
    sizes: dict[str, int] = {}
    deferred: dict[str, int] = {}
    for place, born, role, sha in found:
        counted = _counted(data[sha])
        # What a search for tools found is sent, although it is marked as deferred.
        later = {tool for tool, _, waits in counted if waits and role == "system"}
        tools = tuple(Definition(one, session.scaled(size)) for one, size, _ in counted)
        sent = tuple(one for one in tools if one.tool not in later)
        last = ended.get(place, session.step_count + 1) - 1
        before = 0 if role == "system" else _prompt(session, born - 1)
        lists.append(ToolList(sent, max(born, 1), last, before))
        if last >= session.step_count:
            sizes |= dict(sent)
            deferred |= dict(one for one in tools if one.tool in later)
    found_later = {tool: size for tool, size in deferred.items() if tool not in sizes}
    return Definitions(tuple(lists), sizes, found_later)


def _ended(session: Session, places: list[int]) -> dict[int, int]:
    """The step from which the recorded context no longer has each of these blocks."""
    rows = Entry.objects.filter(
        run__session=session, run__origin=Run.Origin.RECORDED, position__in=places
    )
    pairs = rows.values_list("position", "to_step")
    return {place: step for place, step in pairs if step is not None}


def _prompt(session: Session, step: int) -> int:
    """Reported tokens of a step's prompt; 0 if unknown."""
    parts = ("uncached", "cache_read", "cache_write_5m", "cache_write_1h")
    row = session.calls.filter(step=step).values_list(*parts).first()
    return sum(count or 0 for count in row or ())


@lru_cache(maxsize=64)
def _counted(encoded: bytes) -> tuple[SizedTool, ...]:
    """The tools of an encoded list with their o200k tokens."""
    return tuple(sized(wire.decode(encoded), lambda text: tokens.counted(text).tokens))


@dataclass(frozen=True, slots=True)
class DefinitionUse:
    """What a session's definitions cost, and which tools were never used.

    `hidden_tokens` are the prompt tokens that the log does not show, inferred from the first
    reported prompt, with their cost. Money is micro-dollars, None if a call has no price.
    """

    costs: DefinitionCosts
    unused: frozenset[str]
    hidden_tokens: int = 0
    hidden_microusd: int | None = None

    @property
    def rows(self) -> list[DefinitionCost]:
        """The definitions: unused ones first, the most expensive first."""
        return sorted(
            self.costs.rows, key=lambda row: (row.tool not in self.unused, -row.nanos, -row.tokens)
        )

    @property
    def tokens(self) -> int:
        """Tokens of all definitions that were sent."""
        return sum(row.tokens for row in self.costs.rows if row.calls)

    @property
    def unused_tokens(self) -> int:
        """Tokens of the unused definitions, which each prompt repeats."""
        return sum(row.tokens for row in self.costs.rows if row.tool in self.unused)

    @property
    def unused_calls(self) -> int:
        """The most calls that sent one of them."""
        return max((row.calls for row in self.costs.rows if row.tool in self.unused), default=0)

    @property
    def microusd(self) -> int | None:
        """What all definitions cost."""
        return _micros(self.costs.nanos())

    @property
    def unused_microusd(self) -> int | None:
        """What the unused ones cost: the saving if they had not been sent from the start."""
        return _micros(self.costs.nanos(self.unused))


def definition_use(
    session: Session, found: Definitions, used: Iterable[str], tooling: Tooling | None = None
) -> DefinitionUse:
    """Price a session's definitions from the stored usage of its calls; linear in them."""
    # Logs may name the model of a session only, or leave it out where a call was interrupted.
    calls = [replace(call, model=call.model or session.model) for call in calls_of(session)]
    lists = [part for one in found.lists for part in _as_sent(one, tooling)]
    costs = definition_costs(lists, calls)
    unused = {row.tool for row in costs.rows if row.calls} - set(used)
    hidden = session.hidden_tokens if session.usage_calls else 0
    spent = None
    if hidden:
        first = sum(one.tokens for tools in found.lists[:1] for one in tools.tools)
        prompt = ToolList((Definition("", hidden),), 1, session.step_count, before=first)
        spent = _micros(definition_costs([prompt], calls).nanos())
    return DefinitionUse(costs, frozenset(unused), hidden, spent)


def _as_sent(one: ToolList, tooling: Tooling | None) -> Iterator[ToolList]:
    """A list as its calls had it: a graph that sends enabled tools only divides it."""
    if tooling is None or tooling.graph.sends == "all":
        yield one
        return
    apart = [tool for tool in one.tools if tool.tool in tooling.graph.needs]
    base = one._replace(tools=tuple(tool for tool in one.tools if tool not in apart))
    yield base
    before = one.before + sum(tool.tokens for tool in base.tools)
    for tool in apart:
        enabled = tooling.enabling.enabled.get(tool.tool)
        since = one.last + 1 if enabled is None else enabled.step
        alone = ToolList((tool,), one.first, min(one.last, tooling.row.step - 1), before)
        if enabled is not None and not enabled.by:
            yield alone._replace(last=one.last)
            continue
        yield alone
        yield alone._replace(first=max(since, one.first), last=one.last)


def _micros(nanos: int | None) -> int | None:
    return None if nanos is None else micros(nanos)
