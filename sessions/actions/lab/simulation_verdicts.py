"""The verdict on a simulated draft: against the active version, and against the recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sessions.actions.web.verdicts import EventVerdict, Tone, counted
from sessions.figures import change, finely, money, tokens
from sessions.models.dashboard.savings import FEWER, SMALLEST
from sessions.models.lab.charged_sums import charged_cost

Sums = Mapping[str, Any]
"""Figures of a version over the finished sessions (`sessions.models.lab.simulated_sums.sums`)."""

Side = Literal["better", "same", "worse", "unknown"]


@dataclass(frozen=True, slots=True)
class SimulationVerdict(EventVerdict):
    """A verdict; `dominated` if the draft is worse than the active version in cost or recall and
    better in neither, so that it should not be proposed."""

    dominated: bool = False


class Difference(NamedTuple):
    """A draft against another version: which figure `cost` is of, the relative change of it, recall
    in context as a difference of shares, and the relative change of the cost including reading
    back what was needed and missing; None if unknown."""

    of: Literal["cost", "tokens sent"]
    cost: float | None
    recall: float | None
    charged: float | None = None

    @property
    def text(self) -> str:
        """Both in words: "−27 % cost including reading back (−30 % without), −0.6 points recall";
        "+21 % cost, −8.5 points recall" if reading back is unknown."""
        more = "recall unknown" if self.recall is None else f"{_points(self.recall)} recall"
        return f"{self._cost}, {more}"

    @property
    def _cost(self) -> str:
        without = _change(self.cost)
        if self.charged is None:
            return f"{without} {self.of}"
        said = f"{_change(self.charged)} cost including reading back"
        return said if _change(self.charged) == without else f"{said} ({without} without)"

    @property
    def headline(self) -> float | None:
        """The change of the cost that counts: including reading back, where that is known."""
        return self.cost if self.charged is None else self.charged

    @property
    def sides(self) -> tuple[Side, Side]:
        """How cost and recall compare."""
        return _side(self.headline, -1), _side(self.recall, 1)

    @property
    def dominated(self) -> bool:
        """Whether it is worse in one and better in neither; never if one is unknown."""
        return "worse" in self.sides and not {"better", "unknown"} & set(self.sides)


def difference(draft: Sums, other: Sums) -> Difference:
    """Compare sums over the same sessions; by tokens if they were not priced alike."""
    recall = _minus(draft.get("in_context"), other.get("in_context"))
    if draft["priced"] and draft["priced"] == other["priced"]:
        cost, its = draft["cost_microusd"], other["cost_microusd"]
        charged = _ratio(charged_cost(draft), charged_cost(other))
        return Difference("cost", _ratio(cost, its), recall, charged)
    sent = _ratio(draft.get("tokens_sent"), other.get("tokens_sent"))
    return Difference("tokens sent", sent, recall)


def simulation_verdict(
    draft: Sums, active: Sums | None, recorded: Sums, through: int, total: int, *, over: bool
) -> SimulationVerdict:
    """Judge a draft by its sums over the `through` finished of `total` sessions.

    `active` is None if the draft is the active version; it is then compared with the recording
    alone. `over`: no more results come.
    """
    if not through:
        said = "No session could be simulated." if over else "No session is done yet."
        return SimulationVerdict("neutral", said)
    against = difference(draft, recorded if active is None else active)
    tone, sentence = _judged(against)
    dominated = over and active is not None and against.dominated
    if dominated:
        sentence += " Don't propose."
    if active is None:
        sentence = f"Against the recording: {sentence[0].lower()}{sentence[1:]}"
    if not over:
        tone, sentence = "neutral", f"So far, {through} of {total} sessions. {sentence}"
    details = [_amounts(against, draft, active or recorded, through)]
    if active is not None:
        lived = difference(draft, recorded)
        worse = ": worse on both" if lived.sides == ("worse", "worse") else ""
        details.append(f"Against the recording {lived.text}{worse}.")
    details.append(_edits(draft, active or recorded))
    return SimulationVerdict(tone, sentence, " ".join(filter(None, details)), dominated)


def _judged(found: Difference) -> tuple[Tone, str]:
    cost, recall = found.sides
    if cost == recall == "same":
        return "neutral", "No difference: same cost, same recall."
    if "unknown" in (cost, recall):
        return "neutral", f"{found.text}."[0].upper() + f"{found.text}."[1:]
    if cost == recall:
        return ("bad" if cost == "worse" else "good"), f"{cost.capitalize()} on both: {found.text}."
    if "same" in (cost, recall):
        worse = "worse" in (cost, recall)
        return ("bad" if worse else "good"), f"{'Worse' if worse else 'Better'}: {found.text}."
    if found.charged is None:
        return "neutral", f"Undecided: {found.text}."
    if abs(found.recall or 0) > FEWER:
        said = "Cheaper, but keeps less" if cost == "better" else "Keeps more, but costs more"
        return "neutral", f"{said}: {found.text}."
    return ("good" if cost == "better" else "bad"), f"{cost.capitalize()}: {found.text}."


def _amounts(found: Difference, draft: Sums, other: Sums, through: int) -> str:
    known = found.charged is not None
    amounts = (
        (
            money(charged_cost(draft) if known else draft["cost_microusd"]),
            money(charged_cost(other) if known else other["cost_microusd"]),
        )
        if found.of == "cost"
        else (tokens(draft.get("tokens_sent")), tokens(other.get("tokens_sent")))
    )
    unit = "" if found.of == "cost" else " tokens"
    said = f"{amounts[0]}{unit} instead of {amounts[1]} over "
    said += sessions_of(through, draft["priced"] if found.of == "cost" else through)
    if found.recall is None:
        return f"{said}."
    recall = f"{finely(draft['in_context'])} instead of {finely(other['in_context'])}"
    return f"{said}; recall {recall}."


def sessions_of(through: int, priced: int) -> str:
    """How many sessions are compared, and how many of them in cost: "12 sessions (10 with a
    price)"."""
    said = counted(through, "session")
    return said if priced == through else f"{said} ({priced} with a price)"


def _edits(draft: Sums, other: Sums) -> str:
    change = _minus(draft.get("edits_feasible"), other.get("edits_feasible"))
    if change is None or abs(change) < SMALLEST:
        return ""
    return f"Edits whose old text is in context: {_points(change)}."


def _side(change: float | None, better: Literal[1, -1]) -> Side:
    if change is None:
        return "unknown"
    if abs(change) < SMALLEST:
        return "same"
    return "better" if change * better > 0 else "worse"


def _ratio(mine: int | None, theirs: int | None) -> float | None:
    return mine / theirs - 1 if mine is not None and theirs else None


def _minus(mine: float | None, theirs: float | None) -> float | None:
    return mine - theirs if mine is not None and theirs is not None else None


def _change(share: float | None) -> str:
    if share is None:
        return "unknown"
    if abs(share) < SMALLEST:
        return "same"
    return change(share)


def _points(change: float) -> str:
    if abs(change) < SMALLEST:
        return "same"
    return f"{'+' if change > 0 else '−'}{abs(change) * 100:.1f} points"
