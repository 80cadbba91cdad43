"""What cache breaks cost by cause, and how well our rules forecast the cache, from kept sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from compaction.cache.causes import is_avoidable
from compaction.cache.uses import NAMES
from compaction.cache.uses import Cause as Kind
from sessions.models.cache.break_totals import break_sum
from sessions.models.web.sums import Sums


@dataclass(frozen=True, slots=True)
class CauseSums:
    """The breaks of one cause: how many, in how many sessions, tokens paid again, and what that
    cost above reading in micro-dollars: None if no session has a cost, a lower bound if only
    `priced` of the sessions have one. `avoidable` if the sender, the client or a policy controls
    the cause, and avoiding it would not cost more."""

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
        return name_of(self.kind)

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


def causes_in(sums: Sums) -> list[CauseSums]:
    """The causes of the breaks in these sums, the most expensive first."""
    found = []
    for kind in get_args(Kind):
        many, sessions, tokens, cost, priced = (
            sums.of[break_sum(kind, name)]
            for name in ("breaks", "sessions", "tokens", "cost", "priced")
        )
        if many:
            cost_known = cost if priced else None
            can = is_avoidable(kind) and not (kind == "ttl" and sums.of["keep_ttl"])
            found.append(CauseSums(kind, many, sessions, tokens, cost_known, priced, can))
    return sorted(found, key=lambda one: (-(one.microusd or 0), -one.tokens, one.kind))


def judge_ttl(parts: Sequence[Sums]) -> None:
    """Where a one-hour TTL would cost these sums more than it saves together, breaks by an expired
    TTL are not avoidable in any of them: `keep_ttl`."""
    if sum(part.of["hour_saved"] for part in parts) >= 0:
        return
    for of in (part.of for part in parts):
        of["keep_ttl"] = 1
        of["avoidable"] -= min(of[break_sum("ttl", "cost")], of["avoidable"])


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
