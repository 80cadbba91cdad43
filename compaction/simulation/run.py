"""What a policy's edits cost and save in cache, compared with the recorded session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from compaction.cache import automatic
from compaction.cache.economy import asked_for, cached_by, granted, message_ttl
from compaction.cache.rules import Rules, takes_breakpoints
from compaction.cache.simulator import TTL, Breakpoint, CacheState, Request, advance
from compaction.cache.uses import Basis, CacheUse
from compaction.context.session import Call, Session
from compaction.policies.policy import Policy
from compaction.prices.prices import Price, micros, minimum, nanos, price
from compaction.simulation.layout import HIDDEN_BLOCKS, Layout, managed, recorded
from compaction.simulation.simulate import Run


@dataclass(frozen=True, slots=True)
class Terms:
    """The conditions under which a run is priced.

    With unknown `rules` there are no uses and no costs; with `price` None no costs. Prefixes
    shorter than `minimum` tokens are not cached. `ttl` applies to every breakpoint, except the one
    after the hidden prompt if `fixed` is set. `frontier` sets a breakpoint at the end of the last
    replacement, `steady` one at the last one of the request before while that prefix is unchanged:
    without it a step of over 20 blocks reads nothing.
    """

    price: Price | None = None
    minimum: int = 1024
    ttl: TTL = "5m"
    frontier: bool = True
    steady: bool = True
    rules: Rules = "anthropic"
    fixed: TTL | None = None

    def under(self, policy: Policy) -> Terms:
        """Return the terms of a policy's contexts, which may set the TTL."""
        fixed: TTL | None = "1h" if granted(policy.ttl, self.ttl) == "mixed" else None
        return replace(self, ttl=message_ttl(policy.ttl, self.ttl), fixed=fixed)


def terms_of(session: Session, ttl: TTL | None = None) -> Terms:
    """Return the terms of a recorded session.

    They are the price of its model when it began, the model's minimum, and the TTL of most reported
    cache writes (5 minutes if unknown). No price without rules, because the cost of a call depends
    on its cache.
    """
    if ttl is None:
        ttl = asked_for(call.usage for call in session.calls if call.usage is not None)
    began = session.calls[0].at if session.calls else None
    listed = price(session.model, began)
    return Terms(
        rules=cached_by(session.model, listed),
        price=listed,
        minimum=minimum(session.model) or Terms().minimum,
        ttl=ttl,
    )


@dataclass(frozen=True, slots=True)
class RevisionPayback:
    """What one revision did to the cache.

    `cleared` tokens left the prompt; `rewritten` tokens had been cached and were paid again, at
    `cost` micro-dollars above reading them (0 with a cold cache: then an edit is free). `steps` is
    the number of calls after which the savings exceed that, None if they never do; `remaining`
    calls followed in the session.
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


@dataclass(frozen=True)
class CacheRun:
    """Costs of a run in micro-dollars (None without a price), managed and recorded.

    Both sides start with a cold cache, follow the same rules and the recorded pace, and write the
    same output. The TTL of the run is the policy's (`Terms.under`), that of the recorded session is
    in `terms`. Everything is simulated, even if usage was reported: compare the two sides with each
    other, not with a bill. Work by summarizers is not included.
    """

    run: Run
    calls: Mapping[int, Call]
    """By step."""
    terms: Terms
    uses: tuple[CacheUse, ...]

    @cached_property
    def recorded(self) -> tuple[CacheUse, ...]:
        """The session without the run's edits; only if asked: it takes as long as `uses`."""
        return _send(recorded(self.run), self.calls, self.terms)

    @property
    def cost(self) -> int | None:
        """What the run costs."""
        return _sum(self.uses, self.terms.price)

    @property
    def recorded_cost(self) -> int | None:
        """What the session costs without the run's edits."""
        return _sum(self.recorded, self.terms.price)

    @property
    def prompt_cost(self) -> int | None:
        """`cost` without the output."""
        return _sum(self.uses, self.terms.price, output=False)

    @property
    def recorded_prompt_cost(self) -> int | None:
        """`recorded_cost` without the output."""
        return _sum(self.recorded, self.terms.price, output=False)

    @property
    def cache_read_share(self) -> float | None:
        """Share of the run's prompts read from the cache; None if the rules are unknown."""
        if self.terms.rules == "unknown":
            return None
        prompt = sum(use.prompt for use in self.uses)
        return sum(use.read for use in self.uses) / prompt if prompt else 0.0

    @property
    def revisions(self) -> tuple[RevisionPayback, ...]:
        """What each revision did to the cache."""
        return _paybacks(self.run, self.uses, self.terms.price)


