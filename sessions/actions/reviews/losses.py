"""What losses cost in stored sessions: repairs of a revision, of a text, and of a whole session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from compaction.losses.repairs import LossCost, loss_cost
from sessions.models import ManagedContext, Run, Session
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


def paid_at(session: Session, steps: Iterable[int]) -> tuple[dict[int, int | None], Counter[int]]:
    """What the model calls of these steps cost by reported usage, and the cache breaks of all
    steps, in micro-dollars by step."""
    wanted = set(steps)
    if not wanted:
        return {}, Counter()
    calls = session.calls.filter(step__in=wanted).values_list("step", "cost_microusd")
    breaks = Counter[int]()
    for card in cards_of(session):
        breaks[card["step"]] += card["cost_microusd"] or 0
    return dict(calls), breaks


def cost_of(session: Session, steps: Collection[int]) -> LossCost:
    """What the repairs at these steps cost."""
    return loss_cost(steps, *paid_at(session, steps))


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
