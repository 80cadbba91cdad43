"""Figures of a simulation: sums per version, comparison of versions, and regressions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from sessions.figures import money, percent
from sessions.models.lab.charged_sums import Figures, added, charged_cost, weighted

ADDED = (
    *("steps", "tokens_sent", "tokens_sent_recorded", "compactions", "revisions"),
    *("read_back_tokens", "needs", "edits", "said"),
)
SHARES_OF_NEEDS = ("in_context", "named", "retrievable", "lost")
MONEY = (
    *("cost_recorded_microusd", "cost_recorded_ttl_microusd"),
    *("read_backs_microusd", "oracle_microusd"),
)
DEFINED = (
    *("hidden_microusd", "definitions_microusd", "unused_definitions_microusd"),
    *("definition_tokens_sent", "unused_definition_tokens_sent"),
)
"""Added up where the figures have them."""

WORSE_FIRST = {"lost": "lost", "retrievable": "only retrievable", "named": "only named"}
"""Recall states other than "in context", worst first, in words."""

FEW_NEEDS = 10
"""With fewer needs in a session, shares of needs are not meaningful for it."""

SMALLEST_HARM = 0.01
MOST_REGRESSIONS = 20

ASSUMPTIONS = (
    "The agent is assumed to behave as recorded; with another context it might have acted "
    "differently, and more so the longer the session.",
    "Summaries are written by the extractive summarizer, without a model. The cost of a "
    "summarizing model is not included.",
    "Each call produces the output that was recorded.",
    "Prompt tokens that logs do not show (system prompt, tool schemas) are inferred from the "
    "first reported usage and assumed constant.",
    "A window of 200,000 tokens is assumed if a model's window is unknown.",
    "Prices are the list prices on the day a session began; the cache follows its provider's "
    "published rules from a cold start. Sessions without a price count only for tokens and "
    "needs.",
    "Cache TTL: for Anthropic models as set in the policy, because it places the breakpoints. "
    "For the recorded baseline, and for policies with TTL “recorded”, as most of the session's "
    "reported writes. Other providers: their default.",
    "The recorded baseline is each session as logged, including its own compactions and "
    "clearings: the reported usage of its calls at list prices, or an estimate by these rules if "
    "none reported usage. Simulated costs count the same calls, and are scaled by what these "
    "rules give for the recorded contexts against what was reported.",
    "Read back: each text that was only retrievable when needed is read again once and then "
    "kept for five steps. These tokens are not included in any other figure.",
    "Regressions are ordered by harm: the relative cost increase over the active version plus "
    "the larger of two shares: needs no longer in context, and needs newly lost. Sessions with "
    f"fewer than {FEW_NEEDS} needs count by cost only; harm below "
    f"{SMALLEST_HARM * 100:g} % is ignored.",
)
"""Shown next to every simulation."""


def quantile(values: Sequence[float], share: float) -> float:
    """Interpolate the quantile of some values, linearly between neighbors."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def spread(values: Sequence[float]) -> dict[str, Any] | None:
    """Median, 10th and 90th percentile, and number of values; None without values."""
    if not values:
        return None
    return {
        "median": quantile(values, 0.5),
        "p10": quantile(values, 0.1),
        "p90": quantile(values, 0.9),
        "n": len(values),
    }


def ratios(pairs: Iterable[tuple[float | None, float | None]]) -> dict[str, Any] | None:
    """Spread of the ratios of pairs; those with an unknown value or a zero denominator are
    skipped."""
    return spread([mine / theirs for mine, theirs in pairs if mine is not None and theirs])


