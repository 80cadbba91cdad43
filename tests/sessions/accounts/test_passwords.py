"""Forgotten passwords and confirmed addresses: by mail, by an owner's link, by a command."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib import import_module
from io import StringIO
from queue import Queue
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.apps import apps
from django.contrib.auth.models import User
from django.core import mail
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import get_script_prefix, reverse, set_script_prefix

from sessions.actions.accounts.emails import store_email
from sessions.actions.accounts.teams import local_user
from sessions.models import Membership, Team
from sessions.views.accounts import adapter, forms
from sessions.views.accounts.adapter import later
from tests.sessions.people import PASSWORD, QUICK, acts, browser, member, person, shown, sign_in

pytestmark = [pytest.mark.store, pytest.mark.django_db]
NEW = "harbour-lantern-7"


@pytest.fixture(autouse=True)
def mails(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.PASSWORD_HASHERS = QUICK
    settings.EMAIL_HOST = "mail.example.org"  # pytest-django collects what is sent

    def now(work: Callable[..., None], *given: Any) -> None:
        work(*given)

    monkeypatch.setattr(adapter, "later", now)
    monkeypatch.setattr(forms, "later", now)


@pytest.fixture
def team(db: None) -> Team:
    return Team.objects.create(slug="ours", name="Ours")


def with_address(user: User, email: str) -> User:
    store_email(user, email)
    return user


def path_in(body: str) -> str:
    """The path of the link in a mail."""
    found = re.search(r"http://127\.0\.0\.1(/\S+)", body)
    assert found, body
    return found[1]


def set_password(client: Client, path: str, password: str = NEW) -> Any:
    form = client.get(path)
    assert form.status_code == 302, "the key leaves the address bar"
    return client.post(form["Location"], {"password1": password, "password2": password})


def test_a_forgotten_password_is_replaced_with_a_mailed_link(team: Team):
    mara = with_address(member(team, "mara"), "Mara@example.org")
    inside = browser(mara)
    asked = browser().post("/login/forgotten/", {"email": "mara@EXAMPLE.org"})
    assert asked["Location"] == "/login/forgotten/sent/"
    assert "a link to set a new one is on its way" in shown(browser().get(asked["Location"])).text
    (sent,) = mail.outbox
    assert (sent.to, sent.subject) == (["mara@example.org"], "[ContextLab] Set a new password")
    client, path = browser(), path_in(sent.body)
    assert set_password(client, path, "short").status_code == 422
    assert set_password(client, path)["Location"] == "/login/reset/done/"
    assert inside.get("/account/").status_code == 403, "signed out everywhere"
    assert sign_in(browser(), "mara").status_code == 403
    assert sign_in(browser(), "mara", NEW).status_code == 302
    assert ("password.changed", "mara", "mara") in acts(team)
    assert "cannot be used" in shown(browser().get(path), 404).text, "it worked once"


@pytest.mark.parametrize("email", ["nobody@example.org", "local@example.org", "sso@example.org"])
def test_others_get_the_same_answer_and_no_mail(email: str, team: Team):
    with_address(local_user(), "local@example.org")
    with_address(member(team, "sso"), "sso@example.org")
    Membership.objects.filter(user__username="sso").update(by_sign_on=True)
    asked = browser().post("/login/forgotten/", {"email": email})
    assert (asked.status_code, asked["Location"]) == (302, "/login/forgotten/sent/")
    assert mail.outbox == []


def test_mails_to_one_address_are_limited(team: Team):
    with_address(member(team, "mara"), "mara@example.org")
    for status in (302, 302, 302, 429):
        asked = browser().post("/login/forgotten/", {"email": "mara@example.org"})
        assert asked.status_code == status
    assert "Too many requests" in shown(asked, 429).text
    assert len(mail.outbox) == 3


def test_without_a_mail_server_it_says_who_can_help(settings: Any, team: Team):
    settings.EMAIL_HOST = ""
    with_address(member(team, "mara"), "mara@example.org")
    page = shown(browser().get("/login/forgotten/")).text
    assert "An owner of your team can make a link" in page and "contextlab reset NAME" in page
    browser().post("/login/forgotten/", {"email": "mara@example.org"})
    assert mail.outbox == []


def test_an_owner_makes_a_link(team: Team):
    boss, mara = member(team, "boss"), member(team, "mara", "viewer")
    row = Membership.objects.get(user=mara)
    address = f"/settings/members/{row.pk}/link/"
    assert browser(mara).post(address).status_code == 403
    page = shown(browser(boss).post(address), 201)
    assert acts(team)[-1] == ("reset.made", "boss", "mara")
    assert set_password(browser(), path_in(page.text)).status_code == 302
    assert sign_in(browser(), "mara", NEW).status_code == 302


def test_no_owner_opens_a_team_of_others_with_a_link(team: Team):
    boss, mara = member(team, "boss"), member(team, "mara", "viewer")
    theirs = Team.objects.create(slug="theirs", name="Theirs")
    Membership.objects.create(team=theirs, user=mara, role="owner")
    row = Membership.objects.get(user=mara, team=team)
    page = shown(browser(boss).post(f"/settings/members/{row.pk}/link/"), 409)
    assert "mara is also in teams that you do not own." in page.text
    assert "/login/reset/" not in page.html


def test_the_command_prints_a_link(team: Team):
    member(team, "mara")
    out = StringIO()
    call_command("reset", "mara", "--url", "http://127.0.0.1", "--json", stdout=out)
    assert set_password(browser(), path_in(json.loads(out.getvalue())["url"])).status_code == 302
    assert acts(team)[0] == ("reset.made", "command line", "mara")
    with pytest.raises(CommandError, match="no account 'jo'"):
        call_command("reset", "jo")
    with pytest.raises(CommandError, match="has no password"):
        call_command("reset", local_user().username)


def test_a_new_address_counts_once_it_is_confirmed(team: Team):
    mara = with_address(member(team, "mara"), "old@example.org")
    client = browser(mara)
    saved = client.post("/account/", {"act": "profile", "name": "mara", "email": "New@example.org"})
    assert "link that was sent to new@example.org" in shown(client.get(saved["Location"])).text
    mara.refresh_from_db()
    assert mara.email == "old@example.org"
    (sent,) = mail.outbox
    assert sent.to == ["new@example.org"]
    path = path_in(sent.body)
    other = browser()
    assert "is the address of mara" in shown(other.get(path)).text, "mail servers open links"
    mara.refresh_from_db()
    assert mara.email == "old@example.org"
    assert "is confirmed" in shown(other.post(path)).text
    mara.refresh_from_db()
    assert mara.email == "new@example.org"
    rows = EmailAddress.objects.values_list("email", "verified")
    assert list(rows) == [("new@example.org", True)]
    assert "email.confirmed" in [act for act, _, _ in acts(team)]
    assert sign_in(browser(), "new@example.org").status_code == 302


def test_an_address_that_another_account_confirmed_stays_theirs(team: Team):
    mara = member(team, "mara")
    client = browser(mara)
    client.post("/account/", {"act": "profile", "name": "mara", "email": "jo@example.org"})
    path = path_in(mail.outbox[0].body)
    jo = person("jo", "jo@example.org")
    EmailAddress.objects.create(user=jo, email="jo@example.org", primary=True, verified=True)
    assert "cannot be used" in shown(browser().post(path)).text
    mara.refresh_from_db()
    assert mara.email == ""


def test_the_first_address_can_be_confirmed_later(team: Team):
    mara = member(team, "mara")
    EmailAddress.objects.create(user=mara, email="mara@example.org", primary=True)
    client = browser(mara)
    assert "mara@example.org is not confirmed" in shown(client.get("/account/")).text
    client.post("/account/", {"act": "confirm"})
    browser().post(path_in(mail.outbox[0].body))
    assert "is not confirmed" not in shown(client.get("/account/")).text


def test_addresses_of_existing_accounts_are_taken_over():
    person("mara", "Mara@example.org")
    person("jo")
    migration = import_module("sessions.migrations.0059_email_addresses")
    for _ in range(2):
        migration.add_addresses(apps, None)
    rows = EmailAddress.objects.values_list("user__username", "email", "primary", "verified")
    assert list(rows) == [("mara", "mara@example.org", True, False)]
    assert sign_in(browser(), "mara").status_code == 302, "with the password as it was"


def test_a_mail_says_where_the_link_leads(team: Team):
    with_address(member(team, "mara"), "mara@example.org")
    browser().post("/login/forgotten/", {"email": "mara@example.org"})
    assert PASSWORD not in mail.outbox[0].body
    assert "/login/reset/" in mail.outbox[0].body


def test_a_mail_written_later_has_the_path_of_the_server():
    found: Queue[str] = Queue()
    before = get_script_prefix()
    set_script_prefix("/lab/")
    try:
        later(lambda: found.put(reverse("account_reset_password_from_key_done")))
    finally:
        set_script_prefix(before)
    assert found.get(timeout=30) == "/lab/login/reset/done/"
