"""Forecasts of the cache against what was reported: how far our rules hold for recorded calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from compaction.cache.forecast import Known, Moment, forecast, observe
from compaction.cache.measured import broke, follow
from compaction.session import Call, Usage

WITHIN = 0.02
"""A forecast within this share of the prompt counts as right."""

MOST_HIDDEN, USUAL_HIDDEN = 53_000, 39_000
"""Tokens that logs of Claude Code do not show of a prompt: the 90th percentile and the median
(docs/sources.md, Recorded sessions)."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One call: read as reported, expected with the usage of earlier calls (`informed`), and with
    that of the first call only (`blind`, with the prompt that was expected).

    `broke` and `foretold` say whether the call was a break and whether one was expected, `paid`
    whether it paid again for what it did not read, so that pages show it; `cause` is that of a
    break or of a false alarm.
    """

    step: int
    prompt: int
    read: int
    informed: int
    blind: int
    blind_prompt: int
    broke: bool
    foretold: bool
    paid: bool
    cause: str | None


def compare(calls: Iterable[tuple[Call, Moment]], visible: dict[int, int]) -> list[Compared]:
    """Every call with reported usage but the first, which has nothing to be told by.

    `visible` are the tokens of each context as counted without usage, by step.
    """
    informed, blind = Known(), Known()
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
            # The log began in the middle: what it lacked was summarized with the rest.
            hidden = USUAL_HIDDEN
        prompt = max(visible[moment.step] + hidden, 0)
        guess = forecast(blind, moment)
        read = min(guess.read, prompt)
        found.append(_compared(informed, moment, call, usage, (read, prompt)))
        observe(blind, moment, _like(blind, prompt, read))
    return found


def _compared(
    known: Known, moment: Moment, call: Call, usage: Usage, blind: tuple[int, int]
) -> Compared:
    """One call, as pages tell it (`follow`) and as it was foretold."""
    told, lost = forecast(known, moment), broke(known, usage)
    use = follow(known, moment, call)
    return Compared(
        step=moment.step,
        prompt=usage.prompt,
        read=usage.cache_read,
        informed=told.read,
        blind=blind[0],
        blind_prompt=blind[1],
        broke=lost,
        foretold=told.broken,
        paid=use is not None and use.broken is not None,
        cause=told.named if lost or told.broken else None,
    )


def _like(known: Known, prompt: int, read: int) -> Usage:
    """Usage as it would be reported of a prompt, with the lifetime that the first call wrote."""
    new = prompt - read
    if not known.writes:
        return Usage(fresh=new, cache_read=read)
    five = known.lifetime < 600_000
    return Usage(0, read, new if five else 0, 0 if five else new)


@dataclass(slots=True)
class Sums:
    """What compared calls add up to."""

    sessions: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    false_alarms: Counter[str] = field(default_factory=Counter)

    def add(self, compared: Sequence[Compared]) -> None:
        """Take in the calls of one session."""
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
            sums["foretold"] += one.foretold
            sums["found"] += one.broke and one.foretold
            if one.paid:
                self.causes[one.cause or "unexplained"] += 1
            sums["unpaid"] += one.broke and not one.paid
            if one.foretold and not one.broke:
                self.false_alarms[one.cause or "unexplained"] += 1

    def told(self) -> dict[str, Any]:
        """The figures by name; shares of nothing are None."""
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
            "within_2_percent_informed": _share(sums["within"], sums["calls"]),
            "breaks": sums["breaks"],
            "breaks_foretold": sums["foretold"],
            "breaks_found": sums["found"],
            "break_precision": _share(sums["found"], sums["foretold"]),
            "break_recall": _share(sums["found"], sums["breaks"]),
            "breaks_that_paid_nothing": sums["unpaid"],
            "causes": dict(self.causes.most_common()),
            "false_alarms": dict(self.false_alarms.most_common()),
        }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
