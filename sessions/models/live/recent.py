"""The newest calls and offloads of live sessions: sizes, times, tokens and costs, for forecasts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import F

from compaction.budget.growth import STEPS
from compaction.budget.offloads import OFFLOADS
from sessions.models.live.managed import ManagedContext
from sessions.models.record.messages import ModelCall
from sessions.models.record.model_calls import cost_of_call
from sessions.models.record.revisions import Revision, Run
from sessions.models.record.sessions import Session


@dataclass(slots=True)
class RecentCalls:
    """The newest calls by step: tokens of the prompt (reported, else as we sent it), those that we
    sent, and for each call its time (ms), billed tokens and micro-dollars, None if not reported.

    Contexts sent before the first report are left out: we did not know yet what else was in the
    prompt, so the next one would seem to have grown by that.
    """

    prompts: dict[int, int] = field(default_factory=dict)
    sent: dict[int, int] = field(default_factory=dict)
    calls: dict[int, tuple[int | None, int | None, int | None]] = field(default_factory=dict)


def recent_calls(sessions: Iterable[Session]) -> dict[UUID, RecentCalls]:
    """The last `STEPS` + 1 calls of each session, in two queries for all, and one more where
    usage has no cost yet: measuring writes it, after the agent was answered."""
    ids = [session.pk for session in sessions]
    found = {pk: RecentCalls() for pk in ids}
    reported: dict[UUID, int] = {}
    bare = False
    contexts = ManagedContext.objects.filter(
        run__session__in=ids, step__gte=F("run__session__step_count") - STEPS, retry_of=None
    )
    for pk, step, tokens in contexts.values_list("run__session", "step", "tokens"):
        found[pk].prompts[step] = found[pk].sent[step] = tokens
    calls = ModelCall.objects.filter(
        session__in=ids, step__gte=F("session__step_count") - STEPS
    ).order_by("step")
    names = ("uncached", "cache_read", "cache_write_5m", "cache_write_1h")
    rows = calls.values_list("session", "step", "at", "output", "cost_microusd", *names)
    for pk, step, at, output, cost, uncached, *cached in rows:
        if uncached is None:
            found[pk].calls[step] = (at, None, None)
            continue
        prompt = uncached + sum(filter(None, cached))
        found[pk].prompts[step] = prompt
        found[pk].calls[step] = (at, prompt + (output or 0), cost)
        reported.setdefault(pk, step)
        bare = bare or cost is None
    for call in calls.filter(cost_microusd=None).exclude(uncached=None) if bare else ():
        if known := found[call.session_id].calls.get(call.step):
            found[call.session_id].calls[call.step] = (*known[:2], cost_of_call(call))
    for pk, first in reported.items():
        recent = found[pk]
        recent.prompts = {step: one for step, one in recent.prompts.items() if step >= first}
    return found


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
