"""Compare cache forecasts with reported usage, to measure how well our rules hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from compaction.cache.forecast import ForecastState, Moment, forecast, observe
from compaction.cache.measured import broke, follow
from compaction.context.session import Call, Usage
from compaction.prices.prices import price

WITHIN = 0.02
"""A forecast counts as right if it is off by at most this share of the prompt."""

MOST_HIDDEN, USUAL_HIDDEN = 53_000, 39_000
"""Prompt tokens that Claude Code logs do not show: p90 and median (docs/sources.md, Recorded
sessions)."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One call: tokens read as reported, and as forecast in two ways.

    `informed` uses the reported usage of all earlier calls, `blind` only that of the first call
    (`blind_prompt` is the prompt size it expected). `broke` and `foreseen` say whether the call
    was a cache break and whether one was forecast; `paid` whether it paid again for what it did not
    read, so that pages show it, and `cost` what that cost above reading (micro-dollars; None
    without a price). `cause` is that of a break or of a false alarm.
    """

    step: int
    prompt: int
    read: int
    informed: int
    blind: int
    blind_prompt: int
    broke: bool
    foreseen: bool
    paid: bool
    cost: int | None
    cause: str | None


def compare(calls: Iterable[tuple[Call, Moment]], visible: dict[int, int]) -> list[Compared]:
    """Compare every call with reported usage, except the first, which has nothing to forecast from.

    `visible` maps a step to the tokens of its context, counted without usage.
    """
    informed, blind = ForecastState(), ForecastState()
    hidden = 0
    found: list[Compared] = []
    for call, given in calls:
        usage = call.usage
        moment = given.after(informed.passed)
        if usage is None:
            informed.passed = blind.passed = moment
            continue
        if informed.usage is None:
            hidden = usage.prompt - visible[moment.step]
            observe(informed, moment, usage)
            observe(blind, moment, usage)
            continue
        if hidden > MOST_HIDDEN and any(one.cause == "edit" for one in moment.changes):
            # The log is missing its start: the missing part was summarized with the rest.
            hidden = USUAL_HIDDEN
        prompt = max(visible[moment.step] + hidden, 0)
        guess = forecast(blind, moment)
        read = min(guess.read, prompt)
        found.append(_compared(informed, moment, call, usage, (read, prompt)))
        observe(blind, moment, _like(blind, prompt, read))
    return found


def _compared(
    known: ForecastState, moment: Moment, call: Call, usage: Usage, blind: tuple[int, int]
) -> Compared:
    """Compare one call as pages show it (`follow`) with its forecast."""
    expected, lost = forecast(known, moment), broke(known, usage)
    use = follow(known, moment, call, price)
    broken = use.broken if use is not None else None
    return Compared(
        step=moment.step,
        prompt=usage.prompt,
        read=usage.cache_read,
        informed=min(expected.read, usage.prompt),
        blind=blind[0],
        blind_prompt=blind[1],
        broke=lost,
        foreseen=expected.broken,
        paid=broken is not None,
        cost=broken.cost if broken is not None else None,
        cause=expected.named if lost or expected.broken else None,
    )


def _like(known: ForecastState, prompt: int, read: int) -> Usage:
    """Build the usage of an expected prompt, with the TTL that the first call wrote."""
    new = prompt - read
    if not known.writes:
        return Usage(uncached=new, cache_read=read)
    five = known.ttl < 600_000
    return Usage(0, read, new if five else 0, 0 if five else new)


@dataclass(slots=True)
class ForecastSums:
    """Totals over compared calls. `causes` has those of breaks and of false alarms: of the calls
    that `paid` again, those `priced` have a cost."""

    sessions: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    causes: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, compared: Sequence[Compared]) -> None:
        """Add the calls of one session."""
        self.sessions += 1
        sums = self.calls
        for one in compared:
            sums["calls"] += 1
            sums["prompt"] += one.prompt
            sums["read"] += one.read
            sums["informed"] += one.informed
            sums["blind"] += one.blind
            sums["blind_prompt"] += one.blind_prompt
            sums["error"] += abs(one.informed - one.read)
            sums["within"] += abs(one.informed - one.read) <= one.prompt * WITHIN
            sums["breaks"] += one.broke
            sums["foreseen"] += one.foreseen
            sums["found"] += one.broke and one.foreseen
            sums["unpaid"] += one.broke and not one.paid
            if one.cause is not None:
                _add(self.causes.setdefault(one.cause, Counter()), one)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures by name; shares of zero are None."""
        sums = self.calls
        return {
            "sessions": self.sessions,
            "calls": sums["calls"],
            "cache_read_reported": sums["read"],
            "cache_read_informed": sums["informed"],
            "cache_read_blind": sums["blind"],
            "prompt_reported": sums["prompt"],
            "prompt_blind": sums["blind_prompt"],
            "error_sum_informed": sums["error"],
            "error_share_informed": _share(sums["error"], sums["prompt"]),
            "within_2_percent_informed": _share(sums["within"], sums["calls"]),
            "breaks": sums["breaks"],
            "breaks_predicted": sums["foreseen"],
            "breaks_found": sums["found"],
            "break_precision": _share(sums["found"], sums["foreseen"]),
            "break_recall": _share(sums["found"], sums["breaks"]),
            "breaks_that_paid_nothing": sums["unpaid"],
            "causes": {
                cause: _cause_dict(of) for cause, of in sorted(self.causes.items(), key=_order)
            },
        }


def _order(one: tuple[str, Counter[str]]) -> tuple[int, int]:
    return -one[1]["cost"], -one[1]["paid"]


def _add(sums: Counter[str], one: Compared) -> None:
    """Add a call that broke, or was expected to, to the figures of its cause."""
    sums["found"] += one.broke and one.foreseen
    sums["missed"] += one.broke and not one.foreseen
    sums["false_alarms"] += one.foreseen and not one.broke
    sums["paid"] += one.paid
    sums["priced"] += one.cost is not None
    sums["cost"] += one.cost or 0


def _cause_dict(sums: Counter[str]) -> dict[str, int | None]:
    counts = {name: sums[name] for name in ("found", "missed", "false_alarms", "paid", "priced")}
    known = sums["priced"] or not sums["paid"]
    return {**counts, "cost_microusd": sums["cost"] if known else None}


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
