"""Settings of notifications: channels, rules, and the delivery log."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from sessions.access import actor_of, allowed, require, team_of, team_to
from sessions.actions.notifications import channels as edit
from sessions.actions.notifications.delivery import NO_MAIL_SERVER
from sessions.actions.notifications.delivery import retry as deliver_again
from sessions.actions.notifications.events import EVENTS, fact_lines, title_of
from sessions.api.notifications.notifications import channel_of, notification_of, rule_of
from sessions.importers.delivered.delivered import Unacceptable
from sessions.models import Notification, NotificationChannel, NotificationRule, Team
from sessions.views.notifications.notification_forms import ChannelForm, RuleForm, threshold_text
from sessions.views.web.pages import Page
from sessions.views.web.paging import page


@require_http_methods(["GET", "HEAD", "POST"])
def notifications(request: HttpRequest) -> HttpResponse:
    """Show channels, rules and the log. POST creates a channel and shows its secret once."""
    team = team_of(request)
    if request.method != "POST":
        return _page(request, team)
    require(request, team, "accept")
    given = ChannelForm(request.POST)
    if not given.is_valid():
        return _page(request, team, channel_form=given, status=422)
    try:
        made, secret = edit.add_channel(team, **given.cleaned_data, actor=actor_of(request))
    except Unacceptable as error:
        field = error.pointer.removeprefix("/")
        given.add_error(field if field in given.fields else None, _sentence(error))
        return _page(request, team, channel_form=given, status=422)
    if not secret:
        messages.success(request, f"The channel {made} was created.")
        return _back(team)
    return _page(request, team, made=made, secret=secret)


def _sentence(error: Unacceptable) -> str:
    return f"This {error.problem.removesuffix('.')}."


def _back(team: Team) -> HttpResponse:
    return redirect(f"{reverse('notifications')}?team={team.slug}")


def _page(
    request: HttpRequest,
    team: Team,
    *,
    channel_form: ChannelForm | None = None,
    rule_form: tuple[str, RuleForm] | None = None,
    status: int = 200,
    **more: Any,
) -> HttpResponse:
    shown = page(
        _log(team).select_related("channel"), request.GET.get("cursor", ""), "created", size=20
    )
    channels = list(NotificationChannel.objects.filter(team=team).order_by("name"))
    context = {
        "section": "settings",
        "page": "notifications",
        "team": team,
        "may": allowed(request, team, "accept"),
        "channels": [(one, _log(team).filter(channel=one).first()) for one in channels],
        "events": _events(team, channels, rule_form),
        "form": channel_form or ChannelForm(),
        "no_mail_server": "" if settings.EMAIL_HOST else NO_MAIL_SERVER,
        "rows": [(row, title_of(row.event), fact_lines(row.facts)) for row in shown.rows],
        "newer_url": f"?cursor={shown.newer}" if shown.newer else "",
        "older_url": f"?cursor={shown.older}" if shown.older else "",
        **more,
    }
    return render(request, "notifications/notifications.html", context, status=status)


def _log(team: Team) -> QuerySet[Notification]:
    return Notification.objects.filter(team=team).order_by("-created")


def _events(
    team: Team, channels: list[NotificationChannel], wrong: tuple[str, RuleForm] | None
) -> list[dict[str, Any]]:
    rules = list(NotificationRule.objects.filter(team=team).select_related("channel"))
    return [
        {
            "event": event,
            "rules": [
                (rule, threshold_text(event, rule.threshold), event.quiet(rule.quiet_minutes))
                for rule in rules
                if rule.event == event.name
            ],
            "form": wrong[1]
            if wrong and wrong[0] == event.name
            else RuleForm(event=event, channels=channels),
            "open": bool(wrong and wrong[0] == event.name),
        }
        for event in EVENTS.values()
    ]


@require_POST
def test(request: HttpRequest, channel_id: UUID) -> HttpResponse:
    """Send a test to a channel; the log shows the result."""
    channel = channel_of(request, channel_id)
    try:
        edit.send_test(channel, actor_of(request))
    except edit.TooManyTests:
        messages.warning(request, f"Tests of {channel} are still waiting. See the log below.")
    else:
        messages.success(request, f"A test of {channel} is on its way. Its result is in the log.")
    return _back(channel.team)


@require_POST
def remove_channel(request: HttpRequest, channel_id: UUID) -> HttpResponse:
    """Delete a channel, its rules and its part of the log."""
    channel = channel_of(request, channel_id)
    edit.remove_channel(channel, actor_of(request))
    messages.success(request, f"The channel {channel} was removed.")
    return _back(channel.team)


@require_POST
def put_rule(request: HttpRequest, event: str) -> HttpResponse:
    """Create or change the rule of an event and a channel."""
    team = team_to(request, "accept")
    channels = list(NotificationChannel.objects.filter(team=team).order_by("name"))
    given = RuleForm(request.POST, event=EVENTS[event], channels=channels)
    if not given.is_valid():
        return _page(request, team, rule_form=(event, given), status=422)
    _, created = edit.put_rule(
        given.channel, event, given.threshold, given.quiet_minutes, actor_of(request)
    )
    messages.success(request, f"The rule was {'created' if created else 'changed'}.")
    return _back(team)


@require_POST
def remove_rule(request: HttpRequest, rule_id: UUID) -> HttpResponse:
    """Delete a rule."""
    rule = rule_of(request, rule_id)
    edit.remove_rule(rule, actor_of(request))
    messages.success(request, "The rule was removed.")
    return _back(rule.team)


@require_POST
def retry(request: HttpRequest, notification_id: UUID) -> HttpResponse:
    """Deliver a failed notification again."""
    row = notification_of(request, notification_id)
    if not deliver_again(row, actor_of(request)):
        messages.warning(request, "Only failed notifications can be sent again.")
    return _back(row.team)


PAGES = (
    *(
        Page(
            route=f"settings/notifications/rules/{event}/",
            view=put_rule,
            name=f"notification_rule_{event}",
            needs={"POST": "accept"},
            arguments={"event": event},
        )
        for event in EVENTS
    ),
    Page(
        route="settings/notifications/",
        query=("cursor",),
        view=notifications,
        name="notifications",
        needs={"POST": "accept"},
    ),
    Page(
        route="settings/notifications/channels/<uuid:channel_id>/test/",
        view=test,
        name="channel_test",
        needs={"POST": "accept"},
    ),
    Page(
        route="settings/notifications/channels/<uuid:channel_id>/remove/",
        view=remove_channel,
        name="channel_remove",
        needs={"POST": "accept"},
    ),
    Page(
        route="settings/notifications/rules/<uuid:rule_id>/remove/",
        view=remove_rule,
        name="notification_rule_remove",
        needs={"POST": "accept"},
    ),
    Page(
        route="settings/notifications/<uuid:notification_id>/retry/",
        view=retry,
        name="notification_retry",
        needs={"POST": "accept"},
    ),
)
