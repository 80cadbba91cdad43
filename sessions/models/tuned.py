"""What a tuning found: its trials as values, and the frontier of cost and recall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compaction.cache.economy import Objective
from compaction.policies.origin import Change, changes
from compaction.policies.policy import from_dict
from compaction.policies.tuner import MOST_LOST, Outcome, Tried, frontier
from sessions.models.tunings import Tuning, TuningTrial
from sessions.templatetags.figures import percent


def outcome_of(figures: Mapping[str, Any]) -> Outcome:
    """Sums over sessions as shares of what was recorded. Without needs all are in place."""
    sent, whole = figures["tokens_sent"], figures["tokens_sent_unmanaged"]
    cost, unmanaged = figures.get("cost_microusd"), figures.get("cost_unmanaged_microusd")
    in_place, lost = figures.get("in_place"), figures.get("lost")
    return Outcome(
        cost=cost / unmanaged if cost is not None and unmanaged else None,
        tokens=sent / whole if whole else 1.0,
        in_place=1.0 if in_place is None else in_place,
        lost=lost or 0.0,
    )


def tried_of(tuning: Tuning) -> list[tuple[TuningTrial, Tried]]:
    """The trials in their order, each with its policy and outcome."""
    return [
        (trial, Tried(from_dict(trial.document), outcome_of(trial.figures)))
        for trial in tuning.trials.order_by("number")
    ]


@dataclass(frozen=True, slots=True)
class Found:
    """A trial: what it came to, and whether none beats it.

    `like` names the policy that the search began with from which it differs least, by `changes`.
    `held` is its outcome over the sessions that the search never saw, None where it has none;
    `bad_held` says in words what was bad there, of which `best` knows nothing.
    """

    trial: TuningTrial
    like: str
    changes: tuple[Change, ...]
    outcome: Outcome
    held: Outcome | None
    best: bool
    bad_held: tuple[str, ...] = ()

    @property
    def offered(self) -> bool:
        """Whether it is put forward: none beats it, and on held sessions it was not bad either."""
        return self.best and not self.bad_held


def found_by(tuning: Tuning) -> list[Found]:
    """All trials of a search in their order."""
    tried = tried_of(tuning)
    best = {id(one) for one in frontier([one for _, one in tried], objective_of(tuning))}
    begun = [trial for trial, _ in tried if trial.name]
    made = []
    for trial, one in tried:
        held = outcome_of(trial.held) if trial.held else None
        bad = _bad(held, objective_of(tuning)) if held else ()
        made.append(Found(trial, *_like(trial, begun), one.outcome, held, id(one) in best, bad))
    return made


def _bad(held: Outcome, objective: Objective) -> tuple[str, ...]:
    """What speaks against a policy by sessions that its search never saw: it spends more than no
    policy would, or loses more than a frontier may."""
    said = []
    if held.spent(objective) > 1:
        by_tokens = objective == "lean" or held.cost is None
        said.append("more tokens than recorded" if by_tokens else "dearer than recorded")
    if held.lost > MOST_LOST:
        said.append(f"{percent(held.lost, 1)} of what was needed is lost")
    return tuple(said)


def _like(trial: TuningTrial, begun: Sequence[TuningTrial]) -> tuple[str, tuple[Change, ...]]:
    """The policy among those begun with from which a trial differs least, and how."""
    differ = [(one.name, changes(one.document, trial.document)) for one in begun]
    return min(differ, key=lambda found: len(found[1]), default=("", ()))


def objective_of(tuning: Tuning) -> Objective:
    """What the search is to make little."""
    return "lean" if tuning.objective == "lean" else "cheap"
