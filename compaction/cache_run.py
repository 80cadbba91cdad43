"""What a policy's edits cost and save in cache: a run beside the same session unmanaged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

from compaction.cache import Breakpoint, CacheState, CacheUse, Cause, Lifetime, Request, advance
from compaction.edits import Entry
from compaction.prefix import PrefixSums
from compaction.prices import Price, micros, nanos
from compaction.session import Call
from compaction.simulate import Run, StepTokens

HIDDEN_BLOCKS = 2
"""The hidden prompt is taken as two blocks, tools and system, with a breakpoint at its end."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Under which conditions a run is priced.

    `price` None leaves all dollars None. Prefixes shorter than `minimum` tokens are not cached.
    `lifetime` is that of every breakpoint. `frontier` sets one at the end of the last
    replacement, `steady` one at the end of the request before, as long as that stands: without
    it a step of over 20 blocks rereads nothing.
    """

    price: Price | None = None
    minimum: int = 1024
    lifetime: Lifetime = "5m"
    frontier: bool = True
    steady: bool = True


@dataclass(frozen=True, slots=True)
class Payback:
    """What one revision did to the cache.

    `cleared` tokens left the prompt; `rewritten` had been cached and were paid again, at `cost`
    micro-dollars above reading them (0 where the cache was cold: then an edit is free). `steps`
    is the number of calls after which the savings exceed that, None where they never do;
    `remaining` calls were still to come, of which the session made use.
    """

    revision: int
    step: int
    cleared: int
    rewritten: int
    cost: int | None
    steps: int | None
    remaining: int

    @property
    def paid(self) -> bool:
        """Whether the session went on long enough."""
        return self.steps is not None and self.steps <= self.remaining


@dataclass(frozen=True, slots=True)
class CacheRun:
    """Costs of a run in micro-dollars (None without a price), managed and unmanaged.

    Both start with a cold cache, follow the same rules and the recorded pace, and write the same
    output. `prompt_cost` leaves the output out. Work by summarizers is not in it.
    """

    uses: tuple[CacheUse, ...]
    unmanaged: tuple[CacheUse, ...]
    cost: int | None
    unmanaged_cost: int | None
    prompt_cost: int | None
    unmanaged_prompt_cost: int | None
    cache_read_share: float
    revisions: tuple[Payback, ...]


def simulate_cache(run: Run, calls: Sequence[Call], terms: Terms | None = None) -> CacheRun:
    """Send every context of a run, and of the session without the run's edits, to a cache.

    `calls` give the model and, where reported, the output; else that is counted from the blocks
    that the next step brings. Everything is simulated, whatever usage says: the two sides are to
    be compared with each other, not with a bill. Work is linear in steps and entries (and the
    logarithm of those).
    """
    terms = terms or Terms()
    by_step = {call.step: call for call in calls}
    managed = _send(_managed(run), by_step, run, terms)
    alone = _send(_unmanaged(run), by_step, run, terms)
    prompt = sum(use.prompt for use in managed)
    return CacheRun(
        uses=managed,
        unmanaged=alone,
        cost=_sum(managed, terms.price),
        unmanaged_cost=_sum(alone, terms.price),
        prompt_cost=_sum(managed, terms.price, output=False),
        unmanaged_prompt_cost=_sum(alone, terms.price, output=False),
        cache_read_share=sum(use.read for use in managed) / prompt if prompt else 0.0,
        revisions=_paybacks(run, managed, terms.price),
    )


def _sum(uses: Sequence[CacheUse], price: Price | None, output: bool = True) -> int | None:
    if price is None:
        return None
    usages = (use.usage if output else replace(use.usage, output=0) for use in uses)
    return micros(sum(nanos(usage, price) for usage in usages))


@dataclass(frozen=True, slots=True)
class _Layout:
    """The prompt of one step, hidden part included: tokens, blocks, and where things end."""

    step: StepTokens
    total: int
    blocks: int
    unchanged: int
    appended: int
    output: int
    frontier: tuple[int, int] = (0, 0)
    changed: Cause = "unexplained"


def _send(
    layouts: Iterable[_Layout], calls: Mapping[int, Call], run: Run, terms: Terms
) -> tuple[CacheUse, ...]:
    state, uses, before = CacheState(), [], (0, 0)
    for layout in layouts:
        call = calls.get(layout.step.step)
        reported = call.usage if call else None
        places = {layout.total: layout.blocks, run.hidden: HIDDEN_BLOCKS}
        if terms.frontier:
            places.setdefault(*layout.frontier)
        if terms.steady and layout.unchanged == before[0]:
            places.setdefault(*before)
        request = Request(
            step=layout.step.step,
            total=layout.total,
            unchanged=layout.unchanged,
            breakpoints=tuple(
                Breakpoint(offset, blocks, terms.lifetime)
                for offset, blocks in sorted(places.items())
                if 0 < offset <= layout.total
            ),
            model=call.model if call else "",
            at=layout.step.at,
            minimum=terms.minimum,
            appended=layout.appended,
            changed=layout.changed,
            revision=layout.step.revision if layout.changed != "unexplained" else None,
            output=reported.output if reported else layout.output,
        )
        uses.append(advance(state, request, terms.price))
        before = layout.total, layout.blocks
    return tuple(uses)


@dataclass(slots=True)
class _Timeline:
    """The entries of a run in the order of steps: who opens, who closes, what is output."""

    opens: dict[int, list[Entry]]
    closes: dict[int, list[Entry]]
    output: dict[int, int]

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> _Timeline:
        made = cls({}, {}, {})
        for entry in entries:
            if entry.opened_by is None and entry.block.role == "assistant":
                step = entry.from_step - 1
                made.output[step] = made.output.get(step, 0) + entry.block.tokens
            made.opens.setdefault(entry.from_step, []).append(entry)
            if entry.to_step is not None:
                made.closes.setdefault(entry.to_step, []).append(entry)
        return made


def _unmanaged(run: Run) -> Iterator[_Layout]:
    timeline = _Timeline.of(entry for entry in run.entries if entry.opened_by is None)
    total, blocks, last = run.hidden, HIDDEN_BLOCKS if run.hidden else 0, 0
    unchanged = 0
    for step in run.steps:
        for passed in range(last + 1, step.step + 1):
            for entry in timeline.opens.get(passed, ()):
                total += entry.block.tokens
                blocks += 1
        last = step.step
        output = timeline.output.get(step.step, 0)
        yield _Layout(step, total, blocks, unchanged, total - unchanged, output)
        unchanged = total


def _managed(run: Run) -> Iterator[_Layout]:
    timeline, standing = _Timeline.of(run.entries), _Standing(run.entries)
    triggers = {revision.number: revision.trigger for revision in run.revisions}
    hidden, last = (run.hidden, HIDDEN_BLOCKS) if run.hidden else (0, 0), 0
    for number, step in enumerate(run.steps):
        appended = 0
        for passed in range(last + 1, step.step + 1):
            appended = standing.follow(
                timeline.opens.get(passed, ()), timeline.closes.get(passed, ())
            )
        last = step.step
        changed: Cause = "unexplained"
        if step.revision is not None:
            changed = "rewind" if triggers.get(step.revision) == "rewind" else "edit"
        total = hidden[0] + step.total
        frontier = hidden[0] + step.frontier, hidden[1] + standing.before_frontier()
        yield _Layout(
            step=step,
            total=total,
            blocks=hidden[1] + standing.count(),
            unchanged=hidden[0] + step.unchanged_prefix if number else 0,
            appended=appended if number else total,
            output=timeline.output.get(step.step, 0),
            frontier=frontier if step.frontier else (0, 0),
            changed=changed,
        )


class _Standing:
    """How many blocks stand up to a position, and where the last replacement does."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        positions = sorted({entry.block.position for entry in entries})
        self.places = {position: place for place, position in enumerate(positions)}
        self.sums = PrefixSums()
        for _ in positions:
            self.sums.append(0)
        self.replacements: list[tuple[int, str]] = []
        self.gone: set[str] = set()

    def follow(self, opens: Sequence[Entry], closes: Sequence[Entry]) -> int:
        """Open and close; tokens of what now stands at the end and did not stand before."""
        for entry in closes:
            # What opened and closed at once was seen by no call.
            if entry.from_step != entry.to_step:
                self.sums.add(self.places[entry.block.position], -1)
                self.gone.add(entry.block.id)
        stay = [entry for entry in opens if entry.from_step != entry.to_step]
        fresh = [entry.block.position for entry in opens if entry.opened_by is None]
        for entry in stay:
            self.sums.add(self.places[entry.block.position], 1)
            self.gone.discard(entry.block.id)
            if entry.block.replaces is not None:
                heappush(self.replacements, (-entry.block.position, entry.block.id))
        start = min(fresh, default=None)
        if start is None:
            return 0
        return sum(entry.block.tokens for entry in stay if entry.block.position >= start)

    def count(self) -> int:
        """All standing blocks."""
        return self.sums.before(len(self.sums))

    def before_frontier(self) -> int:
        """Standing blocks up to and including the last replacement."""
        while self.replacements and self.replacements[0][1] in self.gone:
            heappop(self.replacements)
        if not self.replacements:
            return 0
        return self.sums.before(self.places[-self.replacements[0][0]] + 1)


