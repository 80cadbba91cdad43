"""A recorded session as values, independent of any policy."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.context.blocks import Block


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call as the provider reported them, normalized.

    The prompt is uncached + cache_read + cache_write_5m + cache_write_1h; `output` includes
    `reasoning`.
    """

    uncached: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    output: int = 0
    reasoning: int = 0

    @property
    def cache_write(self) -> int:
        """Tokens written to the cache, for both TTLs."""
        return self.cache_write_5m + self.cache_write_1h

    @property
    def prompt(self) -> int:
        """Tokens of the whole prompt."""
        return self.uncached + self.cache_read + self.cache_write


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
