"""Tries without a lost text before it was shown again, and what their calls cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from compaction.context.blocks import Block
from compaction.losses.loss_cost import LossCost, loss_cost
from compaction.losses.tries import Tries, tries_of
from sessions.actions.reviews.losses import paid_from
from sessions.actions.web.verdicts import counted, listed
from sessions.figures import roughly
from sessions.models import Session
from sessions.models.record.values import blocks_at

TRIED = 10
"""Steps before a repair in which tries are looked for (our choice)."""


@dataclass(frozen=True, slots=True)
class CostedTries:
    """Tries before a repair and the cost of their calls, which is no part of that of the loss."""

    tries: Tries = Tries()
    cost: LossCost = LossCost((), None)

    @property
    def sentence(self) -> str:
        """What they were and cost, as every place words it; empty without any."""
        tries = self.tries
        if not tries.steps:
            return ""
        kinds = [
            counted(len(steps), one, many)
            for steps, one, many in (
                (tries.guesses, "failed with another value", "failed with other values"),
                (tries.searches, "search for it", "searches for it"),
                (tries.between, "step between", "steps between"),
            )
            if steps
        ]
        many = len(tries.steps)
        look = "looks like a try" if many == 1 else "look like tries"
        where = f"step{'' if many == 1 else 's'} {', '.join(map(str, tries.steps))}"
        least = "at least " if self.cost.at_least and self.cost.microusd is not None else ""
        return (
            f"{counted(many, 'call')} before, at {where}, {look} without it "
            f"({listed(kinds)}): {least}{roughly(self.cost.microusd)}, not included."
        )


def tried_before(
    session: Session, text: str, holders: Iterable[Block], since: int, repaired: Iterable[int]
) -> CostedTries:
    """Find the tries from step `since`, where the text was lost, to its first repair. Reads the
    blocks of at most TRIED steps. Raises MissingBlob, DamagedBlob."""
    repairs = set(repaired)
    if not repairs:
        return CostedTries()
    first = min(repairs)
    # What the model says at a step, and what answers it, is born at the next one.
    came = session.blocks.filter(born__gt=max(since, first - TRIED), born__lte=first)
    places = came.filter(type__in=("tool_use", "tool_result")).values_list("position", flat=True)
    tries = tries_of(text, holders, blocks_at(session, places))
    paid = paid_from(session, min(tries.steps, default=None))
    return CostedTries(tries, loss_cost(tries.steps, paid))
