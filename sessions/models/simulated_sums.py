"""What a simulation says: sums of each version, how versions compare, where one does worse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from sessions.templatetags.figures import percent

Figures = Mapping[str, Any]
"""Of one session under one version, as `SimulationResult.figures` holds them."""

ADDED = (
    *("steps", "tokens_sent", "tokens_sent_unmanaged", "compactions", "revisions"),
    *("read_back_tokens", "needs"),
)
SHARES_OF_NEEDS = ("in_place", "named", "retrievable", "lost")

WORSE_FIRST = {"lost": "lost", "retrievable": "only retrievable", "named": "only named"}
"""States of what is not in place, in words."""

FEW_NEEDS = 10
"""With fewer needs in a session, their shares say nothing of it alone."""

SMALLEST_HARM = 0.01
MOST_REGRESSIONS = 20

ASSUMPTIONS = (
    "The agent behaves as it was recorded: what it would have done with another context, nobody "
    "knows. The longer a session goes on, the less this holds.",
    "Summaries are written by the extractive summarizer, without a model; what a model would cost "
    "that writes them is in no figure.",
    "Each call writes the output that was recorded.",
    "Prompt tokens that logs do not show (system prompt, tool schemas) are inferred from the first "
    "reported usage, and the same at every step.",
    "Where a model's window is unknown, 200,000 tokens are assumed.",
    "Prices are those that were listed when a session began; the cache follows its provider's "
    "published rules from a cold start. Sessions without a price count for tokens and needs only.",
    "Cache entries of Anthropic's models live as long as a policy's “lifetime” asks: it places the "
    "breakpoints of its contexts. Unmanaged, and under a policy that says “recorded”, they live as "
    "most of the session's reported writes asked. Other providers are not asked.",
    "Unmanaged is each session as it was recorded, with the compactions and clearings of its log, "
    "priced by the same rules; it is no bill.",
    "Read back: each text that was only retrievable when it was needed is read again once, and "
    "then stands for five steps. These tokens are in no other figure.",
    "Regressions are ordered by harm: the share by which a session gets dearer than under the "
    "active version, plus the share of needs that are no longer in place, or that are lost "
    "and were not, whichever is more. Shares of fewer than "
    f"{FEW_NEEDS} needs do not count, nor does harm below {SMALLEST_HARM:.0%}.".replace("%", " %"),
)
"""Said beside every simulation."""


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which that share of them lies, between two neighbours in proportion."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def spread(values: Sequence[float]) -> dict[str, Any] | None:
    """Median, 10th and 90th percentile, and of how many; None of none."""
    if not values:
        return None
    return {
        "median": quantile(values, 0.5),
        "p10": quantile(values, 0.1),
        "p90": quantile(values, 0.9),
        "n": len(values),
    }


def ratios(
    of: Iterable[tuple[Figures, Figures]], key: str, other: str = ""
) -> dict[str, Any] | None:
    """The spread over sessions of one figure against another session's of the same name (or of
    `other`); sessions where either is unknown or the second is 0 are left out."""
    pairs = ((mine.get(key), theirs.get(other or key)) for mine, theirs in of)
    return spread([a / b for a, b in pairs if a is not None and b])


def sums(figures: Sequence[Figures]) -> dict[str, Any]:
    """Sums over sessions under one version, or as they were recorded.

    Tokens and counts are added. Money is added over the `priced` sessions, null where there is
    none. `cache_read_share` is weighted by tokens sent, the shares of needs by needs, `ms_per_step`
    by steps. `peak_tokens` is the highest, `peak_share` the spread of peaks by window.
    """
    told: dict[str, Any] = {
        key: sum(one[key] for one in figures)
        for key in ADDED
        if figures and all(key in one for one in figures)
    }
    priced = [one for one in figures if one.get("cost_microusd") is not None]
    told["priced"] = len(priced)
    told["cost_microusd"] = _added(priced, "cost_microusd")
    against = [one for one in priced if one.get("cost_unmanaged_microusd") is not None]
    if figures and "cost_unmanaged_microusd" in figures[0]:
        told["cost_unmanaged_microusd"] = _added(against, "cost_unmanaged_microusd")
    told["peak_tokens"] = max((one["peak_tokens"] for one in figures), default=0)
    told["peak_share"] = spread(
        [one["peak_tokens"] / one["window"] for one in figures if one["window"]]
    )
    told["cache_read_share"] = _weighted(figures, "cache_read_share", "tokens_sent")
    for key in SHARES_OF_NEEDS:
        told[key] = _weighted(figures, key, "needs")
    told["ms_per_step"] = _weighted(figures, "ms_per_step", "steps")
    return told


def _added(figures: Sequence[Figures], key: str) -> int | None:
    return sum(one[key] for one in figures) if figures else None


def _weighted(figures: Iterable[Figures], key: str, weight: str) -> float | None:
    known = [(one[key], one[weight]) for one in figures if one.get(key) is not None]
    whole = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / whole if whole else None


def against_unmanaged(figures: Sequence[Figures]) -> dict[str, Any]:
    """Spreads over sessions of figures against the same session as it was recorded."""
    pairs = [(one, one) for one in figures]
    return {
        "tokens": ratios(pairs, "tokens_sent", "tokens_sent_unmanaged"),
        "cost": ratios(pairs, "cost_microusd", "cost_unmanaged_microusd"),
    }


def against_active(pairs: Sequence[tuple[Figures, Figures]]) -> dict[str, Any]:
    """How a version does against the active one, session by session: (its figures, those).

    `cheaper` and `dearer` count sessions whose cost changes by half a percent or more, of those
    that are `priced`; `hides_more` those of which fewer needs are in place, of those `with_needs`.
    """
    changes = [change for change in map(cost_change, pairs) if change is not None]
    places = [(one["in_place"], other["in_place"]) for one, other in pairs if one["needs"]]
    return {
        "tokens": ratios(pairs, "tokens_sent"),
        "cost": ratios(pairs, "cost_microusd"),
        "peak": ratios(pairs, "peak_tokens"),
        "priced": len(changes),
        "cheaper": sum(change <= -0.005 for change in changes),
        "dearer": sum(change >= 0.005 for change in changes),
        "with_needs": len(places),
        "hides_more": sum(mine < theirs for mine, theirs in places),
    }


def cost_change(pair: tuple[Figures, Figures]) -> float | None:
    """By which share the first is dearer (cheaper: below 0); None without a price."""
    mine, theirs = (one.get("cost_microusd") for one in pair)
    return mine / theirs - 1 if mine is not None and theirs else None


@dataclass(frozen=True, slots=True)
class Regression:
    """A session that does worse: by how much, at which step it shows, and why in words.

    `fact` is what was needed there, where that is the reason: content of the session.
    """

    key: Any
    harm: float
    cost_change: float | None
    in_place_change: float
    step: int | None
    entry: str | None
    fact: str | None
    why: str


def regressions(
    found: Iterable[tuple[Any, Figures, Sequence[Mapping[str, Any]], Figures]], active: str
) -> list[Regression]:
    """The sessions that a version harms most, worst first, `MOST_REGRESSIONS` at most.

    `found` holds for each session (key, figures, worst needs, figures under the active version).
    Harm is the share by which it gets dearer plus the share of needs that are no longer in place,
    or that are newly lost, whichever is more; what gets better makes up for nothing. Shares of
    fewer than `FEW_NEEDS` needs do not count.
    """
    made = (_regression(*one, active) for one in found)
    harmed = [one for one in made if one.harm >= SMALLEST_HARM]
    harmed.sort(key=lambda one: (-one.harm, str(one.key)))
    return harmed[:MOST_REGRESSIONS]


def _regression(
    key: Any, mine: Figures, worst: Sequence[Mapping[str, Any]], theirs: Figures, active: str
) -> Regression:
    change = cost_change((mine, theirs))
    place = mine["in_place"] - theirs["in_place"]
    dearer = max(change or 0.0, 0.0)
    loses = max((mine["lost"] or 0.0) - (theirs["lost"] or 0.0), 0.0) if mine["needs"] else 0.0
    hidden = max(-place, 0.0) if mine["needs"] >= FEW_NEEDS else 0.0
    first = _first(worst)
    why = []
    if loses > 0:
        why.append(_lost_words(mine, theirs, active))
    if hidden > 0:
        why.append(_hidden_words(mine, theirs, first))
    elif loses > 0 and first is not None:
        why.append(f"The first that is {WORSE_FIRST[first['state']]} comes at S{first['step']}.")
    if dearer > 0:
        why.append(_dearer_words(mine, theirs, dearer, active))
    step = _step(mine, first, dearer, hidden, loses)
    at_need = first is not None and step == first["step"] and (hidden > 0 or loses > 0)
    return Regression(
        key=key,
        harm=dearer + (max(hidden, loses) if mine["needs"] >= FEW_NEEDS else 0.0),
        cost_change=change,
        in_place_change=place,
        step=step,
        entry=first["entry"] if first is not None and at_need else None,
        fact=first["fact"] if first is not None and at_need else None,
        why=" ".join(why),
    )


def _step(
    mine: Figures, first: Mapping[str, Any] | None, dearer: float, hidden: float, loses: float
) -> int | None:
    """Where it shows: at the first lost need, else at the worse of a hidden need and an edit; where
    neither is there, at the last step, which has all that was added."""
    dearest = mine.get("dearest")
    if first is not None and (loses > 0 or (hidden > 0 and hidden >= dearer)):
        return int(first["step"])
    if dearest and dearer > 0:
        return int(dearest["step"])
    return int(first["step"]) if first is not None and hidden > 0 else mine.get("steps")


def _first(worst: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The earliest of those in the worst state that there is."""
    for state in WORSE_FIRST:
        of_state = [one for one in worst if one["state"] == state]
        if of_state:
            return min(of_state, key=itemgetter("step"))
    return None