def simulate_cache(run: Run, calls: Sequence[Call], terms: Terms | None = None) -> CacheRun:
    """Send every context of a run to a cache.

    `calls` give the model and, if reported, the output; otherwise output is counted from the blocks
    of the next step. Work is n log n in steps and entries.
    """
    terms = terms or Terms()
    by_step = {call.step: call for call in calls}
    return CacheRun(run, by_step, terms, _send(managed(run), by_step, terms.under(run.policy)))


def estimate_cache(
    run: Run, calls: Sequence[Call], terms: Terms | None = None
) -> tuple[CacheUse, ...]:
    """Estimate the cache use of a recorded session's own contexts, if no usage was reported."""
    by_step = {call.step: call for call in calls}
    return _send(managed(run), by_step, terms or Terms(), "estimated")


def _sum(uses: Sequence[CacheUse], rates: Price | None, output: bool = True) -> int | None:
    if rates is None or not uses:
        return None
    usages = (use.usage if output else replace(use.usage, output=0) for use in uses)
    return micros(sum(nanos(usage, rates) for usage in usages))


def _cache(rules: Rules) -> Callable[[Request, Price | None, Basis], CacheUse]:
    """Create an empty cache of a provider."""
    if takes_breakpoints(rules):
        return partial(advance, CacheState())
    return partial(automatic.advance, automatic.AutomaticState(rules))


def _send(
    layouts: Iterable[Layout],
    calls: Mapping[int, Call],
    terms: Terms,
    basis: Basis = "simulated",
) -> tuple[CacheUse, ...]:
    if terms.rules == "unknown":
        return ()
    send, uses, before = _cache(terms.rules), [], (0, 0)
    for layout in layouts:
        call = calls.get(layout.step.step)
        reported = call.usage if call else None
        end, blocks = layout.cacheable
        places = {end: blocks, layout.prelude: HIDDEN_BLOCKS}
        if terms.frontier:
            places.setdefault(*layout.frontier)
        if terms.steady and layout.unchanged >= before[0]:
            places.setdefault(*before)
        request = Request(
            step=layout.step.step,
            total=layout.total,
            unchanged=layout.unchanged,
            breakpoints=tuple(
                Breakpoint(offset, blocks, _ttl(terms, offset <= layout.prelude))
                for offset, blocks in sorted(places.items())
                if 0 < offset <= end
            ),
            model=call.model if call else "",
            at=layout.step.at,
            minimum=terms.minimum,
            appended=layout.appended,
            passing=layout.passing,
            system=layout.prelude,
            images=layout.images,
            changed=layout.changed,
            revision=layout.step.revision if layout.changed != "unexplained" else None,
            output=reported.output if reported else layout.output,
        )
        uses.append(send(request, terms.price, basis))
        before = layout.cacheable
    return tuple(uses)


def _ttl(terms: Terms, hidden: bool) -> TTL:
    return terms.fixed if hidden and terms.fixed is not None else terms.ttl


def _paybacks(
    run: Run, uses: Sequence[CacheUse], rates: Price | None
) -> tuple[RevisionPayback, ...]:
    by_step = {use.step: (place, use) for place, use in enumerate(uses)}
    found: list[RevisionPayback] = []
    for revision in run.revisions:
        if revision.step not in by_step:
            continue
        place, use = by_step[revision.step]
        broken = use.broken
        edited = broken is not None and broken.revision == revision.number
        rewritten = broken.rewritten if broken is not None and edited else 0
        cost = broken.cost if broken is not None and edited else 0 if rates else None
        cleared = revision.tokens_before - revision.tokens_after
        steps = payback_steps(cleared, rewritten, use, rates)
        remaining = len(uses) - place - 1
        found.append(
            RevisionPayback(
                revision.number, revision.step, cleared, rewritten, cost, steps, remaining
            )
        )
    return tuple(found)


def payback_steps(cleared: int, rewritten: int, use: CacheUse, rates: Price | None) -> int | None:
    """Return the calls until an edit has paid: steps x cleared x read > rewritten x (write - read).

    None if it never does, or without a price.
    """
    if not rewritten and cleared > 0:
        return 0
    if rates is None or cleared <= 0:
        return None
    now = rates.at(use.prompt)
    write = now.cache_write_1h if use.write_1h > use.write_5m else now.cache_write_5m
    saved = cleared * now.cache_read
    return None if saved <= 0 else rewritten * max(write - now.cache_read, 0) // saved + 1
