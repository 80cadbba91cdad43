"""The record that describes how a provider caches the prompts of some models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

HOUR_MS = 3_600_000


class Kept(NamedTuple):
    """How an automatic cache keeps prefixes; sizes in tokens, `ttl` in ms.

    Reads are whole multiples of `step`, minus `lag`; `minimum` is the shortest prefix, and a step
    is read only once `behind` tokens follow it. `answers`: the response is cached too; `writes`:
    writing has a price of its own.
    """

    step: int
    lag: int
    minimum: int
    ttl: int
    answers: bool = False
    writes: bool = False
    behind: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheRule:
    """How a provider caches the prompts of some models.

    A file of `compaction/cache/providers` defines its rules as `RULES`. Files are searched in the
    order of their names, the rules of a file from first to last: the first rule that matches a
    model's name applies.
    """

    provider: str
    """Rules of one provider share its name; it is stored with simulations."""
    title: str
    """The models, in words."""
    models: str
    """Pattern for the start of a model's name, in lower case, without a gateway."""
    kept: Kept | None
    """None if requests set breakpoints and TTLs, as Anthropic's do."""
    cache: str
    """The cache and its guarantees, as shown on pages."""
    source: str
    """Where the figures come from."""
