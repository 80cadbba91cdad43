"""A recorded session as values, independent of any policy."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compaction.context.blocks import Block

MOST_TOKENS = 10**9
"""The largest count of tokens that a call may report: no model reads or writes as many, and sums
over all calls of a team stay within 64 bits."""

MOST_MICROUSD = 10**12
"""The largest amount that one row may hold, in micro-dollars: a million dollars."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call as the provider reported them, normalized.

    The prompt is uncached + cache_read + cache_write_5m + cache_write_1h; `output` includes
    `reasoning`. If a response took several requests (server tools, an advisor), `iterations` lists
    all of them in order: the prompt is then that of the model's own largest one, `output` that of
    all its own, and the cost is the sum over the iterations.
    """

    uncached: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    output: int = 0
    reasoning: int = 0
    iterations: tuple[Iteration, ...] = ()

    @property
    def cache_write(self) -> int:
        """Tokens written to the cache, for both TTLs."""
        return self.cache_write_5m + self.cache_write_1h

    @property
    def prompt(self) -> int:
        """Tokens of the whole prompt."""
        return self.uncached + self.cache_read + self.cache_write

    @property
    def opening(self) -> Usage:
        """Usage of the first of the model's own iterations, whose prompt is the step's context."""
        return next((one.usage for one in self.iterations if not one.model), self)

    @property
    def closing(self) -> Usage:
        """Usage of the last of the model's own iterations, which leaves the cache as it is."""
        return next((one.usage for one in reversed(self.iterations) if not one.model), self)

    @property
    def billed(self) -> Usage:
        """Tokens of all iterations, as billed."""
        if not self.iterations:
            return self
        sums = Usage()
        for one in self.iterations:
            sums = sums.plus(one.usage)
        return sums

    def plus(self, other: Usage) -> Usage:
        """The tokens of both, without iterations."""
        return Usage(
            self.uncached + other.uncached,
            self.cache_read + other.cache_read,
            self.cache_write_5m + other.cache_write_5m,
            self.cache_write_1h + other.cache_write_1h,
            self.output + other.output,
            self.reasoning + other.reasoning,
        )

    def minus(self, other: Usage) -> Usage:
        """The tokens without those of the other, which are among them; without iterations."""
        return Usage(
            self.uncached - other.uncached,
            self.cache_read - other.cache_read,
            self.cache_write_5m - other.cache_write_5m,
            self.cache_write_1h - other.cache_write_1h,
            self.output - other.output,
            self.reasoning - other.reasoning,
        )


@dataclass(frozen=True, slots=True)
class Iteration:
    """One of several requests behind one response; `model` is empty for the call's own."""

    usage: Usage
    model: str = ""


def of_iterations(iterations: tuple[Iteration, ...]) -> Usage | None:
    """Usage of a response that took several requests; None if none is the model's own."""
    own = [one.usage for one in iterations if not one.model]
    if not own:
        return None
    largest = max(own, key=lambda usage: usage.prompt)
    return replace(
        largest,
        output=sum(usage.output for usage in own),
        reasoning=sum(usage.reasoning for usage in own),
        iterations=iterations,
    )


@dataclass(frozen=True, slots=True)
class Call:
    """One model call: step number from 1, start time (ms since the epoch), model and usage.

    `settings` are the request settings besides its messages (level of thinking, effort), `client`
    identifies the client process that sent it; both are empty if the log does not say. `dropped`
    are thinking blocks that the provider took out of the request, as far as it reported any.
    """

    step: int
    model: str = ""
    at: int | None = None
    usage: Usage | None = None
    settings: str = ""
    client: str = ""
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Session:
    """Original blocks by position, and model calls by step.

    `blocks` leave out the summaries that a log records, so that a simulation starts from what
    really happened. `hidden` is the number of prompt tokens that the log does not show (system
    prompt, tool schemas), inferred from the first reported usage. `window` is the model's, in
    tokens.
    """

    blocks: tuple[Block, ...]
    calls: tuple[Call, ...]
    model: str
    window: int
    hidden: int = 0
