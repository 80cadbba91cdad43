"""The auto-tuner: which policies to try next, so that a frontier of cost and recall moves."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from compaction.cache.economy import Objective
from compaction.policies.policy import STEPS, Policy, Step, to_dict
from compaction.strategies import STRATEGIES

Ladder = tuple[float, ...]

LADDERS: Mapping[str, Mapping[str, Ladder]] = {
    "dedupe": {"within": (0, 2, 4, 8, 16)},
    "externalise": {"over": (500, 1_000, 2_000, 5_000, 10_000, 20_000)},
    "offload": {
        "age": (2, 3, 5, 8, 12, 20, 30),
        "batch": (1, 2, 5, 10, 20, 40),
        "minimum": (50, 150, 400, 1_000),
    },
    "payback": {
        "patience": (0.5, 1, 2, 3, 5, 8),
        "haste": (0.25, 0.5, 1, 2, 3),
        "readings": (3, 5, 8, 12, 20, 40, 80),
        "results": (1, 2, 3, 5, 8, 12),
        "inputs": (3, 5, 10, 20, 30, 60),
        "done": (0, 1, 3, 8),
        "said": (0, 4, 8, 15, 40),
        "full": (0.5, 0.6, 0.7, 0.8, 0.9),
    },
    "replace": {"batch": (1, 2, 5, 10, 20)},
    "shard": {"over": (5_000, 10_000, 18_000)},
    "compact": {
        "trigger": (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
        "summary_tokens": (1_000, 2_000, 3_000, 5_000),
        "on_new_topic": (0, 1),
    },
    "window": {
        "recents": (10, 20, 40, 80),
        "budget": (16_000, 32_000, 64_000, 128_000),
        "target": (0.25, 0.375, 0.5, 0.7),
    },
}
"""Values that are tried, by strategy and parameter (ours). What is not here stays as it is."""

JOINING = ("dedupe", "externalise", "replace", "payback", "offload", "compact")
"""Steps that a policy may gain, in the general order: tidy, then compress."""

EITHER = frozenset({"payback", "offload"})
"""Steps of which one is enough: what the one takes out leaves the other nothing to weigh."""

IDLE: Mapping[Objective, str] = {"cheap": "haste", "lean": "patience"}
"""Which parameter of payback does nothing under an objective."""

MOST_LOST = 0.005
"""Share of needs that a policy of the frontier may lose (docs/sources.md, Points to reach)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a policy came to over the same sessions as all others of its search.

    `cost` and `tokens` are shares of the sessions as recorded, `cost` None where no session has a
    price; `in_place` and `lost` are shares of needs.
    """

    cost: float | None
    tokens: float
    in_place: float
    lost: float

    def spent(self, objective: Objective) -> float:
        """What is to be little; tokens where there is no price."""
        return self.tokens if objective == "lean" or self.cost is None else self.cost


@dataclass(frozen=True, slots=True)
class Tried:
    """A policy and its outcome."""

    policy: Policy
    outcome: Outcome


def identity(policy: Policy) -> str:
    """The same for policies that do the same: all but name and version."""
    said = {k: v for k, v in to_dict(policy).items() if k not in ("name", "version")}
    return json.dumps(said, sort_keys=True)


def frontier(tried: Sequence[Tried], objective: Objective) -> list[Tried]:
    """Those that no other beats, least spent first: none spends no more and keeps no less.

    Policies that lose over `MOST_LOST` of the needs are left out, as long as others do not.
    """
    sound = [one for one in tried if one.outcome.lost <= MOST_LOST] or list(tried)
    ordered = sorted(sound, key=lambda one: (one.outcome.spent(objective), -one.outcome.in_place))
    found: list[Tried] = []
    for one in ordered:
        if not found or one.outcome.in_place > found[-1].outcome.in_place:
            found.append(one)
    return found


def next_policies(tried: Sequence[Tried], objective: Objective, most: int) -> list[Policy]:
    """The next generation: neighbours of the frontier that were not tried, `most` at most.

    Where the frontier is thinnest its points have their say first, each with one neighbour a
    round. The same tries give the same generation, so a search goes on where it was broken off.
    Empty once every neighbour of the frontier was tried.
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
    """Points of a frontier, those with the widest gap to their neighbours first, its ends before
    all (the crowding distance of NSGA-II)."""

    def gap(place: int) -> float:
        if place in (0, len(points) - 1):
            return float("inf")
        return sum(
            abs(_scaled(points[place + 1], axis) - _scaled(points[place - 1], axis))
            for axis in axes
        )

    spent = [one.outcome.spent(objective) for one in points]
    kept = [one.outcome.in_place for one in points]
    axes = [values for values in (spent, kept) if values and max(values) > min(values)]
    where = {id(one): place for place, one in enumerate(points)}

    def _scaled(one: Tried, axis: Sequence[float]) -> float:
        return (axis[where[id(one)]] - min(axis)) / (max(axis) - min(axis))

    order = sorted(range(len(points)), key=lambda place: (-gap(place), place))
    return [points[place] for place in order]


def neighbours(policy: Policy) -> Iterator[Policy]:
    """Policies one move away: the other objective, a value one rung up or down, a step less, a
    step more."""
    there = {step.strategy for step in policy.steps}
    if policy.heeds_objective:
        other = next(one for one in get_args(Objective) if one != policy.objective)
        yield replace(policy, objective=other)
    for index, step in enumerate(policy.steps):
        for name, ladder in LADDERS.get(step.strategy, {}).items():
            if step.strategy == "payback" and name == IDLE[policy.objective]:
                continue
            for value in _rungs(getattr(step.parameters, name), ladder):
                moved = Step(step.strategy, replace(step.parameters, **{name: value}))
                yield _with(policy, [*policy.steps[:index], moved, *policy.steps[index + 1 :]])
    for index in range(len(policy.steps) if len(policy.steps) > 1 else 0):
        yield _with(policy, [*policy.steps[:index], *policy.steps[index + 1 :]])
    for name in JOINING:
        enough = name in there or (name in EITHER and there & EITHER)
        if not enough and len(policy.steps) < STEPS:
            yield _with(policy, _joined(policy.steps, Step(name, STRATEGIES[name].parameters())))


def _rungs(value: Any, ladder: Ladder) -> list[Any]:
    """The next values above and below; of a value's own type."""
    above = [rung for rung in ladder if rung > value][:1]
    below = [rung for rung in ladder if rung < value][-1:]
    return [type(value)(rung) for rung in (*above, *below)]


def _joined(steps: Iterable[Step], new: Step) -> list[Step]:
    """The steps with a new one before the first that comes later in the general order."""
    order = {name: place for place, name in enumerate(JOINING)}
    found = list(steps)
    later = (
        place
        for place, step in enumerate(found)
        if order.get(step.strategy, len(order)) > order[new.strategy]
    )
    found.insert(next(later, len(found)), new)
    return found


def _with(policy: Policy, steps: Sequence[Step]) -> Policy:
    return replace(policy, steps=tuple(steps))
