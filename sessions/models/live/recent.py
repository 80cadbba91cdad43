"""What the newest calls of live sessions were: sizes, times, tokens and costs, for forecasts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import F

from compaction.budget.growth import STEPS
from sessions.models.live.managed import ManagedContext
from sessions.models.record.messages import ModelCall
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
    """The last `STEPS` + 1 calls of each session, in two queries for all."""
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
    for pk, first in reported.items():
        recent = found[pk]
        recent.prompts = {step: one for step, one in recent.prompts.items() if step >= first}
    return found
