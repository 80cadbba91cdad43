"""How often a policy offloads, and when it does so next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from compaction.policies.policy import Policy
from compaction.strategies.offload import Offload

OFFLOADS = ("batch", "pays", "cold")
"""Triggers of revisions that offload before the context is full."""

LEAST_PAST = 3
"""Least revisions that show how often a policy offloads whose settings do not say it."""

BATCHES = 2
"""Batches after which a policy that has offloaded nothing has nothing worth it (our choice)."""


@dataclass(frozen=True, slots=True)
class NextOffload:
    """A policy offloads in about `steps` model calls (0: at the next one), and about every `every`
    steps: None before the first one."""

    steps: int
    every: int | None

    @property
    def sentence(self) -> str:
        """How often, and when next."""
        soon = f"in about {_steps(self.steps)}" if self.steps else "at the next call"
        if self.every is None:
            return f"First offload {soon}."
        if self.every == 1:
            return "Offloads at about every step."
        if not self.steps:
            return f"Offloads about every {self.every} steps, and at the next call."
        return f"Offloads about every {self.every} steps; next {soon}."


def next_offload(policy: Policy, past: Sequence[int], upcoming: int) -> NextOffload | None:
    """Forecast the next offload before step `upcoming` is sent.

    `past`: the steps of the newest revisions that offloaded, in order. The first one is known from
    the settings of `offload`, if it counts steps; how often it offloads is the median of the past.
    None if nothing was offloaded long after the first batch was due, or too little is known.
    """
    by_step = [
        one.parameters
        for one in policy.steps
        if isinstance(one.parameters, Offload) and one.parameters.unit == "steps"
    ]
    gaps = [after - before for before, after in pairwise(past)]
    if not by_step:
        if len(past) < LEAST_PAST:
            return None
        every = max(round(median(gaps)), 1)
        return NextOffload(max(past[-1] + every - upcoming, 0), every)
    soonest = min(by_step, key=lambda one: one.batch)
    if not past:
        first = 1 + soonest.age + soonest.batch
        late = first + BATCHES * soonest.batch
        return NextOffload(max(first - upcoming, 0), None) if upcoming <= late else None
    every = max(round(median(gaps)), 1) if gaps else soonest.batch
    due = past[-1] + every
    while due < upcoming:
        due += soonest.batch
    return NextOffload(due - upcoming, every)


def _steps(many: int) -> str:
    return f"{many} step{'' if many == 1 else 's'}"
