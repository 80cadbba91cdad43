"""Retention, archiving and legal holds: for how long a team keeps data, and where."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router

from sessions.access import actor_of, require, team_to, teams_of
from sessions.actions.erasure import archiving, holds, retention
from sessions.api.erasure import shapes
from sessions.api.web.exchange import json_answer
from sessions.api.web.once import done_once
from sessions.api.web.problems import Refusal
from sessions.models import Hold, Retention, Team

router = Router(tags=["Erasures"])


def describe_retention(team: Team) -> dict[str, Any]:
    """For how long a team keeps data, as JSON."""
    row = Retention.objects.filter(team=team).first() or Retention()
    return {"content_days": row.content_days, "session_days": row.session_days}


def describe_due(due: retention.Due) -> dict[str, Any]:
    """The result of a dry run as JSON."""
    return {
        "content": len(due.content),
        "sessions": len(due.sessions),
        "bytes": due.bytes,
        "held": due.held,
        "at_work": len(due.at_work),
    }


def describe_archiving(team: Team) -> dict[str, Any]:
    """The rule of archiving of a team and its archives, as JSON."""
    row = Retention.objects.filter(team=team).first() or Retention()
    return {"days": row.archive_days, **asdict(archiving.archives_of(team))}


def describe_hold(row: Hold) -> dict[str, Any]:
    """A hold as JSON."""
    return {
        "id": str(row.pk),
        "kind": row.kind,
        "value": row.task or (str(row.session) if row.session else ""),
        "reason": row.reason,
        "by": row.by,
        "created": row.created.isoformat(),
    }


@router.get("retention", response=shapes.RetentionOut, url_name="retention")
def kept(request: HttpRequest) -> HttpResponse:
    """Get for how many days the team keeps content and sessions; null is forever. A key needs the
    scope `erase`."""
    return json_answer(describe_retention(team_to(request, "erase")))


@router.put("retention", response=shapes.RetentionOut | shapes.DueOut, url_name="retention")
@done_once
def keep(request: HttpRequest, wanted: shapes.RetentionIn) -> HttpResponse:
    """Set for how many days the team keeps content and sessions, counted from the last step
    (without times, the import), or only count what that would erase. What is older is erased
    within a minute, and every day; what is still at work then, later. A key needs the scope
    `erase`."""
    team = team_to(request, "erase")
    days = wanted.content_days, wanted.session_days
    if wanted.dry_run:
        return json_answer(describe_due(retention.due(team, *days, timezone.now())))
    retention.change(team, *days, actor_of(request))
    return json_answer(describe_retention(team))


@router.get("archiving", response=shapes.ArchivingOut, url_name="archiving")
def archived(request: HttpRequest) -> HttpResponse:
    """Get after how many days sessions are archived, counted from their last step, and what is. A
    key needs the scope `erase`."""
    return json_answer(describe_archiving(team_to(request, "erase")))


@router.put("archiving", response=shapes.ArchivingOut | shapes.ColdOut, url_name="archiving")
@done_once
def archive(request: HttpRequest, wanted: shapes.ArchivingIn) -> HttpResponse:
    """Set after how many days sessions are archived, counted from their last step (without times,
    the import), or only count them. It begins within a minute, and every day; what was unpacked
    waits as many days from then. A key needs the scope `erase`."""
    team = team_to(request, "erase")
    if wanted.dry_run:
        found = archiving.cold(team, wanted.days, timezone.now())
        return json_answer(asdict(found))
    archiving.change(team, wanted.days, actor_of(request))
    return json_answer(describe_archiving(team))


@router.get("holds", response=shapes.HoldList, url_name="holds")
def in_force(request: HttpRequest) -> HttpResponse:
    """List the team's legal holds, oldest first. A key needs the scope `erase`."""
    rows = holds.in_force(team_to(request, "erase"))
    return json_answer({"holds": [describe_hold(row) for row in rows]})


@router.post("holds", response={201: shapes.HoldOut}, url_name="holds")
@done_once
def hold(request: HttpRequest, wanted: shapes.HoldIn) -> HttpResponse:
    """Put a session, a task or the whole team on hold: nothing of it is erased until the release.
    A key needs the scope `erase`."""
    team, kind = team_to(request, "erase"), Hold.Kind(wanted.kind)
    try:
        made = holds.hold(team, kind, wanted.value, actor_of(request), wanted.reason)
    except holds.NothingToHold as error:
        raise Refusal(422, "Nothing to hold", str(error), field="/value") from None
    return json_answer(describe_hold(made), 201)


@router.post("holds/{uuid:hold_id}/release", response=shapes.HoldOut, url_name="hold_release")
@done_once
def release(request: HttpRequest, hold_id: UUID, wanted: shapes.ReleaseIn) -> HttpResponse:
    """Release a hold. A key needs the scope `erase`. 409 if it was released before."""
    rows = Hold.objects.filter(team__in=teams_of(request), pk=hold_id)
    row = rows.select_related("team").first()
    if row is None:
        raise Http404("no such hold")
    require(request, row.team, "erase")
    if not holds.release(row, actor_of(request), wanted.reason):
        raise Refusal(409, "Released before", "This hold was released before.")
    return json_answer(describe_hold(row))
