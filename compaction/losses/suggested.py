"""What measures suggest for each rating of a reviewer; a person decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.losses.quality import Fit, Measure

BEST = 5
"""The highest rating of a scale that begins at 1."""


@dataclass(frozen=True, slots=True)
class RatingSuggestion:
    """A rating and what was measured; `value` is None where the measures do not rate."""

    value: int | bool | str | None
    because: str


_SHARES = {
    "constraints": ("messages", "replaced user messages covered"),
    "changed": ("changed", "changed files named"),
    "open_errors": ("open_errors", "open errors covered"),
    "next": ("todos", "open todos named"),
    "goal": ("sections", "sections present"),
}

_FITS: dict[Fit, tuple[str, str]] = {
    "over": ("fix", "too much was removed"),
    "under": ("fix", "too little was removed"),
    "right": ("pass", "neither too much nor too little was removed"),
}


def suggested(found: Sequence[Measure], fits: Fit) -> dict[str, RatingSuggestion]:
    """Return suggestions by rating: `constraints`, `state` and `next` by the share of what the
    summary must name, `goal` without a value, `invention` and `verdict`.

    State is the worse of changed files and open errors. A rating whose measure had nothing to count
    is left out. A verdict is never `fail`: whether the agent would go wrong is not measured. (Our
    choice.)
    """
    by = {one.name: one for one in found}
    shares = {
        rating: share
        for rating, (name, what) in _SHARES.items()
        if name in by and (share := _rated(by[name], what)) is not None
    }
    known: dict[str, RatingSuggestion] = {
        rating: shares[rating] for rating in ("constraints", "next") if rating in shares
    }
    if "goal" in shares:
        known["goal"] = RatingSuggestion(None, shares["goal"].because)
    states = [shares[one] for one in ("changed", "open_errors") if one in shares]
    if states:
        worst = min(int(one.value or 0) for one in states)
        known["state"] = RatingSuggestion(worst, ", ".join(one.because for one in states))
    invented = by.get("unsupported")
    if invented is not None and invented.value is not None:
        known["invention"] = RatingSuggestion(
            not invented.value, f"{invented.value:,} unsupported fact{'s'[: invented.value != 1]}"
        )
    if found:
        known["verdict"] = RatingSuggestion(*_FITS[fits])
    return known


def _rated(one: Measure, what: str) -> RatingSuggestion | None:
    if one.value is None or not one.of:
        return None
    value = 1 + (BEST - 1) * one.value // one.of
    return RatingSuggestion(value, f"{one.value:,} of {one.of:,} {what}")
