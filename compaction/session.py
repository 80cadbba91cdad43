"""A recorded session as values: what happened, without what any policy made of it."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.context import Block


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call as the provider reported them, normalised.

    The prompt is fresh + cache_read + cache_write_5m + cache_write_1h; `output` includes
    `reasoning`.
    """

    fresh: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    output: int = 0
    reasoning: int = 0

    @property
    def cache_write(self) -> int:
        """Tokens written to the cache, both lifetimes."""
        return self.cache_write_5m + self.cache_write_1h

    @property
    def prompt(self) -> int:
        """Tokens of the whole prompt."""
        return self.fresh + self.cache_read + self.cache_write


@dataclass(frozen=True, slots=True)
class Call:
    """One model call: step number from 1, when it began (ms since the epoch), what was reported.

    `settings` is what the log says that the request asked for beside its messages (level of
    thinking, effort), `client` which start of the client sent it; empty where no log says so.
    """

    step: int
    model: str = ""
    at: int | None = None
    usage: Usage | None = None
    settings: str = ""
    client: str = ""


@dataclass(frozen=True, slots=True)
class Session:
    """Original blocks by position, and the calls by step.

    `blocks` leave out summaries that the log records, so that a simulation starts from what really
    happened. `hidden` are prompt tokens that the log does not show (system prompt, tool schemas),
    inferred from the first reported usage. `window` is the model's, in tokens.
    """

    blocks: tuple[Block, ...]
    calls: tuple[Call, ...]
    model: str
    window: int
    hidden: int = 0
