"""What policies would have done to one text of a session, and to the session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from compaction import tokens
from compaction.context.session import Session
from compaction.facts.facts import FactIndex
from compaction.facts.recall import recall
from compaction.losses.life import Shown, Stay, life_of, shows
from compaction.outlines.outline import outline_of
from compaction.policies.policy import Policy
from compaction.simulation.run import simulate_cache, terms_of
from compaction.simulation.simulate import Run, simulate
from compaction.summaries.extract import extractive


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
    session: Session,
    lived: Run,
    policies: Mapping[str, Policy],
    text: str,
    steps: Sequence[int],
    permille: int,
) -> list[KeptText]:
    """Follow one text under the recorded contexts, named "recorded", and under policies.

    `steps` are those that needed it. `permille` scales o200k counts to the session's counting.
    Summaries are made by code. The recorded contexts have the cost of their rules, not of a bill.
    """
    counted: dict[str, int] = {}

    def count(made: str) -> int:
        known = counted.get(made)
        if known is None:
            known = counted[made] = (tokens.count(made) * permille + 500) // 1000
        return known

    holders = [block for block in session.blocks if shows(block, text)]
    terms, index = terms_of(session), FactIndex(session.blocks)

    def kept(name: str, run: Run, cost: int | None) -> KeptText:
        life = life_of(text, holders, run.entries, len(session.calls))
        at = tuple(life.at(step) for step in steps)
        return KeptText(name, life.stays, at, cost, recall(session, run, index).in_context)

    priced = simulate_cache(lived, session.calls, replace(terms, frontier=False))
    found = [kept("recorded", lived, priced.cost)]
    for name, policy in policies.items():
        run = simulate(session, policy, count, extractive, outline_of)
        found.append(kept(name, run, simulate_cache(run, session.calls, terms).cost))
    return found
