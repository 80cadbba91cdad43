"""Queries for jobs that every live step takes, composed once."""

from __future__ import annotations

from django.db.models import Case, ExpressionWrapper, F, PositiveSmallIntegerField, Q, When

from sessions.models import Job
from sessions.models.web.statements import (
    Delete,
    Statement,
    Update,
    given_columns,
    given_int,
    given_text,
    given_time,
    given_uuid,
)

UNFINISHED = (Job.State.QUEUED, Job.State.RUNNING)

ASKED = Statement(
    lambda: Job.objects.filter(
        team_id=given_uuid("team"),
        dedupe=given_text("dedupe"),
        state__in=(Job.State.FAILED, *UNFINISHED),
    )
)


BY_ID = Statement(lambda: Job.objects.filter(id=given_uuid("job")))


def _one_more(field: str, state: str) -> Case:
    more = ExpressionWrapper(F(field) + 1, output_field=PositiveSmallIntegerField())
    return Case(When(state=state, then=more), default=F(field))


CLAIM = Update(
    lambda: (
        Job.objects.filter(
            Q(state=Job.State.QUEUED, attempts__lt=given_int("most_attempts"))
            | Q(
                state=Job.State.RUNNING,
                lease_until=given_time("ended"),
                losses__lt=given_int("most_losses"),
            ),
            id=given_uuid("job"),
        ),
        given_columns(Job, ("token", "lease_until", "started", "done_units"))
        | {
            "state": Job.State.RUNNING,
            "attempts": _one_more("attempts", Job.State.QUEUED),
            "losses": _one_more("losses", Job.State.RUNNING),
            "version": F("version") + 1,
        },
    )
)


REMOVE = Delete(
    lambda: Job.objects.filter(
        id=given_uuid("job"), token=given_uuid("token"), state=Job.State.RUNNING
    )
)
