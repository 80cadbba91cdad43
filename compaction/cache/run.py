"""What a policy's edits cost and save in cache: a run beside the same session unmanaged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from compaction.cache import automatic
from compaction.cache.economy import asked_for, cached_by, keep_of
from compaction.cache.layout import HIDDEN_BLOCKS, Layout, managed, unmanaged
from compaction.cache.rules import Rules
from compaction.cache.simulator import (
    Basis,
    Breakpoint,
    CacheState,
    CacheUse,
    Lifetime,
    Request,
    advance,
)
from compaction.policies.policy import Policy
from compaction.prices import Price, micros, minimum, nanos, price
from compaction.session import Call, Session
from compaction.simulate import Run


@dataclass(frozen=True, slots=True)
class Terms:
    """Under which conditions a run is priced.

    By unknown `rules` there are no uses and no dollars at all.
    `price` None leaves all dollars None. Prefixes shorter than `minimum` tokens are not cached.
    `lifetime` is that of every breakpoint, but for the one after the hidden prompt where `fixed`
    says otherwise. `frontier` sets one at the end of the last
    replacement, `steady` one where the last of the request before was, as long as that stands:
    without it a step of over 20 blocks rereads nothing.
    """

    price: Price | None = None
    minimum: int = 1024
    lifetime: Lifetime = "5m"
    frontier: bool = True
    steady: bool = True
    rules: Rules = "anthropic"
    fixed: Lifetime | None = None

    def under(self, policy: Policy) -> Terms:
        """The terms of contexts that a policy makes, which may choose how long they are kept."""
        fixed: Lifetime | None = "1h" if policy.lifetime == "mixed" else None
        return replace(self, lifetime=keep_of(policy.lifetime, self.lifetime), fixed=fixed)


def terms_of(session: Session, lifetime: Lifetime | None = None) -> Terms:
    """The terms of a recorded session: price of its model when it began, the model's minimum, and
    the lifetime that most of its reported cache writes asked for (5 minutes where none tells).

    No price without rules: what a call costs depends on its cache first of all.
    """
    if lifetime is None:
        lifetime = asked_for(call.usage for call in session.calls if call.usage is not None)
    began = session.calls[0].at if session.calls else None
    listed = price(session.model, began)
    return Terms(
        rules=cached_by(session.model, listed),
        price=listed,
        minimum=minimum(session.model) or Terms().minimum,
        lifetime=lifetime,
    )


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
    output. `prompt_cost` leaves the output out. Work by summarizers is not in it. The share read
    from the cache is None where the rules are unknown.
    """

    uses: tuple[CacheUse, ...]
    unmanaged: tuple[CacheUse, ...]
    cost: int | None
    unmanaged_cost: int | None
    prompt_cost: int | None
    unmanaged_prompt_cost: int | None
    cache_read_share: float | None
    revisions: tuple[Payback, ...]


def simulate_cache(run: Run, calls: Sequence[Call], terms: Terms | None = None) -> CacheRun:
    """Send every context of a run, and of the session without the run's edits, to a cache.

    `calls` give the model and, where reported, the output; else that is counted from the blocks
    that the next step brings. The run's entries live as long as its policy asks (`Terms.under`),
    those of the session without it as `terms` say. Everything is simulated, whatever usage says:
    the two sides are to be compared with each other, not with a bill. Work is linear in steps and
    entries (and the logarithm of those).
    """
    terms = terms or Terms()
    by_step = {call.step: call for call in calls}
    ours = _send(managed(run), by_step, run, terms.under(run.policy))
    alone = _send(unmanaged(run), by_step, run, terms)
    prompt = sum(use.prompt for use in ours)
    share = sum(use.read for use in ours) / prompt if prompt else 0.0
    return CacheRun(
        uses=ours,
        unmanaged=alone,
        cost=_sum(ours, terms.price),
        unmanaged_cost=_sum(alone, terms.price),
        prompt_cost=_sum(ours, terms.price, output=False),
        unmanaged_prompt_cost=_sum(alone, terms.price, output=False),
        cache_read_share=None if terms.rules == "unknown" else share,
        revisions=_paybacks(run, ours, terms.price),
    )


def estimate_cache(
    run: Run, calls: Sequence[Call], terms: Terms | None = None
) -> tuple[CacheUse, ...]:
    """What a recorded session's own contexts would have meant, where no usage was reported."""
    by_step = {call.step: call for call in calls}
    return _send(managed(run), by_step, run, terms or Terms(), "estimated")


def _sum(uses: Sequence[CacheUse], rates: Price | None, output: bool = True) -> int | None:
    if rates is None or not uses:
        return None
    usages = (use.usage if output else replace(use.usage, output=0) for use in uses)
    return micros(sum(nanos(usage, rates) for usage in usages))


def _cache(rules: Rules) -> Callable[[Request, Price | None, Basis], CacheUse]:
    """An empty cache of a provider."""
    if rules == "anthropic":
        return partial(advance, CacheState())
    return partial(automatic.advance, automatic.AutomaticState(rules))


def _send(
    layouts: Iterable[Layout],
    calls: Mapping[int, Call],
    run: Run,
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
        places = {end: blocks, run.hidden: HIDDEN_BLOCKS}
        if terms.frontier:
            places.setdefault(*layout.frontier)
        if terms.steady and layout.unchanged >= before[0]:
            places.setdefault(*before)
        request = Request(
            step=layout.step.step,
            total=layout.total,
            unchanged=layout.unchanged,
            breakpoints=tuple(
                Breakpoint(offset, blocks, _lifetime(terms, offset <= run.hidden))
                for offset, blocks in sorted(places.items())
                if 0 < offset <= end
            ),
            model=call.model if call else "",
            at=layout.step.at,
            minimum=terms.minimum,
            appended=layout.appended,
            passing=layout.passing,
            system=run.hidden,
            images=layout.images,
            changed=layout.changed,
            revision=layout.step.revision if layout.changed != "unexplained" else None,
            output=reported.output if reported else layout.output,
        )
        uses.append(send(request, terms.price, basis))
        before = layout.cacheable
    return tuple(uses)


def _lifetime(terms: Terms, hidden: bool) -> Lifetime:
    return terms.fixed if hidden and terms.fixed is not None else terms.lifetime


def _paybacks(run: Run, uses: Sequence[CacheUse], rates: Price | None) -> tuple[Payback, ...]:
    by_step = {use.step: (place, use) for place, use in enumerate(uses)}
    found: list[Payback] = []
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
            Payback(revision.number, revision.step, cleared, rewritten, cost, steps, remaining)
        )
    return tuple(found)


def payback_steps(cleared: int, rewritten: int, use: CacheUse, rates: Price | None) -> int | None:
    """Calls until an edit has paid: steps x cleared x read > rewritten x (write - read).

    None where it never does, or where there is no price to tell by.
    """
    if not rewritten and cleared > 0:
        return 0
    if rates is None or cleared <= 0:
        return None
    now = rates.at(use.prompt)
    write = now.cache_write_1h if use.write_1h > use.write_5m else now.cache_write_5m
    saved = cleared * now.cache_read
    return None if saved <= 0 else rewritten * max(write - now.cache_read, 0) // saved + 1
