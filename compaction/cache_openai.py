"""What OpenAI's automatic prompt cache is expected to read: no breakpoints, steps of 128 tokens.

The rules and their sources stand in docs/cache.md. OpenAI promises nothing about a single call:
what is made here is the plain expectation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from compaction.cache import Basis, Break, CacheUse, Request, priced
from compaction.prices import Price

MINIMUM = 1_024
"""Tokens of the shortest prefix that is cached."""

STEP = 128
"""Longer prefixes count in steps of so many tokens."""

LIFETIME_MS = 600_000
"""OpenAI: 5 to 10 minutes without use, an hour at most. Of the Codex sessions in docs/sources.md,
calls within 10 minutes mostly still read, those after it mostly do not."""


@dataclass(slots=True)
class OpenAIState:
    """What is remembered between calls: per model, the tokens of the prefix that is kept."""

    kept: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    model: str | None = None
    total: int = 0
    passing: int = 0


def whole_steps(tokens: int) -> int:
    """How much of an unchanged prefix of so many tokens can be read."""
    return tokens // STEP * STEP if tokens >= MINIMUM else 0


def advance(
    state: OpenAIState, request: Request, price: Price | None = None, basis: Basis = "simulated"
) -> CacheUse:
    """Send one request: update the state, and say how much of its prompt is read.

    Breakpoints and the request's own minimum have no meaning here. Nothing is written at a price:
    what is not read is fresh. Raises ValueError for a prefix unchanged beyond either prompt.
    """
    if not 0 <= request.unchanged <= min(request.total, state.total):
        raise ValueError("the unchanged prefix is longer than a prompt that it is part of")
    kept, used = state.kept.get(request.model, (0, None))
    idle = 0 if request.at is None or used is None else max(request.at - used, 0)
    left = 0 if idle > LIFETIME_MS else kept
    read = whole_steps(min(left, request.unchanged))
    use = CacheUse(
        step=request.step,
        basis=basis,
        read=read,
        write_5m=0,
        write_1h=0,
        fresh=request.total - read,
        output=request.output,
        expected=None if state.model is None else whole_steps(min(kept, request.unchanged)),
    )
    broken = _broken(state, request, read, idle, kept)
    # A prefix that a request changed is of no use to the other models' caches either.
    for model, (tokens, at) in state.kept.items():
        state.kept[model] = min(tokens, request.unchanged), at
    state.kept[request.model] = request.total, request.at
    state.model, state.total, state.passing = request.model, request.total, request.passing
    return priced(use, broken, price)


def _broken(state: OpenAIState, request: Request, read: int, idle: int, kept: int) -> Break | None:
    """Why tokens are paid again that the call before had left; steps of 128 are no reason."""
    if state.model is None:
        return Break("cold_start")
    stood = state.total - state.passing
    could = whole_steps(stood)
    if not could:
        return Break("minimum") if request.total < MINIMUM else None
    rewritten = request.paid_again(read, stood, could)
    if rewritten <= 0:
        return None
    if state.model != request.model:
        return Break("model", rewritten)
    if kept and idle > LIFETIME_MS:
        return Break("lifetime", rewritten, idle=idle, lifetime=LIFETIME_MS)
    if request.unchanged < request.tools:
        return Break("tools", rewritten)
    if request.unchanged < request.system:
        return Break("system", rewritten)
    if request.unchanged >= stood:
        return None
    return Break(request.changed, rewritten, revision=request.revision)