def sums(figures: Sequence[Figures]) -> dict[str, Any]:
    """Add up the figures of sessions under one version, or as recorded.

    Tokens and counts are summed; money over the `priced` sessions only, null if there are none.
    `charged_microusd` is the cost including reading back (`charged_cost`).
    `cache_read_share` is weighted by tokens sent, recall shares by needs, `ms_per_step` by steps.
    `peak_tokens` is the maximum, `peak_share` the spread of peak ÷ window.
    """
    answer: dict[str, Any] = {
        key: sum(one[key] for one in figures)
        for key in ADDED
        if figures and all(key in one for one in figures)
    }
    priced = [one for one in figures if one.get("cost_microusd") is not None]
    answer["priced"] = len(priced)
    answer["cost_microusd"] = added(priced, "cost_microusd")
    charges = [charge for charge in map(charged_cost, priced) if charge is not None]
    answer["charged_microusd"] = sum(charges) if charges and len(charges) == len(priced) else None
    for key in MONEY:
        if figures and key in figures[0]:
            answer[key] = added([one for one in priced if one.get(key) is not None], key)
    for key in DEFINED:
        if figures and key in figures[0]:
            answer[key] = added([one for one in figures if one.get(key) is not None], key)
    answer["peak_tokens"] = max((one["peak_tokens"] for one in figures), default=0)
    answer["peak_share"] = spread(
        [one["peak_tokens"] / one["window"] for one in figures if one["window"]]
    )
    answer["cache_read_share"] = weighted(figures, "cache_read_share", "tokens_sent")
    for key in SHARES_OF_NEEDS:
        answer[key] = weighted(figures, key, "needs")
    answer["edits_feasible"] = weighted(figures, "edits_feasible", "edits")
    answer["said_in_context"] = weighted(figures, "said_in_context", "said")
    answer["ms_per_step"] = weighted(figures, "ms_per_step", "steps")
    return answer


def against_recorded(figures: Sequence[Figures]) -> dict[str, Any]:
    """Spreads over sessions of the ratio to the recorded baseline; cost includes reading back."""
    return {
        "tokens": ratios(
            (one.get("tokens_sent"), one.get("tokens_sent_recorded")) for one in figures
        ),
        "cost": ratios((charged_cost(one), one.get("cost_recorded_microusd")) for one in figures),
    }


def against_active(pairs: Sequence[tuple[Figures, Figures]]) -> dict[str, Any]:
    """Compare a version with the active one, session by session; `pairs` are (its figures, theirs).

    Cost includes reading back. `cheaper` and `costlier` count sessions whose cost changes by at
    least 0.5 %, out of those `priced`; `hides_more` counts sessions with fewer needs in context,
    out of those `with_needs`.
    """
    changes = [change for change in map(cost_change, pairs) if change is not None]
    places = [(one["in_context"], other["in_context"]) for one, other in pairs if one["needs"]]
    return {
        "tokens": ratios((one["tokens_sent"], other["tokens_sent"]) for one, other in pairs),
        "cost": ratios((charged_cost(one), charged_cost(other)) for one, other in pairs),
        "peak": ratios((one["peak_tokens"], other["peak_tokens"]) for one, other in pairs),
        "priced": len(changes),
        "cheaper": sum(change <= -0.005 for change in changes),
        "costlier": sum(change >= 0.005 for change in changes),
        "with_needs": len(places),
        "hides_more": sum(mine < theirs for mine, theirs in places),
    }


def cost_change(pair: tuple[Figures, Figures]) -> float | None:
    """Relative change in cost, including reading back, from the second to the first; None without
    a price."""
    mine, theirs = map(charged_cost, pair)
    return mine / theirs - 1 if mine is not None and theirs else None


@dataclass(frozen=True, slots=True)
class Regression:
    """A session that does worse: by how much, at which step, and why in words.

    `fact` is the missing fact if that is the reason; it is content of the session.
    """

    key: Any
    harm: float
    cost_change: float | None
    in_context_change: float
    step: int | None
    entry: str | None
    fact: str | None
    why: str


def regressions(
    found: Iterable[tuple[Any, Figures, Sequence[Mapping[str, Any]], Figures]], active: str
) -> list[Regression]:
    """The sessions a version harms most, worst first, at most `MOST_REGRESSIONS`.

    `found` holds (key, figures, worst needs, figures under the active version) per session. Harm is
    the relative cost increase plus the larger of: share of needs no longer in context, share newly
    lost. Improvements do not offset harm, and sessions with fewer than `FEW_NEEDS` needs count by
    cost only.
    """
    made = (_regression(*one, active) for one in found)
    harmed = [one for one in made if one.harm >= SMALLEST_HARM]
    harmed.sort(key=lambda one: (-one.harm, str(one.key)))
    return harmed[:MOST_REGRESSIONS]


