"""Deliver notifications: the job `notify`, its retries, and the delivery log.

A request that was sent just before its process was killed is sent once more, with the same id:
receivers ignore an id that they know.
"""

from __future__ import annotations

import smtplib
import time
from datetime import timedelta

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.utils import timezone

from sessions.actions.accounts import audit
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import Running
from sessions.actions.notifications.announce import ask_delivery
from sessions.actions.notifications.outbound import Reply, post
from sessions.actions.notifications.written import (
    as_json,
    as_slack,
    as_text,
    signature_headers,
    subject,
)
from sessions.actions.web.sealed import Unsealable, unseal
from sessions.models import Notification, NotificationChannel

PAUSES = (10, 60, 300, 1800)
"""Seconds before each further attempt, after which delivery fails: some 36 minutes in all."""

KEPT = timedelta(days=30)
"""How long the delivery log is kept."""

NO_MAIL_SERVER = "No mail server is configured. Set CONTEXTLAB_SMTP_HOST on the server."

_CHANGED_KEY = (
    "The channel's address cannot be read, because the server's secret key changed or the channel "
    "was imported without it. Create the channel again."
)
_JSON = {"Content-Type": "application/json", "User-Agent": "ContextLab"}

State = Notification.State
Kind = NotificationChannel.Kind


def notify(running: Running) -> None:
    """Run the `notify` job: payload {notification}. Leaves no row; the log has the result."""
    rows = Notification.objects.filter(team=running.team, pk=running.payload["notification"])
    row = rows.filter(state=State.WAITING).select_related("channel", "team").first()
    if row is None:  # delivered by an attempt that could not say so, or the channel was removed
        jobs.remove(running.job.id, running.token)
        return
    row.attempts += 1
    row.save(update_fields=["attempts"])
    began = time.monotonic()
    reply = _send(row)
    row.took_ms = round((time.monotonic() - began) * 1000)
    row.status, row.problem = reply.status, reply.problem[:300]
    with transaction.atomic():
        jobs.remove(running.job.id, running.token)
        _conclude(row, reply)
    Notification.objects.filter(team=running.team, created__lt=timezone.now() - KEPT).delete()


def _conclude(row: Notification, reply: Reply) -> None:
    row.next_attempt = None
    if not reply.problem:
        row.state, row.sent = State.SENT, timezone.now()
    elif not reply.again or row.attempts > len(PAUSES):
        row.state = State.FAILED
    else:
        pause = PAUSES[row.attempts - 1]
        row.next_attempt = timezone.now() + timedelta(seconds=pause)
        ask_delivery(row, after=pause)
    row.save()


def _send(row: Notification) -> Reply:
    channel = row.channel
    try:
        address, secret = unseal(channel.address), unseal(channel.secret)
    except Unsealable:
        return Reply(None, _CHANGED_KEY)
    if channel.kind == Kind.EMAIL:
        return _mail(row, address.split())
    if channel.kind == Kind.SLACK:
        return post(address, as_slack(row), _JSON)
    body = as_json(row)
    signed = signature_headers(secret, str(row.pk), int(time.time()), body)
    return post(address, body, {**_JSON, **signed})


def _mail(row: Notification, to: list[str]) -> Reply:
    if not settings.EMAIL_HOST:
        return Reply(None, NO_MAIL_SERVER)
    headers = {"Message-ID": f"<{row.pk}@contextlab>"}
    message = EmailMessage(subject(row), as_text(row), to=to, headers=headers)
    try:
        message.send()
    except smtplib.SMTPResponseException as error:
        again = 400 <= error.smtp_code < 500
        return Reply(None, f"The mail server answered {error.smtp_code}.", again)
    except smtplib.SMTPRecipientsRefused as error:
        codes = sorted({code for code, _ in error.recipients.values()})
        said = ", ".join(map(str, codes))
        again = all(400 <= code < 500 for code in codes)
        return Reply(None, f"The mail server refused the recipients ({said}).", again)
    except (OSError, smtplib.SMTPException) as error:
        return Reply(None, f"The mail server failed ({type(error).__name__}).", again=True)
    return Reply(None)


def retry(row: Notification, actor: audit.Actor) -> bool:
    """Deliver a failed notification again, with all attempts. Returns False for other states."""
    with transaction.atomic():
        failed = Notification.objects.filter(pk=row.pk, state=State.FAILED)
        if not failed.update(state=State.WAITING, attempts=0, next_attempt=None):
            return False
        audit.note(row.team, actor, "notification.retried", str(row.channel), event=row.event)
        ask_delivery(row)
    return True
