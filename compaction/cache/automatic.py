"""What automatic prompt caches are expected to read: no breakpoints, nothing to ask for.

OpenAI's, Gemini's implicit one, those that keep the longest prefix and publish no more, and none at
all. The rules and their sources stand in docs/cache.md. No provider promises anything about a
single call here: what is made is the plain expectation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from compaction.cache.rules import EARLY_OPENAI, Kept, Rules, kept_by
from compaction.cache.simulator import Basis, Break, CacheUse, Request, priced, tiers
from compaction.prices import Price

MINIMUM = EARLY_OPENAI.minimum
STEP = EARLY_OPENAI.step
LIFETIME_MS = EARLY_OPENAI.lifetime
"""OpenAI before GPT-5.5: tokens of the shortest prefix, the steps that longer ones count in, and
10 minutes: of the Codex sessions in docs/sources.md, calls within 10 minutes mostly still read,
those after it mostly do not."""


@dataclass(slots=True)
class AutomaticState:
    """What is remembered between calls: per model, the tokens of the prefix that is kept."""

    rules: Rules = "openai"
    kept: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    model: str | None = None
    total: int = 0
    passing: int = 0
    images: bool = False
    settings: str = ""
    toggles: str = ""


def whole_steps(tokens: int, kept: Kept = EARLY_OPENAI) -> int:
    """How much of an unchanged prefix of so many tokens can be read."""
    if tokens < kept.minimum:
        return 0
    return max((tokens - kept.behind + kept.lag) // kept.step * kept.step - kept.lag, 0)


def advance(
    state: AutomaticState, request: Request, price: Price | None = None, basis: Basis = "simulated"
) -> CacheUse:
    """Send one request: update the state, and say how much of its prompt is read.

    Breakpoints and the request's own minimum have no meaning here. Where writing has no price,
    what is not read is fresh. Raises ValueError for a prefix unchanged beyond either prompt.
    """
    if not 0 <= request.unchanged <= min(request.total, state.total):
        raise ValueError("the unchanged prefix is longer than a prompt that it is part of")
    if state.rules == "none":
        return _fresh(state, request, price, basis)
    request = tiers(state, request)
    rule = kept_by(request.model, state.rules)
    had, used = state.kept.get(request.model, (0, None))
    idle = 0 if request.at is None or used is None else max(request.at - used, 0)
    left = 0 if idle > rule.lifetime else had
    read = whole_steps(min(left, request.unchanged), rule)
    written = request.total - read if rule.writes and request.total >= rule.minimum else 0
    use = CacheUse(
        step=request.step,
        basis=basis,
        read=read,
        write_5m=written,
        write_1h=0,
        fresh=request.total - read - written,
        output=request.output,
        expected=None if state.model is None else whole_steps(min(had, request.unchanged), rule),
        confidence="best-effort",
    )
    broken = _broken(state, request, read, idle, had)
    # A prefix that a request changed is of no use to the other models' caches either.
    for model, (tokens, at) in state.kept.items():
        state.kept[model] = min(tokens, request.unchanged), at
    state.kept[request.model] = request.total, request.at
    state.model, state.total, state.passing = request.model, request.total, request.passing
    return priced(use, broken, price)


def _fresh(state: AutomaticState, request: Request, price: Price | None, basis: Basis) -> CacheUse:
    """A call to a provider without a cache."""
    state.model, state.total = request.model, request.total
    use = CacheUse(
        step=request.step,
        basis=basis,
        read=0,
        write_5m=0,
        write_1h=0,
        fresh=request.total,
        output=request.output,
        confidence="guaranteed",
    )
    return priced(use, None, price)


def _broken(
    state: AutomaticState, request: Request, read: int, idle: int, had: int
) -> Break | None:
    """Why tokens are paid again that the call before had left; whole steps are no reason."""
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
    if had and idle > rule.lifetime:
        return Break("lifetime", rewritten, idle=idle, lifetime=rule.lifetime)
    if not request.cut and request.unchanged < request.tools:
        return Break("tools", rewritten)
    if not request.cut and request.unchanged < request.system:
        return Break("system", rewritten)
    if request.unchanged >= stood and not request.cut:
        return None
    return Break(request.changed, rewritten, revision=request.revision)
