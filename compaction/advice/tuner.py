"""The auto-tuner: which policies to try next, to improve the frontier of cost and recall."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, get_args

from compaction.cache.economy import Objective
from compaction.policies.policy import STEPS, Policy, Step, to_dict
from compaction.strategies import STRATEGIES

Ladder = tuple[float, ...]
"""Values to try for a setting, ascending (our choice). Settings without a ladder stay unchanged."""

MOST_LOST = 0.005
"""Maximum share of needs that a policy of the frontier loses."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a policy on the sessions of its search.

    `cost` and `tokens` are shares of the recorded baseline, `cost` None if no session has a price;
    `in_context` and `lost` are shares of needs.
    """

    cost: float | None
    tokens: float
    in_context: float
    lost: float

    def spent(self, objective: Objective) -> float:
        """Return the figure to minimize; tokens without a price."""
        return self.tokens if objective == "lean" or self.cost is None else self.cost


@dataclass(frozen=True, slots=True)
class Tried:
    """A policy and its outcome."""

    policy: Policy
    outcome: Outcome


def identity(policy: Policy) -> str:
    """Return a key that is equal for policies that do the same: everything but name and version."""
    said = {k: v for k, v in to_dict(policy).items() if k not in ("name", "version")}
    return json.dumps(said, sort_keys=True)


def frontier(tried: Sequence[Tried], objective: Objective) -> list[Tried]:
    """Return the policies that no other beats, lowest first: none spends no more and keeps no less.

    Policies that lose over `MOST_LOST` of the needs are left out, unless all of them do.
    """
    sound = [one for one in tried if one.outcome.lost <= MOST_LOST] or list(tried)
    ordered = sorted(sound, key=lambda one: (one.outcome.spent(objective), -one.outcome.in_context))
    found: list[Tried] = []
    for one in ordered:
        if not found or one.outcome.in_context > found[-1].outcome.in_context:
            found.append(one)
    return found


def next_policies(tried: Sequence[Tried], objective: Objective, most: int) -> list[Policy]:
    """Return the next generation: at most `most` untried neighbors of the frontier.

    Points in the thinnest part of the frontier come first, with one neighbor each per round.
    Deterministic, so a search can be resumed. Empty once every neighbor was tried.
    """
    seen = {identity(one.policy) for one in tried}
    parents = [neighbours(one.policy) for one in _thinnest(frontier(tried, objective), objective)]
    made: list[Policy] = []
    while parents and len(made) < most:
        for parent in list(parents):
            found = next((one for one in parent if identity(one) not in seen), None)
            if found is None:
                parents.remove(parent)
                continue
            seen.add(identity(found))
            made.append(found)
            if len(made) == most:
                break
    return made


def _thinnest(points: Sequence[Tried], objective: Objective) -> list[Tried]:
    """Sort the points of a frontier by the gap to their neighbors, widest first.

    The ends come before all others (the crowding distance of NSGA-II).
    """

    def gap(place: int) -> float:
        if place in (0, len(points) - 1):
            return float("inf")
        return sum(
            abs(_scaled(points[place + 1], axis) - _scaled(points[place - 1], axis))
            for axis in axes
        )

    spent = [one.outcome.spent(objective) for one in points]
    kept = [one.outcome.in_context for one in points]
    axes = [values for values in (spent, kept) if values and max(values) > min(values)]
    where = {id(one): place for place, one in enumerate(points)}

    def _scaled(one: Tried, axis: Sequence[float]) -> float:
        return (axis[where[id(one)]] - min(axis)) / (max(axis) - min(axis))

    order = sorted(range(len(points)), key=lambda place: (-gap(place), place))
    return [points[place] for place in order]


def neighbours(policy: Policy) -> Iterator[Policy]:
    """Yield policies that differ by one move: the objective, one value, or one step."""
    there = {step.strategy for step in policy.steps}
    if policy.heeds_objective:
        other = next(one for one in get_args(Objective) if one != policy.objective)
        yield replace(policy, objective=other)
    for index, step in enumerate(policy.steps):
        for name, ladder in ladders(step.strategy, policy.objective).items():
            for value in _rungs(getattr(step.parameters, name), ladder):
                moved = Step(step.strategy, replace(step.parameters, **{name: value}))
                yield _with(policy, [*policy.steps[:index], moved, *policy.steps[index + 1 :]])
    for index in range(len(policy.steps) if len(policy.steps) > 1 else 0):
        yield _with(policy, [*policy.steps[:index], *policy.steps[index + 1 :]])
    aims = {STRATEGIES[name].aim for name in there} - {""}
    for name, strategy in STRATEGIES.items():
        enough = name in there or strategy.aim in aims
        if strategy.joins and not enough and len(policy.steps) < STEPS:
            yield _with(policy, _joined(policy.steps, Step(name, strategy.parameters())))


def ladders(strategy: str, objective: Objective) -> dict[str, Ladder]:
    """Return the values to try, by settings with an effect under this objective."""
    return {
        one.name: one.metadata["tries"]
        for one in fields(STRATEGIES[strategy].parameters)
        if "tries" in one.metadata and one.metadata.get("objective", objective) == objective
    }


def _rungs(value: Any, ladder: Ladder) -> list[Any]:
    """Return the next values above and below, of the value's own type."""
    above = [rung for rung in ladder if rung > value][:1]
    below = [rung for rung in ladder if rung < value][-1:]
    return [type(value)(rung) for rung in (*above, *below)]


def _joined(steps: Iterable[Step], new: Step) -> list[Step]:
    """Insert a step before the first one that comes later in the general order."""
    order = {name: place for place, name in enumerate(STRATEGIES)}
    found = list(steps)
    later = (
        place for place, step in enumerate(found) if order[step.strategy] > order[new.strategy]
    )
    found.insert(next(later, len(found)), new)
    return found


def _with(policy: Policy, steps: Sequence[Step]) -> Policy:
    return replace(policy, steps=tuple(steps))
