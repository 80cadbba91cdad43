"""Channels and rules of a team: create, test, remove."""

from __future__ import annotations

import base64
import secrets
import uuid
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.urls import reverse

from sessions.actions.accounts import audit
from sessions.actions.notifications.announce import ask_delivery
from sessions.actions.notifications.events import EVENTS, TEST
from sessions.actions.notifications.outbound import InvalidAddress, check_address
from sessions.actions.notifications.written import SECRET_PREFIX
from sessions.actions.web.sealed import seal
from sessions.importers.decoded import clean
from sessions.importers.delivered.delivered import Unacceptable
from sessions.models import Notification, NotificationChannel, NotificationRule, Team

MOST_CHANNELS = 20
MOST_RECIPIENTS = 10
NAME_CHARS = 100
MOST_MINUTES = 7 * 24 * 60
MOST_THRESHOLD = 10**12
TESTS_WAITING = 3
"""Tests of a channel that may wait to be sent."""

Kind = NotificationChannel.Kind


class TooManyTests(Exception):
    """The channel already has as many tests as may wait."""


def add_channel(
    team: Team, kind: str, name: str, address: str, actor: audit.Actor
) -> tuple[NotificationChannel, str]:
    """Create a channel; return it with the secret of its signatures, which is shown once (empty
    unless it is a webhook). Raises Unacceptable."""
    if kind not in Kind.values:
        raise Unacceptable("/kind", f"must be one of: {', '.join(Kind.values)}")
    name, address = name.strip(), address.strip()
    if not name or len(name) > NAME_CHARS or name != clean(name):
        raise Unacceptable("/name", f"must be text of 1 to {NAME_CHARS} characters")
    shown = _recipients(address) if kind == Kind.EMAIL else _webhook(address)
    secret = ""
    if kind == Kind.WEBHOOK:
        secret = SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()
    with transaction.atomic():
        Team.objects.select_for_update(no_key=True).get(pk=team.pk)
        known = NotificationChannel.objects.filter(team=team)
        if known.filter(name=name).exists():
            raise Unacceptable("/name", "is the name of another channel")
        if known.count() >= MOST_CHANNELS:
            raise Unacceptable("", f"would be channel {MOST_CHANNELS + 1}; remove one first")
        made = NotificationChannel.objects.create(
            team=team,
            kind=kind,
            name=name,
            address=seal(shown if kind == Kind.EMAIL else address),
            secret=seal(secret),
            shown=shown,
            made_by=actor.user,
        )
        audit.note(team, actor, "channel.made", name, kind=kind, address=shown)
    return made, secret


def _recipients(text: str) -> str:
    found = text.replace(",", " ").split()
    if not 0 < len(found) <= MOST_RECIPIENTS or len(text) > 300:
        raise Unacceptable("/address", f"must be 1 to {MOST_RECIPIENTS} email addresses")
    for one in found:
        try:
            validate_email(one)
        except ValidationError:
            raise Unacceptable("/address", "must be email addresses, separated by spaces") from None
    return " ".join(found)


def _webhook(text: str) -> str:
    """The part of a URL that grants nothing: scheme and host."""
    try:
        check_address(text)
    except InvalidAddress as error:
        raise Unacceptable("/address", f"is not accepted: {error}") from None
    parts = urlsplit(text)
    return f"{parts.scheme}://{parts.netloc}/…"


def remove_channel(channel: NotificationChannel, actor: audit.Actor) -> None:
    """Delete a channel with its rules and its part of the delivery log."""
    with transaction.atomic():
        audit.note(channel.team, actor, "channel.removed", channel.name, kind=channel.kind)
        channel.delete()


def send_test(channel: NotificationChannel, actor: audit.Actor) -> Notification:
    """Send a test, like any notification. Raises TooManyTests."""
    with transaction.atomic():
        # As the audit log does it: first the team, then the channel.
        Team.objects.select_for_update(no_key=True).get(pk=channel.team_id)
        locked = NotificationChannel.objects.select_for_update().get(pk=channel.pk)
        waiting = locked.notifications.filter(event=TEST, state=Notification.State.WAITING)
        if waiting.count() >= TESTS_WAITING:
            raise TooManyTests
        row = Notification.objects.create(
            team=channel.team,
            channel=locked,
            event=TEST,
            occurrence=f"test:{uuid.uuid4()}",
            cause=TEST,
            title=f"Test of the channel {channel.name}",
            facts={"sent_by": actor.name},
            path=reverse("notifications"),
        )
        audit.note(channel.team, actor, "channel.tested", channel.name)
        ask_delivery(row)
    return row


def put_rule(
    channel: NotificationChannel,
    event: str,
    threshold: int | None,
    quiet_minutes: int,
    actor: audit.Actor,
) -> tuple[NotificationRule, bool]:
    """Create or change the rule of an event and channel; also return whether it was created.

    Raises Unacceptable.
    """
    if event not in EVENTS:
        raise Unacceptable("/event", f"must be one of: {', '.join(EVENTS)}")
    if not EVENTS[event].unit:
        threshold = None
    elif threshold is None:
        threshold = EVENTS[event].default
    if threshold is not None and not 0 <= threshold <= MOST_THRESHOLD:
        raise Unacceptable("/threshold", f"must be a whole number from 0 to {MOST_THRESHOLD}")
    if not 0 <= quiet_minutes <= MOST_MINUTES:
        raise Unacceptable("/quiet_minutes", f"must be a whole number from 0 to {MOST_MINUTES}")
    values = {"threshold": threshold, "quiet_minutes": EVENTS[event].quiet(quiet_minutes)}
    with transaction.atomic():
        rule, created = NotificationRule.objects.update_or_create(
            channel=channel, event=event, defaults={**values, "team": channel.team}
        )
        action = "notification_rule.made" if created else "notification_rule.changed"
        audit.note(channel.team, actor, action, event, channel=channel.name, **values)
    return rule, created


def remove_rule(rule: NotificationRule, actor: audit.Actor) -> None:
    """Delete a rule."""
    with transaction.atomic():
        audit.note(
            rule.team, actor, "notification_rule.removed", rule.event, channel=rule.channel.name
        )
        rule.delete()
