"""Delivery: what channels receive, retries, and exactly one notification for one event."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from sessions.actions.accounts.audit import COMMAND
from sessions.actions.accounts.teams import local_team
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import attempt
from sessions.actions.notifications import announce as announcing
from sessions.actions.notifications import channels, delivery
from sessions.actions.notifications.announce import announce
from sessions.actions.notifications.events import Occurrence, fact_lines
from sessions.importers.delivered.delivered import Unacceptable
from sessions.models import AuditEntry, Job, Notification, NotificationChannel
from tests.sessions.notifications.receivers import mail_receiver, web_receiver

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait", "open_loopback")]

COST = {"session": "run <1>", "step": 12, "cost_microusd": 840_000}


@pytest.fixture
def open_loopback(settings: Any) -> None:
    settings.WEBHOOK_NETWORKS = [ip_network("127.0.0.0/8")]
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_USE_TLS = False


def channel(kind: str, address: str) -> tuple[NotificationChannel, str]:
    name = f"{kind} {NotificationChannel.objects.count()}"
    return channels.add_channel(local_team(), kind, name, address, COMMAND)


def rule(to: NotificationChannel, event: str = "break", threshold: int | None = 0, quiet: int = 60):
    return channels.put_rule(to, event, threshold, quiet, COMMAND)[0]


def happened(key: str = "break:1", cause: str = "session:1", value: int | None = 840_000) -> None:
    title = "Cache break at step 12: TTL expired"
    announce(local_team(), Occurrence("break", key, cause, title, "/s/1/", value, COST))


def deliver_all() -> list[Notification]:
    """Run the queued deliveries once, as workers would; return the log, oldest first."""
    for job in Job.objects.filter(kind="notify", state=Job.State.QUEUED):
        claimed = jobs.claim(job.pk)
        assert claimed is not None and claimed.token is not None
        assert attempt(claimed.pk, claimed.token)
    return list(Notification.objects.order_by("created"))


def test_a_webhook_gets_signed_json():
    with web_receiver() as there:
        made, secret = channel("webhook", f"{there.url}/hook")
        rule(made)
        happened()
        (row,) = deliver_all()
    (path, headers, body), said = there.requests[0], json.loads(there.requests[0][2])
    assert (path, len(there.requests)) == ("/hook", 1)
    assert said["event"] == "break" and said["facts"] == COST and said["team"] == "local"
    assert said["url"].endswith("/s/1/") and said["id"] == headers["webhook-id"] == str(row.pk)
    signed = f"{row.pk}.{headers['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert (row.state, row.status, row.attempts, row.problem) == ("sent", 200, 1, "")
    assert not Job.objects.filter(kind="notify").exists()


def test_slack_gets_text_and_blocks():
    with web_receiver() as there:
        rule(channel("slack", there.url)[0])
        happened()
        deliver_all()
    said = json.loads(there.requests[0][2])
    assert said["text"] == "Cache break at step 12: TTL expired"
    assert [one["type"] for one in said["blocks"]] == ["header", "section", "context"]
    assert said["blocks"][1]["text"]["text"] == (
        "*Session:* run &lt;1&gt;\n*Step:* 12\n*Cost:* $0.84"
    )


def test_mail_goes_through_smtp(settings: Any):
    with mail_receiver() as there:
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", there.port
        rule(channel("email", "a@example.org, b@example.org")[0])
        happened()
        (row,) = deliver_all()
    ((to, text),) = there.mails
    assert to == ["a@example.org", "b@example.org"] and row.state == "sent"
    assert "Subject: [ContextLab] Cache break at step 12: TTL expired" in text
    assert "Cost: $0.84" in text and f"Message-ID: <{row.pk}@contextlab>" in text


@pytest.mark.parametrize(("refusal", "state"), [("450 later", "waiting"), ("550 no", "failed")])
def test_a_mail_server_that_refuses(settings: Any, refusal: str, state: str):
    with mail_receiver(refusal) as there:
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", there.port
        rule(channel("email", "a@example.org")[0])
        happened()
        (row,) = deliver_all()
    assert (row.state, refusal[:3] in row.problem) == (state, True)


def test_without_a_mail_server_the_log_says_so(settings: Any):
    settings.EMAIL_HOST = ""
    rule(channel("email", "a@example.org")[0])
    happened()
    (row,) = deliver_all()
    assert (row.state, row.problem) == ("failed", delivery.NO_MAIL_SERVER)


def test_failures_are_retried_with_growing_pauses_and_then_given_up():
    with web_receiver(*[500] * 6) as there:
        rule(channel("webhook", there.url)[0])
        happened()
        pauses = []
        for number in range(1, len(delivery.PAUSES) + 1):
            (row,) = deliver_all()
            assert (row.state, row.attempts) == ("waiting", number)
            assert row.next_attempt is not None
            job = Job.objects.get(kind="notify")
            pauses.append(round((job.wake_after - timezone.now()).total_seconds(), -1))
        (row,) = deliver_all()
        assert (row.state, row.attempts, row.problem) == ("failed", 5, "It answered 500.")
        assert pauses == list(delivery.PAUSES)
        assert not Job.objects.filter(kind="notify").exists()
        assert delivery.retry(row, COMMAND) and not delivery.retry(row, COMMAND)
        deliver_all()
        (row,) = deliver_all()
    assert {headers["webhook-id"] for _, headers, _ in there.requests} == {str(row.pk)}
    assert (row.state, row.attempts, len(there.requests)) == ("sent", 2, 7)


def test_an_attempt_that_dies_after_sending_sends_the_same_id_again(
    monkeypatch: pytest.MonkeyPatch,
):
    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with web_receiver() as there:
        rule(channel("webhook", there.url)[0])
        happened()
        with monkeypatch.context() as patched:
            patched.setattr(delivery, "_conclude", die)
            claimed = jobs.claim(Job.objects.get(kind="notify").pk)
            assert claimed is not None and claimed.token is not None
            assert not attempt(claimed.pk, claimed.token)
        (row,) = deliver_all()
    ids = [headers["webhook-id"] for _, headers, _ in there.requests]
    assert ids == [str(row.pk)] * 2 and (row.state, row.attempts) == ("sent", 2)


def test_a_delivery_whose_process_always_dies_is_a_failed_line_of_the_log():
    made, _ = channel("webhook", "http://127.0.0.1:1/")
    rule(made)
    rule(made, "job")
    happened()
    job = Job.objects.get(kind="notify")
    Job.objects.filter(pk=job.pk).update(attempts=3, state=Job.State.RUNNING, token=job.pk)
    jobs.give_up_attempt(job.pk, job.pk, "Its process was killed by SIGKILL.")
    (row,) = Notification.objects.all()
    assert row.state == "failed" and "SIGKILL" in row.problem


def test_the_same_event_is_notified_once_and_the_same_cause_is_quiet():
    made, _ = channel("webhook", "http://127.0.0.1:1/")
    rule(made, quiet=30)
    happened("break:1")
    happened("break:1")
    happened("break:2")
    happened("break:3", cause="session:2")
    rows = {row.occurrence: row for row in Notification.objects.all()}
    assert {key: row.state for key, row in rows.items()} == {
        "break:1": "waiting", "break:2": "quiet", "break:3": "waiting"
    }  # fmt: skip
    assert "30 minutes" in rows["break:2"].problem
    Notification.objects.update(created=timezone.now() - timedelta(minutes=31))
    happened("break:4")
    assert Notification.objects.get(occurrence="break:4").state == "waiting"


def test_a_channel_has_a_limit_an_hour(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(announcing, "MOST_AN_HOUR", 2)
    rule(channel("webhook", "http://127.0.0.1:1/")[0], quiet=0)
    for number in range(4):
        happened(f"break:{number}")
    states = Notification.objects.order_by("created").values_list("state", flat=True)
    assert list(states) == ["waiting", "waiting", "quiet", "quiet"]


@pytest.mark.parametrize(
    ("threshold", "value", "count"),
    [(0, None, 1), (0, 0, 1), (100, None, 0), (100, 99, 0), (100, 100, 1)],
)
def test_the_threshold(threshold: int, value: int | None, count: int):
    rule(channel("webhook", "http://127.0.0.1:1/")[0], threshold=threshold)
    happened(value=value)
    assert Notification.objects.count() == count


@pytest.mark.django_db(transaction=True)
@pytest.mark.store
def test_of_workers_that_report_an_event_at_once_one_notifies():
    rule(channel("webhook", "http://127.0.0.1:1/")[0])
    barrier = threading.Barrier(4)

    def work() -> None:
        try:
            barrier.wait(30)
            happened()
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert Notification.objects.count() == Job.objects.filter(kind="notify").count() == 1


def test_addresses_and_secrets_are_stored_encrypted(settings: Any):
    made, secret = channel("webhook", "https://hooks.example.com/T0/SECRET")
    made.refresh_from_db()
    stored = bytes(made.address) + bytes(made.secret)
    assert b"SECRET" not in stored and secret.encode() not in stored
    assert made.shown == "https://hooks.example.com/…"
    audited = json.dumps(list(AuditEntry.objects.values_list("detail", flat=True)))
    assert "SECRET" not in audited
    rule(made)
    happened()
    settings.SECRET_KEY = "another"
    (row,) = deliver_all()
    assert row.state == "failed" and "secret key changed" in row.problem


@pytest.mark.parametrize(
    ("kind", "name", "address", "field"),
    [
        ("fax", "a", "https://example.com", "/kind"),
        ("slack", "", "https://example.com", "/name"),
        ("slack", "taken", "https://example.com", "/name"),
        ("slack", "a", "https://10.0.0.1/", "/address"),
        ("email", "a", "nobody", "/address"),
        ("email", "a", "a@example.org\nBcc: b@example.org", "/address"),
    ],
)
def test_a_channel_that_is_refused(kind: str, name: str, address: str, field: str):
    channels.add_channel(local_team(), "slack", "taken", "https://example.com/", COMMAND)
    with pytest.raises(Unacceptable) as refused:
        channels.add_channel(local_team(), kind, name, address, COMMAND)
    assert refused.value.pointer == field


def test_tests_are_bounded():
    made, _ = channel("webhook", "http://127.0.0.1:1/")
    for _ in range(channels.TESTS_WAITING):
        channels.send_test(made, COMMAND)
    with pytest.raises(channels.TooManyTests):
        channels.send_test(made, COMMAND)


def test_old_lines_of_the_log_are_deleted():
    with web_receiver() as there:
        made, _ = channel("webhook", there.url)
        channels.send_test(made, COMMAND)
        deliver_all()
        Notification.objects.update(created=timezone.now() - timedelta(days=31))
        channels.send_test(made, COMMAND)
        assert len(deliver_all()) == 1


def test_facts_within_facts_are_written_as_their_own_and_unknown_ones_left_out():
    facts = {"action": "saved", "named_id": None, "detail": {"kind": "session", "threshold": None}}
    assert fact_lines(facts) == [("Action", "saved"), ("Kind", "session")]
