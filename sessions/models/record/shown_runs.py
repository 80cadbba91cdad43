"""The run with which the replay of a session opens."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.db.models import Exists, OuterRef

from sessions.models.record.messages import ModelCall
from sessions.models.record.revisions import Run
from sessions.models.record.sessions import SOURCE_LIVE, Session


def shown_origin(session: Session) -> str:
    """The origin of the run with which the replay of a session opens."""
    found = shown_runs([session]).get(session.pk)
    return Run.Origin.RECORDED if found is None else found.origin


def shown_runs(sessions: Collection[Session]) -> dict[UUID, Run]:
    """The run with which the replay of each session opens, by session.

    The managed one of a live session, if any call reported that it sent a context of it or none was
    made yet; else what the agent reported, because our contexts then are only plans.
    """
    calls = ModelCall.objects.filter(session=OuterRef("session"))
    rows = Run.objects.filter(session__in=sessions).defer(*Run.LARGE, "fold", "figures")
    rows = rows.exclude(origin=Run.Origin.SIMULATED).annotate(
        sent=Exists(calls.exclude(context="")), called=Exists(calls)
    )
    live = {session.pk for session in sessions if session.source == SOURCE_LIVE}
    found: dict[UUID, Run] = {}
    for run in rows.order_by("-origin"):  # recorded first
        managed = run.session_id in live and (run.sent or not run.called)
        if run.origin == Run.Origin.RECORDED or managed:
            found[run.session_id] = run
    return found
