"""Running sessions, nearest to their limit first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET

from compaction.budget.budget import LADDER, ContextFill
from compaction.policies.trigger_words import words
from sessions.access import allowed, team_of
from sessions.actions.live.answer import budget_for, standing_of
from sessions.actions.live.forecasts import IDLE, LiveForecast, forecasts
from sessions.actions.operations.quotas import short_of
from sessions.models import Revision, Run, Session
from sessions.models.record.demo_data import listed
from sessions.views.budgets import budgets
from sessions.views.live.low_recall import LowRecall, low_recall
from sessions.views.web.demo_notice import SWITCH, asks_demo, demo_notice
from sessions.views.web.filters import list_version
from sessions.views.web.pages import Link, Page

ROWS = 100
"""Most sessions shown; the session list has the rest."""

GAUGE = 1000
"""Width of a gauge, in units."""


def limits(session: Session) -> dict[str, Any]:
    """The limits of a session for the replay page, which tracks usage itself."""
    its = budget_for(session)
    return {
        "window": its.window,
        "room": its.room,
        "warn": round(its.warn * its.room),
        "trigger": its.trigger,
        "target": its.target,
        "ladder": LADDER,
    }


@dataclass(frozen=True, slots=True)
class Gauge:
    """The fill of a context as a bar of `GAUGE` units, its window; marks beyond it are None.

    The part beyond `room` is reserved for output. Without `known`, the next prompt's size is
    unknown.
    """

    standing: ContextFill
    known: bool
    used: int
    room: int
    reserve: int
    warn: int | None
    trigger: int | None
    target: int | None
    offload: int | None


def gauge(session: Session, offload: int | None = None) -> Gauge:
    """The gauge of the next call's context against the model's window; `offload`: the tokens at
    which the policy mostly offloaded lately."""
    its, now = budget_for(session), standing_of(session)

    def at(tokens: int | None) -> int | None:
        place = None if tokens is None else round(GAUGE * tokens / its.window)
        return place if place is not None and 0 < place <= GAUGE else None

    return Gauge(
        standing=now,
        known=session.used_tokens is not None,
        used=min(GAUGE, round(GAUGE * now.used / its.window)),
        room=(room := round(GAUGE * its.room / its.window)),
        reserve=GAUGE - room,
        warn=at(round(its.warn * its.room)),
        trigger=at(its.trigger),
        target=at(its.target),
        offload=at(offload),
    )


SOON = 5
"""Steps to the limit of a context from which the advice speaks of it (our choice)."""


@dataclass(frozen=True, slots=True)
class LiveAdvice:
    """What an agent should do next, and why."""

    text: str
    why: str
    warns: bool = False


@dataclass(frozen=True, slots=True)
class LiveRow:
    """One running session as the page shows it."""

    session: Session
    gauge: Gauge
    revision: Revision | None
    forecast: LiveForecast

    @property
    def name(self) -> str:
        """The session's title."""
        return str(self.session)

    @property
    def quiet(self) -> bool:
        """Whether its agent waits or has stopped, as far as one can tell."""
        return timezone.now() - self.session.changed > IDLE

    @property
    def recall(self) -> LowRecall | None:
        """Its needed-later recall, if that is low."""
        return low_recall(self.session)

    @property
    def advice(self) -> LiveAdvice:
        """What its agent should do next: wait as the limits say, else what the forecast of its
        context calls for."""
        if delay := self.gauge.standing.delay_ms:
            return LiveAdvice(f"wait {delay} ms", "Advised between calls, by its fill", warns=True)
        its = self.forecast
        if its.next is None or its.next.steps > SOON:
            return LiveAdvice("go on", its.sentence)
        if its.at == "policy":
            return LiveAdvice("go on, then compacts", f"{its.sentence} Note what must not be lost.")
        return LiveAdvice("finish or compact", f"{its.sentence} No policy compacts it.", warns=True)

    @property
    def trigger(self) -> str:
        """Why the newest revision was made."""
        assert self.revision is not None
        return words(self.revision.trigger, self.session.agent).name

    @property
    def revision_url(self) -> str:
        """The URL of the newest revision."""
        assert self.revision is not None
        where = [self.session.pk, self.revision.run_id, self.revision.number]
        return reverse("revision", args=where)


@require_GET
def live(request: HttpRequest) -> HttpResponse:
    """List running sessions by fill, those without a sign last."""
    team = team_of(request)
    version = list_version(request)  # before the rows: a change in between is announced again
    its = listed(team.pk, demo=asks_demo(request))
    running = Session.objects.for_team(team).live().filter(its)
    found = list(
        running.select_related("policy_version__policy", "assessment").order_by("-changed")[:ROWS]
    )
    newest = _newest_revisions(found)
    next_steps = forecasts(found)
    rows = [
        LiveRow(session, gauge(session, its.level), newest.get(session.pk), its)
        for session in found
        for its in (next_steps[session.pk],)
    ]
    rows.sort(key=lambda row: (row.quiet, -row.gauge.standing.share, row.session.created))
    of_demo = Session.objects.for_team(team).live().filter(demo=True)
    context = {
        **demo_notice(request, team, switch=True, among=of_demo),
        "demo_running": running.filter(demo=True).count(),
        "legend": _legend(rows),
        "section": "live",
        "waiting": budgets.waiting_in(team),
        "quotas": short_of(team),
        "near": budgets.near_limit(team, found),
        "may": allowed(request, team, "accept"),
        "rows": rows,
        "total": len(rows) if len(rows) < ROWS else running.count(),
        "version": version,
        "gauge_width": GAUGE,
    }
    return render(request, "live/live.html", context)


MARKS = (
    ("offload", "offloaded lately"),
    ("target", "target of a compaction"),
    ("warn", "warning"),
    ("trigger", "compaction"),
)
"""Marks of a gauge and their names."""


def _legend(rows: list[LiveRow]) -> list[tuple[str, str]]:
    """The marks that a gauge shows and their names, in the order of the fullest gauge with all."""
    places = [{name: getattr(row.gauge, name) for name, _ in MARKS} for row in rows]
    found: dict[str, int] = {}
    for gauge in sorted(places, key=lambda one: -sum(at is not None for at in one.values())):
        for name, at in gauge.items():
            if at is not None:
                found.setdefault(name, at)
    return sorted(
        ((name, text) for name, text in MARKS if name in found), key=lambda m: found[m[0]]
    )


def _newest_revisions(sessions: list[Session]) -> dict[Any, Revision]:
    revisions = Revision.objects.filter(
        run__session__in=[session.pk for session in sessions],
        run__origin=Run.Origin.MANAGED,
        number=F("run__head"),
    )
    return {row.run.session_id: row for row in revisions.select_related("run")}


PAGES = (
    Page(
        route="live/",
        view=live,
        name="live",
        query=(SWITCH,),
        link=Link(30, "Live", "live", "g l", "live"),
        about="running agents, waiting for a person, paused",
    ),
)
