"""The newest calls and offloads of live sessions: sizes, times, tokens and costs, for forecasts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import F

from compaction.budget.growth import RATE_MS, STEPS
from compaction.budget.offloads import OFFLOADS
from sessions.models.live.managed import ManagedContext
from sessions.models.record.messages import ModelCall
from sessions.models.record.model_calls import cost_of_call
from sessions.models.record.revisions import Revision, Run
from sessions.models.record.sessions import Session


@dataclass(slots=True)
class RecentCalls:
    """The newest calls by step: tokens of the prompt (reported, else as we sent it), those that we
    sent, and of each late call its time (ms), billed tokens and micro-dollars, None if unknown.

    Contexts sent before the first report are left out: we did not know yet what else was in the
    prompt, so the next one would seem to have grown by that.
    """

    prompts: dict[int, int] = field(default_factory=dict)
    sent: dict[int, int] = field(default_factory=dict)
    calls: list[tuple[int, int, int | None]] = field(default_factory=list)


MOST_CALLS = 600
"""Newest calls of a session that a rate is of, at most."""


def recent_calls(sessions: Iterable[Session], now: int) -> dict[UUID, RecentCalls]:
    """The prompts of the last `STEPS` + 1 calls of each session, and the calls that a rate at `now`
    (ms) is of; in three queries for all, and one more where usage has no cost yet: measuring writes
    it, after the agent was answered."""
    ids = [session.pk for session in sessions]
    found = {pk: RecentCalls() for pk in ids}
    reported: dict[UUID, int] = {}
    contexts = ManagedContext.objects.filter(
        run__session__in=ids, step__gte=F("run__session__step_count") - STEPS, retry_of=None
    )
    for pk, step, tokens in contexts.values_list("run__session", "step", "tokens"):
        found[pk].prompts[step] = found[pk].sent[step] = tokens
    calls = ModelCall.objects.filter(
        session__in=ids, step__gte=F("session__step_count") - STEPS
    ).order_by("step")
    for pk, step, uncached, *cached in calls.values_list("session", "step", *_PROMPT):
        if uncached is not None:
            found[pk].prompts[step] = uncached + sum(filter(None, cached))
            reported.setdefault(pk, step)
    for pk, call in _late_calls(ids, now):
        found[pk].calls.append(call)
    for pk, first in reported.items():
        recent = found[pk]
        recent.prompts = {step: one for step, one in recent.prompts.items() if step >= first}
    return found


_PROMPT = ("uncached", "cache_read", "cache_write_5m", "cache_write_1h")


def _late_calls(
    ids: Sequence[UUID], now: int
) -> Iterator[tuple[UUID, tuple[int, int, int | None]]]:
    """The calls with usage of the time that a rate is of."""
    late = ModelCall.objects.filter(
        session__in=ids,
        step__gte=F("session__step_count") - MOST_CALLS,
        at__gt=now - RATE_MS,
        uncached__isnull=False,
    )
    rows = list(late.values_list("session", "pk", "at", "cost_microusd", "output", *_PROMPT))
    bare = any(cost is None for _, _, _, cost, *_ in rows)
    costs = {one.pk: cost_of_call(one) for one in late.filter(cost_microusd=None)} if bare else {}
    for session, pk, at, cost, *used in rows:
        yield session, (at, sum(filter(None, used)), costs.get(pk) if cost is None else cost)


REVISIONS = 12
"""Newest revisions that are looked at for how often a policy offloads (our choice)."""


def recent_offloads(sessions: Iterable[Session]) -> dict[UUID, list[tuple[int, int | None]]]:
    """Those of the newest revisions of managed sessions that offloaded: the step, and the tokens of
    the context before it; oldest first. One query for all."""
    found: dict[UUID, list[tuple[int, int | None]]] = {one.pk: [] for one in sessions}
    revisions = Revision.objects.filter(
        run__session__in=list(found),
        run__origin=Run.Origin.MANAGED,
        number__gt=F("run__head") - REVISIONS,
        trigger__in=OFFLOADS,
    ).order_by("number")
    for pk, step, tokens in revisions.values_list("run__session", "step", "tokens_before"):
        found[pk].append((step, tokens))
    return found
