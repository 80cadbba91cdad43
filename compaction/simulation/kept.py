"""What policies would have done to one text of a session, and to the session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from compaction.facts.recall import recall
from compaction.losses.life import Shown, Stay, life_of, shows
from compaction.policies.policy import Policy
from compaction.simulation.recording import Recording
from compaction.simulation.run import simulate_cache
from compaction.simulation.simulate import Run


@dataclass(frozen=True, slots=True)
class KeptText:
    """A text under one policy: its stays, how it stands at the steps that needed it, and the
    session's cost in micro-dollars (None without a price) and needs in context."""

    policy: str
    stays: tuple[Stay, ...]
    at: tuple[Shown, ...]
    cost: int | None
    in_context: float


def kept_under(
    recording: Recording, policies: Mapping[str, Policy], text: str, steps: Sequence[int]
) -> Iterator[KeptText]:
    """Follow one text under the recorded contexts, named "recorded", and under each policy.

    `steps` are those that needed it. Summaries are made by code. Costs are those of `Recording`.
    """
    session = recording.value
    holders = [block for block in session.blocks if shows(block, text)]

    def kept(name: str, run: Run, cost: int | None) -> KeptText:
        life = life_of(text, holders, run.entries, len(session.calls))
        at = tuple(life.at(step) for step in steps)
        found = recall(session, run, recording.index)
        return KeptText(name, life.stays, at, cost, found.in_context)

    yield kept("recorded", recording.lived, recording.lived_cost)
    for name, policy in policies.items():
        run = recording.run_under(policy)
        yield kept(
            name, run, recording.cost_of(simulate_cache(run, session.calls, recording.terms).uses)
        )