def _regression(
    key: Any, mine: Figures, worst: Sequence[Mapping[str, Any]], theirs: Figures, active: str
) -> Regression:
    change = cost_change((mine, theirs))
    place = mine["in_context"] - theirs["in_context"]
    costlier = max(change or 0.0, 0.0)
    loses = max((mine["lost"] or 0.0) - (theirs["lost"] or 0.0), 0.0) if mine["needs"] else 0.0
    hidden = max(-place, 0.0) if mine["needs"] >= FEW_NEEDS else 0.0
    first = _first(worst)
    why = []
    if loses > 0:
        why.append(_lost_words(mine, theirs, active))
    if hidden > 0:
        why.append(_hidden_words(mine, theirs, first))
    elif loses > 0 and first is not None:
        why.append(f"First {WORSE_FIRST[first['state']]} at step {first['step']}.")
    if costlier > 0:
        why.append(_costlier_words(mine, theirs, costlier, active))
    step = _step(mine, first, costlier, hidden, loses)
    at_need = first is not None and step == first["step"] and (hidden > 0 or loses > 0)
    return Regression(
        key=key,
        harm=costlier + (max(hidden, loses) if mine["needs"] >= FEW_NEEDS else 0.0),
        cost_change=change,
        in_context_change=place,
        step=step,
        entry=first["entry"] if first is not None and at_need else None,
        fact=first["fact"] if first is not None and at_need else None,
        why=" ".join(why),
    )


def _step(
    mine: Figures, first: Mapping[str, Any] | None, costlier: float, hidden: float, loses: float
) -> int | None:
    """The step to show: the first lost need, else the worse of a hidden need and the most expensive
    edit, else the last step."""
    costliest = mine.get("costliest")
    if first is not None and (loses > 0 or (hidden > 0 and hidden >= costlier)):
        return int(first["step"])
    if costliest and costlier > 0:
        return int(costliest["step"])
    return int(first["step"]) if first is not None and hidden > 0 else mine.get("steps")


def _first(worst: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The earliest need in the worst state found."""
    for state in WORSE_FIRST:
        of_state = [one for one in worst if one["state"] == state]
        if of_state:
            return min(of_state, key=itemgetter("step"))
    return None


def _hidden_words(mine: Figures, theirs: Figures, first: Mapping[str, Any] | None) -> str:
    more = round(theirs["in_context"] * theirs["needs"]) - round(mine["in_context"] * mine["needs"])
    answer = f"{more} more of {mine['needs']} needs not in context"
    if first is None:
        return f"{answer}."
    how = WORSE_FIRST[first["state"]]
    return f"{answer}; first {how} at step {first['step']}."


def _lost_words(mine: Figures, theirs: Figures, active: str) -> str:
    answer = f"Loses {percent(mine['lost'], 1)} of needed facts"
    before = f" ({active}: {percent(theirs['lost'], 1)})" if theirs["lost"] else ""
    return f"{answer}{before}."


def _costlier_words(mine: Figures, theirs: Figures, costlier: float, active: str) -> str:
    answer = f"+{percent(costlier)} cost including reading back against {active}"
    again = (mine.get("read_backs_microusd") or 0) - (theirs.get("read_backs_microusd") or 0)
    if again > ((charged_cost(mine) or 0) - (charged_cost(theirs) or 0)) / 2:
        return f"{answer}; {money(again)} more for reading back."
    if costliest := mine.get("costliest"):
        tokens = f"{costliest['rewritten']:,} cached tokens"
        where = f"at step {costliest['step']}"
        return f"{answer}; the most expensive edit, {where}, writes {tokens} again."
    more = mine["tokens_sent"] / theirs["tokens_sent"] - 1 if theirs["tokens_sent"] else 0.0
    return f"{answer}; tokens sent: +{percent(more)}." if more >= 0.005 else f"{answer}."
