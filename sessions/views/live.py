"""The sessions whose agents run now, nearest their limit first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from compaction.budget import LADDER, Budget, Standing, budget_of, standing
from compaction.policy import InvalidPolicy, from_dict
from sessions.actions.simulate import UNKNOWN_WINDOW
from sessions.api.access import team_of
from sessions.models import Revision, Run, Session
from sessions.views.filters import list_version

ROWS = 100
"""Sessions that the page shows; whoever has more looks at the list."""

GAUGE = 1000
"""Units of a gauge's width."""


def budget(session: Session) -> Budget:
    """What the context of a session may take; without a policy only the window limits it."""
    window = session.window or UNKNOWN_WINDOW
    version = session.policy_version
    if version is None:
        return Budget(window)
    try:
        return budget_of(from_dict(version.document), window, session.hidden_tokens)
    except InvalidPolicy:  # of another release; a page of many sessions must not fall for one
        return Budget(window)


def limits(session: Session) -> dict[str, Any]:
    """The same for the replay, which knows by itself how much is used."""
    its = budget(session)
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
    """How full a context is, as a bar of `GAUGE` units; marks are None where they are beyond it.

    `share` is of the window; what lies beyond `room` is kept free for the output.
    """

    standing: Standing
    share: float
    used: int
    room: int
    reserve: int
    warn: int | None
    trigger: int | None
    target: int | None


def gauge(session: Session, served: Run | None = None) -> Gauge:
    """The gauge of the next call's context against the model's window."""
    its = budget(session)
    used = session.used_tokens or 0
    if served is not None and served.taken == session.block_count:
        used = int(served.fold.get("used", used))  # newer than what the last message was told
    now = standing(its, used)

    def at(tokens: int | None) -> int | None:
        place = None if tokens is None else round(GAUGE * tokens / its.window)
        return place if place is not None and 0 < place <= GAUGE else None

    return Gauge(
        standing=now,
        share=now.used / its.window,
        used=min(GAUGE, round(GAUGE * now.used / its.window)),
        room=(room := round(GAUGE * its.room / its.window)),
        reserve=GAUGE - room,
        warn=at(round(its.warn * its.room)),
        trigger=at(its.trigger),
        target=at(its.target),
    )


@dataclass(frozen=True, slots=True)
class Row:
    """One running session as the page shows it."""

    session: Session
    gauge: Gauge
    revision: Revision | None

    @property
    def name(self) -> str:
        """What it is called."""
        return str(self.session)

    @property
    def revision_url(self) -> str:
        """Where the newest revision is explained."""
        assert self.revision is not None
        where = [self.session.pk, self.revision.run_id, self.revision.number]
        return reverse("revision", args=where)

    @property
    def cost_is_partial(self) -> bool:
        """Whether some calls reported no usage, so that the spending is a lower bound."""
        return self.session.usage_calls < self.session.step_count


@require_GET
def live(request: HttpRequest) -> HttpResponse:
    """Running sessions by how much of their room is taken."""
    team = team_of(request)
    running = Session.objects.for_team(team).live()
    found = list(running.select_related("policy_version__policy").order_by("-changed")[:ROWS])
    newest, served = _newest_revisions(found), _served_runs(found)
    rows = [
        Row(session, gauge(session, served.get(session.pk)), newest.get(session.pk))
        for session in found
    ]
    rows.sort(key=lambda row: (-row.gauge.share, row.session.created))
    context = {
        "section": "live",
        "team": team,
        "rows": rows,
        "total": len(rows) if len(rows) < ROWS else running.count(),
        "version": list_version(request),
        "gauge_width": GAUGE,
    }
    return render(request, "live/live.html", context)


def _newest_revisions(sessions: list[Session]) -> dict[Any, Revision]:
    revisions = Revision.objects.filter(
        run__session__in=[session.pk for session in sessions],
        run__origin=Run.Origin.SERVED,
        number=F("run__head"),
    )
    return {row.run.session_id: row for row in revisions.select_related("run")}


def _served_runs(sessions: list[Session]) -> dict[Any, Run]:
    ids = [session.pk for session in sessions]
    runs = Run.objects.filter(session__in=ids, origin=Run.Origin.SERVED)
    return {run.session_id: run for run in runs.only("session_id", "taken", "fold")}
