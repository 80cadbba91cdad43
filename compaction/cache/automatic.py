"""Simulate automatic prompt caches, which have no breakpoints: the tokens each call should read.

Covers OpenAI's, Gemini's implicit one, those that keep the longest prefix without publishing more,
and none at all. Rules and sources are in docs/record/cache.md. No provider guarantees anything
about a single call here, so results are the plain expectation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from compaction.cache.providers.openai import EARLY
from compaction.cache.rule import Kept
from compaction.cache.rules import Rules, kept_by
from compaction.cache.simulator import Request, priced, tiers
from compaction.cache.uses import Basis, Break, CacheUse
from compaction.prices.prices import Price


@dataclass(slots=True)
class AutomaticState:
    """State between calls: per model, the tokens of the cached prefix and when it was last used."""

    rules: Rules = "openai"
    kept: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    model: str | None = None
    total: int = 0
    passing: int = 0
    images: bool = False
    settings: str = ""
    toggles: str = ""


def whole_steps(tokens: int, kept: Kept = EARLY) -> int:
    """Return how many tokens of an unchanged prefix can be read."""
    if tokens < kept.minimum:
        return 0
    return max((tokens - kept.behind + kept.lag) // kept.step * kept.step - kept.lag, 0)


def advance(
    state: AutomaticState, request: Request, price: Price | None = None, basis: Basis = "simulated"
) -> CacheUse:
    """Send one request: update the state and return the cache use of the call.

    Breakpoints and the request's own minimum do not apply here. If cache writes have no price,
    tokens that are not read count as uncached. Raises ValueError if the unchanged prefix is longer
    than either prompt.
    """
    if not 0 <= request.unchanged <= min(request.total, state.total):
        raise ValueError("the unchanged prefix is longer than its prompt")
    if state.rules == "none":
        return _uncached(state, request, price, basis)
    request = tiers(state, request)
    rule = kept_by(request.model, state.rules)
    had, used = state.kept.get(request.model, (0, None))
    idle = 0 if request.at is None or used is None else max(request.at - used, 0)
    left = 0 if idle > rule.ttl else had
    read = whole_steps(min(left, request.unchanged), rule)
    written = request.total - read if rule.writes and request.total >= rule.minimum else 0
    use = CacheUse(
        step=request.step,
        basis=basis,
        read=read,
        write_5m=written,
        write_1h=0,
        uncached=request.total - read - written,
        output=request.output,
        expected=None if state.model is None else whole_steps(min(had, request.unchanged), rule),
        confidence="best-effort",
    )
    broken = _broken(state, request, read, idle, had)
    # The caches of other models cannot use a changed prefix either.
    for model, (tokens, at) in state.kept.items():
        state.kept[model] = min(tokens, request.unchanged), at
    state.kept[request.model] = request.total, request.at
    state.model, state.total, state.passing = request.model, request.total, request.passing
    return priced(use, broken, price)


def _uncached(
    state: AutomaticState, request: Request, price: Price | None, basis: Basis
) -> CacheUse:
    """Return the use of a call to a provider without a cache."""
    state.model, state.total = request.model, request.total
    use = CacheUse(
        step=request.step,
        basis=basis,
        read=0,
        write_5m=0,
        write_1h=0,
        uncached=request.total,
        output=request.output,
        confidence="guaranteed",
    )
    return priced(use, None, price)


def _broken(
    state: AutomaticState, request: Request, read: int, idle: int, had: int
) -> Break | None:
    """Return why tokens in the cache were paid for again; rounding to increments is not a break."""
    if state.model is None:
        return Break("cold_start")
    rule = kept_by(request.model, state.rules)
    stood = state.total - state.passing
    could = whole_steps(stood, rule)
    if not could:
        return Break("minimum") if request.total < rule.minimum else None
    rewritten = request.paid_again(read, stood, could)
    if rewritten <= 0:
        return None
    if state.model != request.model:
        return Break("model", rewritten)
    if had and idle > rule.ttl:
        return Break("ttl", rewritten, idle=idle, ttl=rule.ttl)
    if not request.cut and request.unchanged < request.tools:
        return Break("tools", rewritten)
    if not request.cut and request.unchanged < request.system:
        return Break("system", rewritten)
    if request.unchanged >= stood and not request.cut:
        return None
    return Break(request.changed, rewritten, revision=request.revision)