def _hidden_words(mine: Figures, theirs: Figures, first: Mapping[str, Any] | None) -> str:
    more = round(theirs["in_place"] * theirs["needs"]) - round(mine["in_place"] * mine["needs"])
    told = f"{more} more of {mine['needs']} needs are not in place"
    if first is None:
        return f"{told}."
    how = WORSE_FIRST[first["state"]]
    return f"{told}; the first that is {how} comes at S{first['step']}."


def _lost_words(mine: Figures, theirs: Figures, active: str) -> str:
    told = f"Loses {percent(mine['lost'], 1)} of what was needed"
    return f"{told}, under {active} {percent(theirs['lost'], 1)}." if theirs["lost"] else f"{told}."


def _dearer_words(mine: Figures, theirs: Figures, dearer: float, active: str) -> str:
    told = f"{percent(dearer)} dearer than under {active}"
    if dearest := mine.get("dearest"):
        tokens = f"{dearest['rewritten']:,} cached tokens"
        return f"{told}; the dearest edit, at S{dearest['step']}, writes {tokens} again."
    more = mine["tokens_sent"] / theirs["tokens_sent"] - 1 if theirs["tokens_sent"] else 0.0
    return f"{told}; tokens sent: +{percent(more)}." if more >= 0.005 else f"{told}."
