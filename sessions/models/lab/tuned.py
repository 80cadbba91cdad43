"""Results of a tuning: its trials as values, and the Pareto frontier of cost and recall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compaction.advice.tuner import MOST_LOST, Outcome, Tried, frontier
from compaction.cache.economy import Objective
from compaction.policies.origin import SettingChange, changes
from compaction.policies.policy import from_dict
from sessions.figures import percent
from sessions.models.lab.charged_sums import charged_cost
from sessions.models.lab.tunings import Tuning, TuningTrial


def outcome_of(figures: Mapping[str, Any]) -> Outcome:
    """Sums over sessions as shares of the recorded baseline; cost includes reading back. Without
    needs, recall is 1."""
    sent, whole = figures["tokens_sent"], figures["tokens_sent_recorded"]
    cost, recorded = charged_cost(figures), figures.get("cost_recorded_microusd")
    in_context, lost = figures.get("in_context"), figures.get("lost")
    return Outcome(
        cost=cost / recorded if cost is not None and recorded else None,
        tokens=sent / whole if whole else 1.0,
        in_context=1.0 if in_context is None else in_context,
        lost=lost or 0.0,
    )


def tried_of(tuning: Tuning) -> list[tuple[TuningTrial, Tried]]:
    """The trials in order, each with its policy and outcome."""
    return [
        (trial, Tried(from_dict(trial.document), outcome_of(trial.figures)))
        for trial in tuning.trials.order_by("number")
    ]


@dataclass(frozen=True, slots=True)
class Found:
    """A trial with its outcome, and whether no other trial beats it.

    `like` names the starting policy it differs least from, by `changes`. `held` is its outcome on
    held-out sessions, None without any; `bad_held` says in words what was worse there, which `best`
    ignores.
    """

    trial: TuningTrial
    like: str
    changes: tuple[SettingChange, ...]
    outcome: Outcome
    held: Outcome | None
    best: bool
    bad_held: tuple[str, ...] = ()

    @property
    def offered(self) -> bool:
        """Whether to recommend it: not beaten by another trial, and not worse on held-out
        sessions."""
        return self.best and not self.bad_held


def found_by(tuning: Tuning) -> list[Found]:
    """All trials of a search, in order."""
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
    """Reasons against a policy on held-out sessions: it costs more than the recorded baseline, or
    loses more than the frontier allows."""
    said = []
    if held.spent(objective) > 1:
        by_tokens = objective == "lean" or held.cost is None
        said.append("more tokens than recorded" if by_tokens else "more expensive than recorded")
    if held.lost > MOST_LOST:
        said.append(f"{percent(held.lost, 1)} of needed facts lost")
    return tuple(said)


def _like(
    trial: TuningTrial, begun: Sequence[TuningTrial]
) -> tuple[str, tuple[SettingChange, ...]]:
    """The starting policy that a trial differs least from, and the differences."""
    differ = [(one.name, changes(one.document, trial.document)) for one in begun]
    return min(differ, key=lambda found: len(found[1]), default=("", ()))


def objective_of(tuning: Tuning) -> Objective:
    """The quantity to minimize."""
    return "lean" if tuning.objective == "lean" else "cheap"
