"""The settings of notifications, without JavaScript, and the API."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from sessions.actions.accounts.audit import COMMAND
from sessions.actions.notifications import channels
from sessions.models import AuditEntry, Notification, NotificationChannel, NotificationRule
from tests.sessions.pages import Page
from tests.sessions.programs import Program, assert_problem
from tests.sessions.web.world import browser_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]

ADDRESS = "/settings/notifications/"
HOOK = {"kind": "webhook", "name": "ops", "address": "https://hooks.example.com/T0/SECRET"}


def shown(client: Client, status: int = 200, **post: Any) -> Page:
    answer = client.post(ADDRESS, post) if post else client.get(ADDRESS)
    assert answer.status_code == status, answer.content
    return Page(answer.content.decode())


@pytest.fixture
def owner(program: Program) -> Client:
    return browser_of(program.team)


def test_an_empty_page_says_what_there_is_to_do(owner: Client):
    page = shown(owner)
    assert "No channels yet. Create the first one below." in page.text
    assert "Nothing sent yet" in page.text
    assert "Email is off. No mail server is configured." in page.text
    assert "Rules need a channel." in page.text


def test_a_webhook_is_created_its_secret_shown_once_and_its_address_never(owner: Client):
    made = shown(owner, **HOOK)
    assert "Signing secret of ops" in made.text and "whsec_" in made.text
    later = shown(owner)
    assert "whsec_" not in later.html and "SECRET" not in later.html
    assert "https://hooks.example.com/…" in later.text


def test_a_wrong_address_is_explained_at_its_field(owner: Client):
    page = shown(owner, 422, **HOOK | {"address": "https://169.254.169.254/latest"})
    assert "private, local or reserved network" in page.text
    assert not NotificationChannel.objects.exists()


def test_rules_are_made_changed_and_removed(owner: Client, program: Program):
    channel, _ = channels.add_channel(program.team, **HOOK, actor=COMMAND)
    rule = {"channel_id": str(channel.pk), "at_least": "0.25", "minutes": "30"}
    assert owner.post(f"{ADDRESS}rules/break/", rule).status_code == 302
    assert "→ ops, at least $0.25 same cause at most once in 30 min" in shown(owner).text
    assert owner.post(f"{ADDRESS}rules/break/", rule | {"minutes": "0"}).status_code == 302
    made = NotificationRule.objects.get()
    assert (made.threshold, made.quiet_minutes) == (250_000, 0)
    wrong = owner.post(f"{ADDRESS}rules/job/", {"channel_id": "x", "minutes": "1"})
    assert wrong.status_code == 422 and "Select a valid choice" in wrong.content.decode()
    owner.post(f"{ADDRESS}rules/{made.pk}/remove/")
    assert not NotificationRule.objects.exists()
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {f"notification_rule.{done}" for done in ("made", "changed", "removed")} <= actions


def test_the_rule_of_the_audit_log_names_no_pause(owner: Client, program: Program):
    channel, _ = channels.add_channel(program.team, **HOOK, actor=COMMAND)
    page = shown(owner)
    assert 'id="job_minutes"' in page.html and 'id="audit_minutes"' not in page.html
    assert owner.post(f"{ADDRESS}rules/audit/", {"channel_id": str(channel.pk)}).status_code == 302
    assert NotificationRule.objects.get().quiet_minutes == 0
    NotificationRule.objects.update(quiet_minutes=60)  # as rules were stored before
    assert "→ ops every time" in shown(owner).text
    listed = ask(owner, "GET", "notifications/rules")["rules"]
    assert [one["quiet_minutes"] for one in listed] == [0]


def test_a_test_and_its_retry_are_in_the_log(owner: Client, program: Program):
    channel, _ = channels.add_channel(program.team, **HOOK, actor=COMMAND)
    owner.post(f"{ADDRESS}channels/{channel.pk}/test/")
    assert "waiting for a worker" in shown(owner).text
    row = Notification.objects.get()
    Notification.objects.update(state="failed", problem="It answered 500.", attempts=5)
    assert "It answered 500. 5 attempts Retry" in shown(owner).text
    owner.post(f"{ADDRESS}{row.pk}/retry/")
    assert Notification.objects.get().state == "waiting"
    owner.post(f"{ADDRESS}channels/{channel.pk}/remove/")
    assert not Notification.objects.exists()


def test_a_viewer_sees_everything_masked_and_changes_nothing(owner: Client, program: Program):
    shown(owner, **HOOK)
    viewer = browser_of(program.team, "viewer")
    page = shown(viewer)
    assert "Create channel" not in page.text and "SECRET" not in page.html
    assert viewer.post(ADDRESS, HOOK).status_code == 403


def ask(client: Client, method: str, address: str, body: Any = None) -> Any:
    answer = client.generic(
        method, f"/api/v1/{address}", json.dumps(body or {}), "application/json"
    )
    assert answer.status_code < 300, answer.content
    return answer.json()


def test_the_same_by_the_api(owner: Client, program: Program):
    made = ask(owner, "POST", "notifications/channels", HOOK)
    assert made["secret"].startswith("whsec_")
    rule = ask(owner, "PUT", "notifications/rules", {"event": "break", "channel": made["id"]})
    assert (rule["threshold"], rule["quiet_minutes"]) == (100_000, 60)
    test = ask(owner, "POST", f"notifications/channels/{made['id']}/tests")
    listed = program.get("/notifications")["notifications"]
    assert [(one["id"], one["state"]) for one in listed] == [(test["id"], "waiting")]
    assert program.get("/notifications?state=sent")["notifications"] == []
    assert "SECRET" not in json.dumps(program.get("/notifications/channels"))
    assert_problem(program.ask("POST", "/notifications/channels", HOOK), 403)
    ask(owner, "DELETE", f"notifications/channels/{made['id']}")
    assert program.get("/notifications/rules") == {"rules": []}
