"""What the steps of a session add up to, step after step: sums, contexts by kind, figures."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from compaction import prices
from compaction.cache import measured
from compaction.cache.forecast import Known
from compaction.cache.moments import Since, Standing
from compaction.cache.simulator import CacheUse
from compaction.context import KINDS
from sessions.actions.figures import Before, Told, figures_after, is_break
from sessions.actions.news import RECORDED, SERVED, News
from sessions.models import Run, Session
from sessions.models.tail import Figures

_OWN = (KINDS.index("assistant"), KINDS.index("thinking"))

Table = list[list[int]]
"""Tokens by kind, a list per step."""


class Sums(msgspec.Struct):
    """Reported tokens and micro-dollars of calls; `priced` is how many calls have a cost,
    `written` what the log shows of outputs."""

    calls: int = 0
    fresh: int = 0
    read: int = 0
    write: int = 0
    output: int = 0
    cost: int = 0
    priced: int = 0
    breaks: int = 0
    prompt: int = 0
    written: int = 0

    def add(self, use: CacheUse) -> None:
        """Take in one call."""
        self.calls += 1
        self.fresh += use.fresh
        self.read += use.read
        self.write += use.write_5m + use.write_1h
        self.output += use.output
        self.cost += use.cost or 0
        self.priced += use.cost is not None
        self.breaks += is_break(use.broken)
        self.prompt = max(self.prompt, use.prompt)


class Tally(msgspec.Struct):
    """What the steps up to `step` add up to; all that is needed to go on.

    It holds the originals below position `blocks`, of messages up to `seq`, and of each run (by
    origin) the revisions up to `heads`, the tokens `standing` by kind at the step, and what its
    figures go on from. `known` is what the calls have shown of their cache, `stands` what stands
    in each run's context as caches see it. `hidden` is None until a prompt was reported. `served`
    is whether the model saw the served run's context. `largest` is the fullest context and its
    step.
    """

    step: int = 0
    blocks: int = 0
    seq: int = 0
    heads: dict[str, int] = {}
    standing: dict[str, list[int]] = {}
    before: dict[str, Before] = {}
    known: Known = msgspec.field(default_factory=Known)
    stands: dict[str, Standing] = {}
    sums: Sums = msgspec.field(default_factory=Sums)
    hidden: int | None = None
    served: bool = False
    largest: tuple[int, int] = (-1, 0)

    def copy(self) -> Tally:
        """Another one, to be changed."""
        return msgspec.msgpack.decode(msgspec.msgpack.encode(self), type=Tally)


@dataclass(slots=True)
class Part:
    """What came out for the steps after a tally: `table` is what the model saw at each, `visible`
    the tokens of each run's contexts, `uses` by step, `served` the
    steps at which it saw the served context."""

    first: int
    table: Table = field(default_factory=list)
    visible: dict[str, list[int]] = field(default_factory=dict)
    uses: dict[int, CacheUse] = field(default_factory=dict)
    figures: dict[str, Figures] = field(default_factory=dict)
    served: set[int] = field(default_factory=set)

    def seen_at(self, step: int) -> int:
        """Tokens of the context that the model saw at a step, as far as we know them."""
        return sum(self.table[step - self.first])


def start(runs: Mapping[str, Run]) -> Tally:
    """Nothing yet."""
    return Tally(
        heads=dict.fromkeys(runs, 0),
        standing={origin: [0] * len(KINDS) for origin in runs},
        before={origin: Before() for origin in runs},
        stands={origin: Standing() for origin in runs},
    )


def go_on(tally: Tally, session: Session, news: News, last: int) -> Part:
    """Take in the steps after the tally up to `last`, contexts and calls, but no figures yet."""
    part = Part(tally.step + 1)
    tables = {origin: _table(tally, session, news, origin, last) for origin in news.runs}
    part.visible = {origin: [sum(row) for row in table] for origin, table in tables.items()}
    part.served = news.saw_served(tally.served, tally.step, last)
    for offset in range(last - tally.step):
        step = part.first + offset
        row = tables[SERVED if step in part.served else RECORDED][offset]
        part.table.append(row)
        if sum(row) > tally.largest[0]:
            tally.largest = sum(row), step
    reported = tally.known.moment.step if tally.known.moment else 0
    _use_cache(tally, news, part, last)
    # What a call wrote is born with the next step.
    tally.sums.written += sum(
        session.scaled(tokens)
        for born, kind, tokens in news.born
        if tally.step < born <= last
        and kind in _OWN
        and (born - 1 in part.uses or born - 1 == reported)
    )
    return part


def _use_cache(tally: Tally, news: News, part: Part, last: int) -> None:
    """What each call read and wrote, its break named by what the context it was sent shows."""
    since = {origin: news.since(origin, tally.step, last) for origin in news.runs}
    for call in news.calls_between(tally.step, last):
        moments = {
            origin: tally.stands[origin].next(call, steps.get(call.step, Since()))
            for origin, steps in since.items()
        }
        moment = moments[SERVED if call.step in part.served else RECORDED]
        use = measured.follow(tally.known, moment, call, price_of=_price_of)
        if use is not None:
            part.uses[call.step] = use
            tally.sums.add(use)
            if tally.hidden is None:
                seen = part.seen_at(call.step) + news.served.get(call.step, 0)
                tally.hidden = max(use.prompt - seen, 0)


def conclude(tally: Tally, news: News, part: Part, last: int) -> None:
    """Make the figures of a part, and bring the tally to its last step."""
    for origin, run in news.runs.items():
        revisions = [row for row in news.revisions[origin] if tally.step < row.step <= last]
        uses = part.uses
        if origin == SERVED:
            uses = {step: use for step, use in uses.items() if step in news.served}
        told = Told(
            run,
            news.calls_between(tally.step, last),
            uses,
            revisions,
            news.starts,
            [error for error in news.errors if tally.step < max(error[0], 1) <= last],
            news.served,
            news.served if origin == SERVED else {},
        )
        part.figures[origin] = figures_after(tally.before[origin], told)
        tally.heads[origin] = max([tally.heads[origin], *(row.number for row in revisions)])
    tally.served = last in part.served
    tally.step = last


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
    """A table as it is stored: ten numbers of four bytes a step."""
    return array("I", [number for row in table for number in row]).tobytes()


def row_of(stored: bytes, step: int) -> list[int]:
    """One step of a stored table."""
    size = len(KINDS) * 4
    return list(array("I", stored[(step - 1) * size : step * size]))


def cut(stored: bytes, steps: int) -> bytes:
    """The first steps of a stored table."""
    return stored[: steps * len(KINDS) * 4]
