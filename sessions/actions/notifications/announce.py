"""Create notifications for an event, in the transaction in which it happened.

So an event is notified if and only if it is stored, whichever process dies. Of concurrent
processes, the lock of the channel lets one after the other look whether the event is known and
whether its cause is quiet.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from sessions.actions.jobs import jobs
from sessions.actions.notifications.events import EVENTS, Occurrence
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
    for rule in rules.select_related("channel"):
        if _meets(rule, what):
            announce_to(rule.channel, what, rule.quiet_minutes)


def _meets(rule: NotificationRule, what: Occurrence) -> bool:
    """An unknown value meets only a rule without a lower limit."""
    return not rule.threshold or (what.value is not None and what.value >= rule.threshold)


@transaction.atomic
def announce_to(channel: NotificationChannel, what: Occurrence, quiet_minutes: int = 0) -> bool:
    """Create a notification for a channel. Returns False if the channel has it."""
    channel = NotificationChannel.objects.select_for_update().get(pk=channel.pk)
    known = Notification.objects.filter(channel=channel)
    if known.filter(occurrence=what.key).exists():
        return False
    problem = "" if EVENTS[what.event].every else _held_back(known, what, quiet_minutes)
    row = Notification.objects.create(
        team_id=channel.team_id,
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
    return True


def _held_back(known: QuerySet[Notification], what: Occurrence, quiet_minutes: int) -> str:
    """Why a notification is not sent; empty if it is."""
    now = timezone.now()
    counted = known.filter(state__in=(State.WAITING, State.SENT))
    alike = counted.filter(event=what.event, cause=what.cause)
    if alike.filter(created__gt=now - timedelta(minutes=quiet_minutes)).exists():
        return f"Not sent: the same cause was notified within {quiet_minutes} minutes."
    if counted.filter(created__gt=now - timedelta(hours=1)).count() >= MOST_AN_HOUR:
        return f"Not sent: the channel had {MOST_AN_HOUR} notifications within an hour."
    return ""


def ask_delivery(row: Notification, after: float = 0) -> None:
    """Queue the delivery of a waiting notification, `after` seconds from now."""
    jobs.enqueue(row.team, KIND, {"notification": str(row.pk)}, f"{KIND}:{row.pk}", after=after)
