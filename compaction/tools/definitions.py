"""What tool definitions cost: the part of each call's prompt that they are, and its price."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal, NamedTuple

from compaction.cache.economy import cached_by
from compaction.cache.rules import kept_by, takes_breakpoints
from compaction.cache.simulator import TTL_MS
from compaction.context.session import Call, Usage
from compaction.prices.prices import Price, micros, price


class Definition(NamedTuple):
    """A tool and the tokens of its definition."""

    tool: str
    tokens: int


class ToolList(NamedTuple):
    """Definitions in the prompts of steps `first` to `last`, after `before` other tokens."""

    tools: tuple[Definition, ...]
    first: int
    last: int
    before: int = 0


@dataclass(slots=True)
class DefinitionCost:
    """A definition over a session: its tokens, the calls that sent it, and nano-dollars."""

    tool: str
    tokens: int
    calls: int = 0
    nanos: int = 0

    @property
    def microusd(self) -> int:
        """The cost in micro-dollars."""
        return micros(self.nanos)


@dataclass(frozen=True, slots=True)
class DefinitionCosts:
    """Costs by tool, in order of definition, and their basis.

    Estimated: sizes are our count, and reported usage says how the prompt was charged. Simulated:
    some calls reported no usage, so the pauses between calls decide. Without `priced`, some call
    has no price, and no money is known.
    """

    rows: tuple[DefinitionCost, ...]
    basis: Literal["estimated", "simulated"]
    priced: bool

    def nanos(self, tools: Iterable[str] | None = None) -> int | None:
        """Return the nano-dollars of some tools, by default of all; None if unknown."""
        wanted = None if tools is None else set(tools)
        of = (row.nanos for row in self.rows if wanted is None or row.tool in wanted)
        return sum(of) if self.priced else None


def definition_costs(lists: Sequence[ToolList], calls: Sequence[Call]) -> DefinitionCosts:
    """Price the definitions in each call's prompt.

    A provider charges a prompt in order: what was read from the cache, what was written for an
    hour, then for five minutes, then the rest. Linear in the calls, and in the definitions only
    where a list was charged at two rates.
    """
    rows: dict[str, DefinitionCost] = {}
    priced = True
    for one in lists:
        # Where each definition begins, and the end of the last.
        places = [*accumulate((tool.tokens for tool in one.tools), initial=0)]
        nanos, sent, whole = [0] * len(one.tools), 0, 0
        for usage, rates in _charged(one, places[-1], calls):
            sent += 1
            if rates is None:
                priced = False
                continue
            # A prompt that is shorter was built again, after a compaction: tools come first.
            begin = one.before if one.before + places[-1] <= usage.prompt else 0
            parts = [*_parts(usage, rates, begin, begin + places[-1])]
            if len(parts) == 1 and parts[0].tokens == places[-1]:
                whole += parts[0].rate
                continue
            for index, (start, end) in enumerate(pairwise(places)):
                within = _parts(usage, rates, begin + start, begin + end)
                nanos[index] += sum(part.tokens * part.rate for part in within)
        for index, tool in enumerate(one.tools):
            row = rows.setdefault(tool.tool, DefinitionCost(tool.tool, tool.tokens))
            row.tokens = tool.tokens
            row.calls += sent
            row.nanos += nanos[index] + whole * tool.tokens
    guessed = any(call.usage is None for call in calls)
    return DefinitionCosts(tuple(rows.values()), "simulated" if guessed else "estimated", priced)


def _charged(
    one: ToolList, end: int, calls: Sequence[Call]
) -> Iterator[tuple[Usage, Price | None]]:
    """Yield how each call of a list was charged: as reported, else as its cache should."""
    used: dict[str, int | None] = {}
    for call in calls:
        if not one.first <= call.step <= one.last:
            continue
        listed = price(call.model, call.at)
        usage = call.usage or _expected(call, listed, end, used)
        used[call.model] = call.at
        yield usage, None if listed is None else listed.at(usage.prompt)


def _expected(call: Call, listed: Price | None, tokens: int, used: dict[str, int | None]) -> Usage:
    """Return the usage of a prompt's first tokens: read if the pause was within the cache's TTL."""
    rules = cached_by(call.model, listed)
    asked = takes_breakpoints(rules)
    kept = kept_by(call.model, rules)
    before = used.get(call.model)
    pause = 0 if call.at is None or before is None else call.at - before
    if rules == "none":
        return Usage(uncached=tokens)
    if call.model in used and pause <= (TTL_MS["5m"] if asked else kept.ttl):
        return Usage(cache_read=tokens)
    return Usage(cache_write_5m=tokens) if asked or kept.writes else Usage(uncached=tokens)


class _Part(NamedTuple):
    """Tokens charged at one rate, in nano-dollars."""

    tokens: int
    rate: int


def _parts(usage: Usage, rates: Price, start: int, end: int) -> Iterator[_Part]:
    """Yield what [start, end) of a prompt was charged."""
    charged = (
        (usage.cache_read, rates.cache_read),
        (usage.cache_write_1h, rates.cache_write_1h),
        (usage.cache_write_5m, rates.cache_write_5m),
        (usage.uncached, rates.input),
    )
    at = 0
    for tokens, rate in charged:
        since, until = max(start, at), min(end, at + tokens)
        if since < until:
            yield _Part(until - since, rate)
        at += tokens
