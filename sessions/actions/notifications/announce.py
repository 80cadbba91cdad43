"""Create notifications for an event, in the transaction in which it happened.

So an event is notified if and only if it is stored, whichever process dies. Of concurrent
processes, the lock of the channel lets one after the other look whether the event is known and
whether its cause is quiet.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from sessions.actions.jobs import jobs
from sessions.actions.notifications.events import Occurrence
from sessions.models import Notification, NotificationChannel, NotificationRule, Team

KIND = "notify"
"""The kind of job that delivers a notification."""

MOST_AN_HOUR = 60
"""Notifications sent to a channel within an hour; more stay in the log."""

State = Notification.State


def is_awaited(team: Team, event: str) -> bool:
    """Whether a team has a rule for an event. Where none is likely, this costs less than to
    describe what occurred: the first address in a process loads all pages."""
    return NotificationRule.objects.filter(team=team, event=event).exists()


def announce(team: Team, what: Occurrence) -> None:
    """Create a notification for each of the team's rules that the occurrence meets."""
    rules = NotificationRule.objects.filter(team=team, event=what.event).order_by("channel_id")
    for rule in rules:
        if _meets(rule, what):
            with transaction.atomic():
                _create(team, rule, what)


def _meets(rule: NotificationRule, what: Occurrence) -> bool:
    """An unknown value meets only a rule without a lower limit."""
    return not rule.threshold or (what.value is not None and what.value >= rule.threshold)


def _create(team: Team, rule: NotificationRule, what: Occurrence) -> None:
    channel = NotificationChannel.objects.select_for_update().get(pk=rule.channel_id)
    known = Notification.objects.filter(channel=channel)
    if known.filter(occurrence=what.key).exists():
        return
    now = timezone.now()
    counted = known.filter(state__in=(State.WAITING, State.SENT))
    alike = counted.filter(event=what.event, cause=what.cause)
    problem = ""
    if alike.filter(created__gt=now - timedelta(minutes=rule.quiet_minutes)).exists():
        problem = f"Not sent: the same cause was notified within {rule.quiet_minutes} minutes."
    elif counted.filter(created__gt=now - timedelta(hours=1)).count() >= MOST_AN_HOUR:
        problem = f"Not sent: the channel had {MOST_AN_HOUR} notifications within an hour."
    row = Notification.objects.create(
        team=team,
        channel=channel,
        event=what.event,
        occurrence=what.key[:200],
        cause=what.cause[:200],
        title=what.title[:500],
        facts=what.facts,
        path=what.path[:300],
        state=State.QUIET if problem else State.WAITING,
        problem=problem,
    )
    if not problem:
        ask_delivery(row)


def ask_delivery(row: Notification, after: float = 0) -> None:
    """Queue the delivery of a waiting notification, `after` seconds from now."""
    jobs.enqueue(row.team, KIND, {"notification": str(row.pk)}, f"{KIND}:{row.pk}", after=after)
