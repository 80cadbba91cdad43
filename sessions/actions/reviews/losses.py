"""What losses cost in stored sessions: repairs of a revision, of a text, and of a whole session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from compaction.losses.loss_cost import LossCost, PaidStep, came_again, loss_cost, paid_step
from compaction.losses.repairs import Repair
from compaction.prices.prices import price
from sessions.actions.web.verdicts import counted
from sessions.figures import at_least, roughly, tokens
from sessions.models import ManagedContext, Run, Session
from sessions.models.record.model_calls import call_of
from sessions.models.record.tail import cards_of


def seen_run(session: Session) -> Run | None:
    """The run whose contexts the model saw; None before anything was recorded."""
    runs = {run.origin: run for run in Run.objects.filter(session=session)}
    managed = runs.get(Run.Origin.MANAGED)
    if managed is not None and ManagedContext.objects.filter(run=managed).exists():
        return managed
    return runs.get(Run.Origin.RECORDED)


def removals(run: Run) -> dict[int, int]:
    """The steps of a run's revisions by number; going back to an earlier step loses nothing."""
    return dict(run.revisions.exclude(trigger="rewind").values_list("number", "step"))


def paid_from(session: Session, first: int | None) -> dict[int, PaidStep]:
    """What the model calls from a step on cost by reported usage, by step; none without a step."""
    if first is None:
        return {}
    breaks = Counter[int]()
    for card in cards_of(session):
        breaks[card["step"]] += card["cost_microusd"] or 0
    rows = session.calls.filter(step__gte=first).order_by("step")
    return {
        row.step: paid_step(
            call_of(row), price(row.model, row.at), row.cost_microusd, breaks[row.step]
        )
        for row in rows
    }


def cost_of(session: Session, found: Collection[Repair]) -> LossCost:
    """What repairs cost."""
    steps = {one.step for one in found}
    return loss_cost(steps, paid_from(session, min(steps, default=None)), came_again(found))


def loss_sentence(cost: LossCost) -> str:
    """What a loss cost and what that is made of, as every place words it; empty if unknown."""
    if cost.microusd is None:
        return ""
    least = "at least " if cost.at_least else ""
    made = f"{counted(len(cost.steps), 'call')} made because of it"
    if cost.carriers:
        made += (
            f" ({roughly(cost.calls)}), and {tokens(cost.tokens)} tokens that came again, in the "
            f"prompts of {counted(cost.carriers, 'other call')} ({roughly(cost.carried)})"
        )
    made += ", cache breaks not included"
    return f"The loss cost {least}{roughly(cost.microusd)}: {made}."


def stored_cost(after: Mapping[str, Any]) -> str:
    """What a loss cost by the after-effects stored with its ledger; empty if unknown or nothing."""
    cost = after.get("microusd")
    if not cost:
        return ""
    return at_least(cost, bound=True) if after["at_least"] else roughly(cost)


def written_at(session: Session, steps: Collection[int]) -> dict[int, int]:
    """Tokens that the model calls of these steps wrote to the cache or sent uncached: what had
    arrived since the call before, which is a part of their cost."""
    calls = session.calls.filter(step__in=steps).exclude(uncached=None)
    return {
        call.step: (call.uncached or 0) + (call.cache_write_5m or 0) + (call.cache_write_1h or 0)
        for call in calls
    }


def is_seen(session: Session, run: Run) -> bool:
    """Whether the model saw the contexts of a run: only then its edits lost anything."""
    seen = seen_run(session)
    return seen is not None and seen.pk == run.pk
