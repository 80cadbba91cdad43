"""Tallies: running sums, contexts by kind, and figures of a session's steps."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from compaction.cache import measured
from compaction.cache.forecast import ForecastState
from compaction.cache.uses import CacheUse
from compaction.context.blocks import KINDS
from compaction.prices import prices
from compaction.simulation.moments import ContextChange, ContextState
from compaction.token_ratio import Added, PromptGrowth
from sessions.actions.record.figures import Before, FigureInputs, figures_after, is_break
from sessions.actions.record.news import MANAGED, RECORDED, News
from sessions.models import Run, Session
from sessions.models.record.tail import Figures

_OWN = (KINDS.index("assistant"), KINDS.index("thinking"))

Table = list[list[int]]
"""Tokens by kind, one list per step."""


class UsageSums(msgspec.Struct):
    """Sums of reported tokens and micro-dollars; `priced` counts calls with a cost, `written` is
    the size of outputs in the log. `forecast` and its neighbors compare the cache reads that our
    rules expected with the reported ones, in tokens: `off` adds up the differences of single
    calls."""

    calls: int = 0
    uncached: int = 0
    read: int = 0
    write: int = 0
    output: int = 0
    cost: int = 0
    priced: int = 0
    breaks: int = 0
    prompt: int = 0
    written: int = 0
    forecast_calls: int = 0
    forecast: int = 0
    forecast_prompt: int = 0
    forecast_reported: int = 0
    off: int = 0

    def add(self, use: CacheUse) -> None:
        """Add one call."""
        billed = use.billed
        self.calls += 1
        self.uncached += billed.uncached
        self.read += billed.cache_read
        self.write += billed.cache_write
        self.output += billed.output
        self.cost += use.cost or 0
        self.priced += use.cost is not None
        self.breaks += is_break(use.broken)
        self.prompt = max(self.prompt, use.prompt)
        if use.forecast is not None:
            self.forecast_calls += 1
            self.forecast += use.forecast
            self.forecast_prompt += use.prompt
            self.forecast_reported += use.read
            self.off += abs(use.forecast - use.read)


class Tally(msgspec.Struct):
    """The state after step `step`; everything needed to continue.

    Covers originals below position `blocks`, of messages up to `seq`, and for each run (by origin)
    the revisions up to `heads`, the tokens `standing` by kind, and the state of its figures.
    `known` is what calls have shown of their cache, `stands` each run's context as caches see it.
    `hidden` is None until a prompt was reported. `managed` says whether the model saw the managed
    context. `largest` is the fullest context and its step. `growth` is what usage has shown of the
    token ratio.
    """

    step: int = 0
    blocks: int = 0
    seq: int = 0
    heads: dict[str, int] = {}
    standing: dict[str, list[int]] = {}
    before: dict[str, Before] = {}
    known: ForecastState = msgspec.field(default_factory=ForecastState)
    stands: dict[str, ContextState] = {}
    sums: UsageSums = msgspec.field(default_factory=UsageSums)
    hidden: int | None = None
    managed: bool = False
    largest: tuple[int, int] = (-1, 0)
    growth: PromptGrowth = msgspec.field(default_factory=PromptGrowth)


@dataclass(slots=True)
class TallyPart:
    """Results for the steps after a tally: `table` has the contexts the model saw, `visible` the
    tokens of each run's contexts, `uses` cache uses by step, `managed` the steps with the managed
    context."""

    first: int
    table: Table = field(default_factory=list)
    visible: dict[str, list[int]] = field(default_factory=dict)
    uses: dict[int, CacheUse] = field(default_factory=dict)
    figures: dict[str, Figures] = field(default_factory=dict)
    managed: set[int] = field(default_factory=set)

    def seen_at(self, step: int) -> int:
        """Tokens of the context the model saw at a step, as far as known."""
        return sum(self.table[step - self.first])


def start(runs: Mapping[str, Run]) -> Tally:
    """An empty tally."""
    return Tally(
        heads=dict.fromkeys(runs, 0),
        standing={origin: [0] * len(KINDS) for origin in runs},
        before={origin: Before() for origin in runs},
        stands={origin: ContextState() for origin in runs},
    )


def go_on(tally: Tally, session: Session, news: News, last: int) -> TallyPart:
    """Process the steps after the tally up to `last`: contexts and calls, but no figures yet."""
    part = TallyPart(tally.step + 1)
    tables = {origin: _table(tally, session, news, origin, last) for origin in news.runs}
    part.visible = {origin: [sum(row) for row in table] for origin, table in tables.items()}
    part.managed = news.saw_managed(tally.managed, tally.step, last)
    for offset in range(last - tally.step):
        step = part.first + offset
        row = tables[MANAGED if step in part.managed else RECORDED][offset]
        part.table.append(row)
        if sum(row) > tally.largest[0]:
            tally.largest = sum(row), step
    reported = tally.known.moment.step if tally.known.moment else 0
    _use_cache(tally, news, part, last)
    # A call's output is born at the next step.
    tally.sums.written += sum(
        session.scaled(tokens)
        for born, kind, tokens in news.born
        if tally.step < born <= last
        and kind in _OWN
        and (born - 1 in part.uses or born - 1 == reported)
    )
    return part


def _use_cache(tally: Tally, news: News, part: TallyPart, last: int) -> None:
    """The cache use of each call, and the cause of its break, from the context it was sent."""
    since = {origin: news.since(origin, tally.step, last) for origin in news.runs}
    added, before = news.added(), MANAGED if tally.managed else RECORDED
    for call in news.calls_between(tally.step, last):
        moments = {
            origin: tally.stands[origin].next(call, steps.get(call.step, ContextChange()))
            for origin, steps in since.items()
        }
        sent = MANAGED if call.step in part.managed else RECORDED
        moment, change = moments[sent], since[sent].get(call.step, ContextChange())
        edited = sent != before or bool(change.revisions or change.closes)
        tally.growth.see(call, added.get(call.step, Added(0)), edited=edited)
        if news.managed.get(call.step):
            tally.growth.prompt = None  # it ends with a recitation, which the next one lacks
        before = sent
        use = measured.follow(tally.known, moment, call, price_of=_price_of)
        if use is not None:
            part.uses[call.step] = use
            tally.sums.add(use)
            if tally.hidden is None:
                seen = part.seen_at(call.step) + news.managed.get(call.step, 0)
                tally.hidden = max(use.opening - seen, 0)


def conclude(tally: Tally, news: News, part: TallyPart, last: int) -> None:
    """Compute the figures of a part, and advance the tally to its last step."""
    for origin, run in news.runs.items():
        revisions = [row for row in news.revisions[origin] if tally.step < row.step <= last]
        uses = part.uses
        if origin == MANAGED:
            uses = {step: use for step, use in uses.items() if step in news.managed}
        inputs = FigureInputs(
            run,
            news.calls_between(tally.step, last),
            uses,
            revisions,
            news.starts,
            [error for error in news.errors if tally.step < max(error[0], 1) <= last],
            news.managed,
            news.managed if origin == MANAGED else {},
            _counted(tally, part) if origin == RECORDED else {},
        )
        part.figures[origin] = figures_after(tally.before[origin], inputs)
        tally.heads[origin] = max([tally.heads[origin], *(row.number for row in revisions)])
    tally.managed = last in part.managed
    tally.step = last


def _counted(tally: Tally, part: TallyPart) -> dict[int, int]:
    """Tokens of the recorded context by step, with those that no record shows."""
    hidden = tally.hidden or 0
    return {step: hidden + seen for step, seen in enumerate(part.visible[RECORDED], part.first)}


def _table(tally: Tally, session: Session, news: News, origin: str, last: int) -> Table:
    changes: dict[int, list[tuple[int, int]]] = {}
    for step, kind, tokens in news.changes(origin):
        if tally.step < step <= last:
            changes.setdefault(step, []).append((kind, tokens))
    standing = tally.standing[origin]
    table: Table = []
    for step in range(tally.step + 1, last + 1):
        for kind, tokens in changes.get(step, ()):
            standing[kind] += session.scaled(tokens) if tokens > 0 else -session.scaled(-tokens)
        table.append(list(standing))
    return table


def _price_of(model: str, at: int | None) -> prices.Price | None:
    return prices.price(model, at)


def packed(table: Table) -> bytes:
    """A table in stored form: ten 4-byte numbers per step."""
    return array("I", [number for row in table for number in row]).tobytes()


def row_of(stored: bytes, step: int) -> list[int]:
    """One step of a stored table."""
    size = len(KINDS) * 4
    return list(array("I", stored[(step - 1) * size : step * size]))


def cut(stored: bytes, steps: int) -> bytes:
    """The first steps of a stored table."""
    return stored[: steps * len(KINDS) * 4]
