"""What comes next in live sessions: the next offload, when the context reaches its limit, and
spending per minute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from statistics import median_low
from typing import Literal
from uuid import UUID

from django.utils import timezone

from compaction.budget.growth import (
    FARTHEST,
    LEAST,
    SHRUNK,
    LimitForecast,
    UseRate,
    rate_of,
    steps_until,
)
from compaction.budget.offloads import NextOffload, next_offload
from compaction.simulation.at_risk import Leaving, leaving
from sessions.actions.live.answer import budget_for, policy_of
from sessions.actions.web.apart import call_apart
from sessions.figures import money, tokens
from sessions.models import Session
from sessions.models.live.recent import RecentCalls, recent_calls, recent_offloads
from sessions.models.record.values import recorded_session

MOST_STEPS, SECONDS = 3_000, 10.0

IDLE = timedelta(minutes=2)
"""Without a sign for longer, a session has no rate: it waits or has ended (our choice)."""


@dataclass(frozen=True, slots=True)
class LiveForecast:
    """The next steps of a session: `at` says what happens at the limit; None where nothing can be
    said. `offload` is what the policy does before, and `level` the tokens of the context at which
    it mostly did so lately."""

    at: Literal["policy", "window"]
    next: LimitForecast | None
    rate: UseRate | None
    unknown: str = ""
    """Why nothing can be said of the next steps."""
    offload: NextOffload | None = None
    level: int | None = None

    @property
    def sentence(self) -> str:
        """What comes next: the next offload, then the limit; empty if nothing can be said."""
        offload = self.offload.sentence if self.offload else ""
        return " ".join(filter(None, (offload, self._limit)))

    @property
    def until(self) -> tuple[str, int] | None:
        """How far facts at risk are looked for: what happens then, and in how many steps. The limit
        if it is within reach, else the next offload; None if neither is known."""
        if self.at == "policy" and self.next is not None and not self.next.far:
            return "compaction", max(self.next.steps, self.offload.steps if self.offload else 0)
        return ("next offload", self.offload.steps) if self.offload else None

    @property
    def _limit(self) -> str:
        if self.next is None:
            return ""
        what = "Compaction" if self.at == "policy" else "The context is full"
        if not self.next.steps:
            return f"{what} at the next call."
        if self.next.far:
            first = "Compaction" if self.at == "policy" else "A full context"
            return f"{first} is more than {FARTHEST} steps away at this growth."
        steps = f"{self.next.steps} step{'' if self.next.steps == 1 else 's'}"
        return f"{what} in about {steps}."

    @property
    def basis(self) -> str:
        """What the sentence is based on."""
        if self.next is None or not self.next.steps:
            return ""
        return (
            f"≈ from the growth of the last {self.next.observed} steps, "
            f"{tokens(self.next.growth)} tokens a step"
        )

    @property
    def per_minute(self) -> str:
        """Tokens and dollars per minute, and of what time they are the average; empty if unknown.
        Each call sends its whole context again, so that the tokens are mostly cache reads."""
        if self.rate is None:
            return ""
        used = f"{tokens(round(self.rate.tokens))} tokens/min"
        minutes = self.rate.ms // 60_000
        over = f"over the last {f'{minutes} minutes' if minutes > 1 else 'minute'}"
        if self.rate.microusd is None:
            return f"{used} {over}"
        return f"{money(round(self.rate.microusd))}/min, {used} {over}"


def forecasts(sessions: Sequence[Session]) -> dict[UUID, LiveForecast]:
    """Forecasts of sessions, from their newest calls and revisions; four queries for all."""
    now = int(timezone.now().timestamp() * 1000)
    recent, offloads = recent_calls(sessions, now), recent_offloads(sessions)
    return {
        session.pk: _with_offload(_forecast(session, recent[session.pk], now), session, past)
        for session in sessions
        for past in (offloads[session.pk],)
    }


def forecast(session: Session) -> LiveForecast:
    """The forecast of one session."""
    return forecasts([session])[session.pk]


class NothingToForecast(ValueError):
    """No policy edits its context, it does not grow, or it has too many steps."""


def facts_at_risk(session: Session, found: LiveForecast) -> Leaving | None:
    """What the policy takes out of the context until then (`LiveForecast.until`): simulated in a
    process apart. Raises NothingToForecast, NotInTime, FailedApart, MissingBlob, DamagedBlob.
    """
    policy = policy_of(session)
    if policy is None or (found.at != "policy" and found.offload is None):
        raise NothingToForecast("No policy edits this session's context at a limit.")
    if found.until is None:
        raise NothingToForecast("The context does not grow, or its limit is far away.")
    if session.step_count > MOST_STEPS:
        raise NothingToForecast(f"More than {MOST_STEPS:,} steps are too many to simulate here.")
    value = recorded_session(session, window=session.window_taken)
    steps, growth = found.until[1] + 1, found.next.growth if found.next else 0
    return call_apart(
        "forecast", SECONDS, leaving, value, policy, steps, growth, session.token_ratio
    )


def _with_offload(
    found: LiveForecast, session: Session, past: Sequence[tuple[int, int | None]]
) -> LiveForecast:
    policy = policy_of(session)
    if policy is None or not session.live:
        return found
    following = next_offload(policy, [step for step, _ in past], session.step_count + 1)
    sizes = [size for _, size in past if size is not None]
    return replace(found, offload=following, level=median_low(sizes) if sizes else None)


def _forecast(session: Session, recent: RecentCalls, now: int) -> LiveForecast:
    limits = budget_for(session)
    if not session.live:
        at: Literal["policy", "window"] = "window" if limits.trigger is None else "policy"
        return LiveForecast(at, None, None, "its agent does not run")
    sizes = _sizes(session, recent)
    limit = limits.trigger if limits.trigger is not None else limits.room
    began = int(session.created.timestamp() * 1000)
    found = steps_until(sizes, limit) if session.window else None
    unknown = ""
    if not session.window or limit is None:
        unknown = "the limit of its context is not known"
    elif found is None and len(sizes) < LEAST:
        unknown = f"sizes of fewer than {LEAST} prompts are known"
    elif found is None:
        unknown = "its context did not grow in the last steps"
    return LiveForecast(
        "window" if limits.trigger is None else "policy",
        found,
        rate_of(recent.calls, began, now) if timezone.now() - session.changed <= IDLE else None,
        unknown,
    )


def _sizes(session: Session, recent: RecentCalls) -> list[int]:
    """Tokens of the last prompts, the next one last, all as providers count.

    The next one is known by our count only. Where the last was reported larger than we counted it,
    the next will be too; without our count of it, a next one that seems smaller is left out.
    """
    sizes = [recent.prompts[step] for step in sorted(recent.prompts)]
    upcoming = session.used_tokens
    if not upcoming or recent.prompts.get(session.step_count + 1) is not None:
        return sizes
    last = max(recent.prompts, default=0)
    if sizes and upcoming < sizes[-1]:
        if last in recent.sent:
            upcoming += max(sizes[-1] - recent.sent[last], 0)
        elif upcoming >= SHRUNK * sizes[-1]:
            return sizes
    return [*sizes, upcoming]
