"""What cache breaks cost by cause, and how well our rules forecast the cache, from kept sums."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import get_args

from compaction.cache.uses import NAMES
from compaction.cache.uses import Cause as Kind
from sessions.models.cache.break_totals import break_sum
from sessions.models.web.sums import Sums

AVOIDABLE = (
    "Avoidable: what cache breaks that have a fix cost, by reported usage: tokens written again, "
    "above the price of reading them from the cache. What the fix itself costs, such as the higher "
    "price of writing a 1-hour cache, is not taken off: only what a fix saves is net of it."
)
"""The definition, on every page with this figure."""


@dataclass(frozen=True, slots=True)
class CauseSums:
    """The breaks of one cause, either the `avoidable` ones or the others, as the assessments of
    their sessions judged: how many, in how many sessions, tokens paid again, and what that cost
    above reading in micro-dollars: None if no session has a cost, a lower bound if only `priced`
    of the sessions have one."""

    kind: str
    breaks: int
    sessions: int
    tokens: int
    microusd: int | None
    priced: int
    avoidable: bool

    @property
    def name(self) -> str:
        """The cause in words."""
        stays = self.kind == "ttl" and not self.avoidable
        return f"{name_of(self.kind)}, not avoidable" if stays else name_of(self.kind)

    @property
    def key(self) -> tuple[str, bool]:
        """What tells these breaks from others: the cause, and whether they are avoidable."""
        return self.kind, self.avoidable

    @property
    def asked(self) -> dict[str, str]:
        """The query that lists these breaks on the cache page."""
        return asked_of(*self.key)

    @property
    def known(self) -> bool:
        """Whether logs show the cause."""
        return self.kind != "unexplained"

    @property
    def at_least(self) -> bool:
        """Whether the cost is a lower bound."""
        return 0 < self.priced < self.sessions


def name_of(kind: str) -> str:
    """A cause in words; empty for none."""
    return next((name for cause, name in NAMES.items() if cause == kind), "")


def asked_of(kind: str, avoidable: bool) -> dict[str, str]:
    """The query of a cause on the cache page: of an expired TTL, those that could be avoided or the
    others."""
    more = {"avoidable": "1" if avoidable else "0"} if kind == "ttl" else {}
    return {"cause": kind, **more}


def causes_in(sums: Sums) -> list[CauseSums]:
    """The causes of the breaks in these sums, the most expensive first."""
    found = []
    for kind, can in product(get_args(Kind), (True, False)):
        many, sessions, tokens, cost, priced = (
            sums.of[break_sum(kind, name, avoidable=can)]
            for name in ("breaks", "sessions", "tokens", "cost", "priced")
        )
        if many:
            cost_known = cost if priced else None
            found.append(CauseSums(kind, many, sessions, tokens, cost_known, priced, can))
    return sorted(found, key=lambda one: (-(one.microusd or 0), -one.tokens, one.kind))


@dataclass(frozen=True, slots=True)
class Calibration:
    """Cache reads as our rules forecast them from what earlier calls reported, and as the provider
    reported them, in tokens. `off` adds up the differences of single calls, so that errors do not
    cancel. `unknown` sessions report no cache use."""

    calls: int
    prompt: int
    forecast: int
    reported: int
    off: int
    unknown: int

    @property
    def known(self) -> bool:
        """Whether there is anything to compare."""
        return bool(self.prompt)

    @property
    def error(self) -> float:
        """The absolute error as a share of the prompts."""
        return self.off / self.prompt

    @property
    def hit_forecast(self) -> float:
        """The hit ratio that our rules forecast."""
        return self.forecast / self.prompt

    @property
    def hit_reported(self) -> float:
        """The hit ratio that was reported."""
        return self.reported / self.prompt


def calibration_in(sums: Sums) -> Calibration:
    """The calibration of the sessions in these sums."""
    of = sums.of
    return Calibration(
        of["forecast_calls"],
        of["forecast_prompt"],
        of["forecast_read"],
        of["forecast_reported"],
        of["forecast_off"],
        of["sessions"] - of["forecast"],
    )
