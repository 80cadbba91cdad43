"""Notifications: channels, rules and the delivery log. People change them; keys only read."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from ninja import Query, Router

from sessions.access import actor_of, require, team_of, team_to, teams_of
from sessions.actions.notifications import channels as edit
from sessions.actions.notifications.delivery import retry as deliver_again
from sessions.actions.notifications.events import EVENTS
from sessions.actions.notifications.written import page_url
from sessions.api.notifications import shapes
from sessions.api.web.exchange import json_answer
from sessions.api.web.once import done_once
from sessions.api.web.problems import Refusal
from sessions.models import Notification, NotificationChannel, NotificationRule

ROWS_AT_ONCE = 200

router = Router(tags=["Notifications"])


def describe_channel(row: NotificationChannel) -> dict[str, Any]:
    """A channel as JSON, without what grants access to it."""
    return {
        "id": str(row.pk),
        "kind": row.kind,
        "name": row.name,
        "address": row.shown,
        "created": row.created.isoformat(),
    }


def describe_rule(row: NotificationRule) -> dict[str, Any]:
    """A rule as JSON."""
    return {
        "id": str(row.pk),
        "event": row.event,
        "channel": str(row.channel_id),
        "threshold": row.threshold,
        "quiet_minutes": EVENTS[row.event].quiet(row.quiet_minutes),
    }


def describe_notification(row: Notification) -> dict[str, Any]:
    """A line of the delivery log as JSON."""
    names = ("event", "title", "facts", "state", "attempts", "status", "took_ms", "problem")
    return {
        "id": str(row.pk),
        "channel": str(row.channel_id),
        **{name: getattr(row, name) for name in names},
        "url": page_url(row),
        "created": row.created.isoformat(),
        "sent": _time(row.sent),
        "next_attempt": _time(row.next_attempt),
    }


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


@router.get("notifications", response=shapes.NotificationList, url_name="notifications")
def notifications(
    request: HttpRequest,
    state: Literal["", "waiting", "sent", "failed", "quiet"] = Query(
        "", description="only this state"
    ),
    limit: int = Query(50, ge=1, le=ROWS_AT_ONCE),
) -> HttpResponse:
    """List the delivery log, newest first; it is kept for 30 days."""
    rows = Notification.objects.filter(team=team_of(request)).order_by("-created")
    if state:
        rows = rows.filter(state=state)
    return json_answer({"notifications": [describe_notification(row) for row in rows[:limit]]})


def notification_of(request: HttpRequest, notification_id: UUID) -> Notification:
    """A notification of the requester's teams, for one who may change. Raises Http404."""
    rows = Notification.objects.filter(team__in=teams_of(request), pk=notification_id)
    found = rows.select_related("team", "channel").first()
    if found is None:
        raise Http404("no such notification")
    require(request, found.team, "accept")
    return found


@router.post(
    "notifications/{uuid:notification_id}/retry",
    response=shapes.NotificationOut,
    url_name="notification_retry",
)
@done_once
def retry(request: HttpRequest, notification_id: UUID) -> HttpResponse:
    """Deliver a failed notification again. For people only; 409 in other states."""
    row = notification_of(request, notification_id)
    if not deliver_again(row, actor_of(request)):
        raise Refusal(409, "Not failed", "Only failed notifications can be sent again.")
    row.refresh_from_db()
    return json_answer(describe_notification(row))


@router.get("notifications/channels", response=shapes.ChannelList, url_name="channels")
def channels(request: HttpRequest) -> HttpResponse:
    """List the team's channels."""
    rows = NotificationChannel.objects.filter(team=team_of(request)).order_by("name")
    return json_answer({"channels": [describe_channel(row) for row in rows]})


@router.post("notifications/channels", response={201: shapes.ChannelMade}, url_name="channels")
def add_channel(request: HttpRequest, wanted: shapes.ChannelIn) -> HttpResponse:
    """Create a channel. For people only; a webhook's signing secret is returned once."""
    team = team_to(request, "accept")
    made, secret = edit.add_channel(team, **wanted.dict(), actor=actor_of(request))
    return json_answer({**describe_channel(made), "secret": secret or None}, 201)


def channel_of(request: HttpRequest, channel_id: UUID) -> NotificationChannel:
    """A channel of the requester's teams, for one who may change it. Raises Http404."""
    rows = NotificationChannel.objects.filter(team__in=teams_of(request), pk=channel_id)
    found = rows.select_related("team").first()
    if found is None:
        raise Http404("no such channel")
    require(request, found.team, "accept")
    return found


@router.delete(
    "notifications/channels/{uuid:channel_id}", response=shapes.ChannelOut, url_name="channel"
)
@done_once
def remove_channel(request: HttpRequest, channel_id: UUID) -> HttpResponse:
    """Delete a channel, with its rules and its part of the log. For people only."""
    channel = channel_of(request, channel_id)
    answer = json_answer(describe_channel(channel))
    edit.remove_channel(channel, actor_of(request))
    return answer


@router.post(
    "notifications/channels/{uuid:channel_id}/tests",
    response={202: shapes.NotificationOut},
    url_name="channel_test",
)
@done_once
def send_test(request: HttpRequest, channel_id: UUID) -> HttpResponse:
    """Send a test; its result is in the delivery log. For people only."""
    try:
        row = edit.send_test(channel_of(request, channel_id), actor_of(request))
    except edit.TooManyTests:
        raise Refusal(409, "Tests wait", "Tests of this channel are still waiting.") from None
    return json_answer(describe_notification(row), 202)


@router.get(
    "notifications/rules", response=shapes.NotificationRuleList, url_name="notification_rules"
)
def rules(request: HttpRequest) -> HttpResponse:
    """List the team's rules."""
    rows = NotificationRule.objects.filter(team=team_of(request)).order_by("event", "created")
    return json_answer({"rules": [describe_rule(row) for row in rows]})


@router.put(
    "notifications/rules",
    response={200: shapes.NotificationRuleOut, 201: shapes.NotificationRuleOut},
    url_name="notification_rules",
)
def put_rule(request: HttpRequest, wanted: shapes.NotificationRuleIn) -> HttpResponse:
    """Create or change the rule of an event and a channel; 201 if it is new. For people only."""
    team = team_to(request, "accept")
    known = {
        str(row.pk): row
        for row in NotificationChannel.objects.filter(team=team).select_related("team")
    }
    channel = known.get(wanted.channel)
    if channel is None:
        detail = "This is no channel of the team. `GET notifications/channels` lists them."
        raise Refusal(422, "Unknown channel", detail, field="/channel")
    rule, created = edit.put_rule(
        channel, wanted.event, wanted.threshold, wanted.quiet_minutes, actor_of(request)
    )
    return json_answer(describe_rule(rule), 201 if created else 200)


def rule_of(request: HttpRequest, rule_id: UUID) -> NotificationRule:
    """A rule of the requester's teams, for one who may change it. Raises Http404."""
    rows = NotificationRule.objects.filter(team__in=teams_of(request), pk=rule_id)
    found = rows.select_related("team", "channel").first()
    if found is None:
        raise Http404("no such rule")
    require(request, found.team, "accept")
    return found


@router.delete(
    "notifications/rules/{uuid:rule_id}",
    response=shapes.NotificationRuleOut,
    url_name="notification_rule",
)
@done_once
def remove_rule(request: HttpRequest, rule_id: UUID) -> HttpResponse:
    """Delete a rule. For people only."""
    rule = rule_of(request, rule_id)
    answer = json_answer(describe_rule(rule))
    edit.remove_rule(rule, actor_of(request))
    return answer
