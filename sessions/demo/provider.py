"""The demo's simulated provider: billed and reported usage of each call."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Protocol

from compaction.cache.simulator import TTL, Breakpoint, CacheState, Request, advance
from compaction.context.session import Usage
from compaction.tokens import Counted

Count = Callable[[str], Counted]
"""Counts the o200k tokens of a text."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a prompt: its content, and its tokens as the provider counts."""

    name: str
    tokens: int


class Provider(Protocol):
    """Bills consecutive prompts; `ratio` is its tokens per o200k token."""

    ratio: float

    def bill(self, model: str, at: int, pieces: list[Piece], output: int) -> tuple[Usage, Any]:
        """Usage of a call that began at `at` (ms), and the object the provider reports."""
        ...


@dataclass(slots=True)
class AnthropicCache:
    """Breakpoints after the system prompt and near the end, as Claude Code sets them.

    Follows the rules of `compaction.cache`. `layers` is the number of pieces before the first
    message; `shared` tokens of them were cached by an earlier session.
    """

    seed: str
    layers: int = 2
    shared: int = 0
    ttl: TTL = "5m"
    ratio: float = 1.25
    minimum: int = 1024
    _state: CacheState = field(default_factory=CacheState)
    _last: list[Piece] = field(default_factory=list)
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 (a script, not a secret)

    def bill(self, model: str, at: int, pieces: list[Piece], output: int) -> tuple[Usage, Any]:
        """Usage of the next call; the first one reads `shared` tokens."""
        if not self._last and self.shared:
            self._warm(model, at - 100_000)
        total = sum(piece.tokens for piece in pieces)
        unchanged = self._unchanged(pieces, total)
        system = sum(piece.tokens for piece in pieces[: self.layers])
        end = total - self._random.randint(3, 9)
        places = tuple(Breakpoint(offset, None, self.ttl) for offset in (system, end) if offset > 0)
        request = Request(
            step=0,
            total=total,
            unchanged=min(unchanged, self._state.total),
            breakpoints=places,
            model=model,
            at=at,
            minimum=self.minimum,
            output=output,
        )
        usage = advance(self._state, request).usage
        self._last = list(pieces)
        return usage, _as_anthropic(usage)

    def _warm(self, model: str, at: int) -> None:
        place = (Breakpoint(self.shared, None, self.ttl),)
        advance(self._state, Request(0, self.shared, 0, place, model, at, self.minimum))

    def _unchanged(self, pieces: list[Piece], total: int) -> int:
        if not self._last:
            return min(self.shared, total)
        pairs = takewhile(lambda pair: pair[0] == pair[1], zip(pieces, self._last, strict=False))
        return sum(piece.tokens for piece, _ in pairs)


@dataclass(slots=True)
class OpenAI:
    """Caches automatically, in units of 128 tokens from 1,024 on; expires after some idle
    minutes."""

    ratio: float = 1.0
    keeps_ms: int = 480_000
    _last: list[Piece] = field(default_factory=list)
    _at: int = 0

    def bill(self, model: str, at: int, pieces: list[Piece], output: int) -> tuple[Usage, Any]:
        """Usage of the next call; ignores `model`."""
        del model
        same = 0
        if at - self._at <= self.keeps_ms:
            pairs = zip(pieces, self._last, strict=False)
            same = sum(a.tokens for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        read = same // 128 * 128 if same >= 1024 else 0
        total = sum(piece.tokens for piece in pieces)
        self._last, self._at = list(pieces), at
        reasoning = output * 2 // 5
        usage = Usage(total - read, read, 0, 0, output, reasoning)
        return usage, {
            "input_tokens": total,
            "cached_input_tokens": read,
            "output_tokens": output,
            "reasoning_output_tokens": reasoning,
            "total_tokens": total + output,
        }


def _as_anthropic(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.uncached,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write_5m,
            "ephemeral_1h_input_tokens": usage.cache_write_1h,
        },
        "output_tokens": usage.output,
        "service_tier": "standard",
    }