def _paybacks(run: Run, uses: Sequence[CacheUse], price: Price | None) -> tuple[Payback, ...]:
    by_step = {use.step: (place, use) for place, use in enumerate(uses)}
    found: list[Payback] = []
    for revision in run.revisions:
        if revision.step not in by_step:
            continue
        place, use = by_step[revision.step]
        broken = use.broken
        edited = broken is not None and broken.revision == revision.number
        rewritten = broken.rewritten if broken is not None and edited else 0
        cost = broken.cost if broken is not None and edited else 0 if price else None
        cleared = revision.tokens_before - revision.tokens_after
        steps = payback_steps(cleared, rewritten, use, price)
        remaining = len(uses) - place - 1
        found.append(
            Payback(revision.number, revision.step, cleared, rewritten, cost, steps, remaining)
        )
    return tuple(found)


def payback_steps(cleared: int, rewritten: int, use: CacheUse, price: Price | None) -> int | None:
    """Calls until an edit has paid: steps x cleared x read > rewritten x (write - read).

    None where it never does, or where there is no price to tell by.
    """
    if not rewritten and cleared > 0:
        return 0
    if price is None or cleared <= 0:
        return None
    rates = price.at(use.prompt)
    write = rates.cache_write_1h if use.write_1h > use.write_5m else rates.cache_write_5m
    saved = cleared * rates.cache_read
    return None if saved <= 0 else rewritten * max(write - rates.cache_read, 0) // saved + 1
