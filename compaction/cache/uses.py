"""What a call read from the cache and wrote to it, and why it could read no more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from compaction.cache.rules import Confidence
from compaction.context.session import Usage

Basis = Literal["measured", "estimated", "simulated"]
"""Reported usage; our rules on a recorded context; our rules on a policy's context."""

Cause = Literal[
    "cold_start",
    "ttl",
    "model",
    "tools",
    "system",
    "edit",
    "rewind",
    "look_back",
    "minimum",
    "images",
    "settings",
    "thinking",
    "restart",
    "steps",
    "search",
    "unexplained",
]
"""Why a call could not read what the call before it had cached."""


@dataclass(frozen=True, slots=True)
class Break:
    """Cached tokens that had to be paid again at a call, and why.

    `rewritten` is in tokens, `cost` is what they cost above a cache read (micro-dollars, None
    without a price). `idle` and `ttl` (ms) are set for an expired TTL, `revision` is the
    number of the edit that caused it. `after` is the number of tokens before the break, which could
    still be read. `cut`: the context changed at the same step, so that no TTL would have kept
    this. `guess`: the log does not show the cause, but it happened before in this session.
    """

    cause: Cause
    rewritten: int = 0
    cost: int | None = None
    idle: int | None = None
    ttl: int | None = None
    revision: int | None = None
    after: int | None = None
    guess: bool = False
    cut: bool = False

    def __str__(self) -> str:
        said = NAMES[self.cause] + (", probably" if self.guess else "")
        if self.cause == "ttl" and self.idle is not None:
            minutes = self.idle // 60_000
            short = f"{minutes} m {self.idle // 1000 % 60} s"
            long = f"{minutes // 60} h {minutes % 60} m"
            said += f" (idle {long if minutes >= 60 else short})"
        return f"{said} at revision {self.revision}" if self.revision is not None else said


NAMES: dict[Cause, str] = {
    "cold_start": "cold start",
    "ttl": "TTL expired",
    "model": "model switched",
    "tools": "tools changed",
    "system": "system prompt changed",
    "edit": "context edited",
    "rewind": "rewound",
    "look_back": "more than 20 blocks since the last breakpoint",
    "minimum": "below the model's minimum",
    "images": "images added or removed",
    "settings": "request settings changed",
    "thinking": "earlier thinking removed",
    "restart": "client restarted",
    "steps": "below the next cache increment",
    "search": "searched within the call before",
    "unexplained": "unexplained",
}
"""Each cause in words."""


@dataclass(frozen=True, slots=True)
class CacheUse:
    """Where the prompt tokens of a call came from; read, both writes and uncached add up to the
    prompt.

    `expected` is the number of tokens that the call before left to be read, if known; its
    difference from `read` is the error of our expectation. `forecast` is what our rules expect the
    call to read, from what earlier calls reported; None for a first call. `cost` is in
    micro-dollars, output included; None if the model has no price. `confidence` is that of our
    rules, for calls that were not measured. If a response took several requests, the parts are
    those of the model's own largest, `opened` is the prompt of the first, and `beside` the tokens
    of the others; `cost` includes them.
    """

    step: int
    basis: Basis
    read: int
    write_5m: int
    write_1h: int
    uncached: int
    output: int = 0
    cost: int | None = None
    expected: int | None = None
    forecast: int | None = None
    broken: Break | None = None
    confidence: Confidence = "likely"
    opened: int | None = None
    beside: Usage | None = None

    @property
    def opening(self) -> int:
        """Tokens of the prompt that the response began with, which is the step's context."""
        return self.prompt if self.opened is None else self.opened

    @property
    def billed(self) -> Usage:
        """Tokens of all requests of the response."""
        return self.usage if self.beside is None else self.usage.plus(self.beside)

    @property
    def prompt(self) -> int:
        """Tokens of the whole prompt."""
        return self.read + self.write_5m + self.write_1h + self.uncached

    @property
    def usage(self) -> Usage:
        """The tokens in the provider's form."""
        return Usage(self.uncached, self.read, self.write_5m, self.write_1h, self.output)
