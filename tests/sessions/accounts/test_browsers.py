"""Browsers in which a person is signed in: listed, signed out one by one or all but this one."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from allauth.usersessions.models import UserSession
from django.test import Client
from django.utils import timezone

from sessions.actions.accounts.browsers import browser_name
from sessions.models import AuditEntry, Team
from tests.sessions.people import QUICK, browser, member, shown, sign_in

pytestmark = [pytest.mark.store, pytest.mark.django_db]
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
SAFARI = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like "
    "Gecko) Version/18.0 Mobile/15E148 Safari/604.1"
)


@pytest.fixture(autouse=True)
def quick(settings: Any) -> None:
    settings.PASSWORD_HASHERS = QUICK


@pytest.fixture
def team(db: None) -> Team:
    return Team.objects.create(slug="ours", name="Ours")


def signed_in(name: str, user_agent: str, ip: str = "10.0.0.1") -> Client:
    client = Client(SERVER_NAME="127.0.0.1", HTTP_USER_AGENT=user_agent, REMOTE_ADDR=ip)
    assert sign_in(client, name).status_code == 302
    return client


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        (FIREFOX, "Firefox on Linux"),
        (SAFARI, "Safari on iOS"),
        ("Mozilla/5.0 (Windows NT 10.0) Chrome/142.0 Safari/537.36 Edg/142.0", "Edge on Windows"),
        ("Mozilla/5.0 (Linux; Android 15) Chrome/142.0 Mobile Safari/537.36", "Chrome on Android"),
        ("curl/8.0", "Other browser"),
        ("", "Other browser"),
    ],
)
def test_a_browser_is_called_as_people_call_it(user_agent: str, name: str):
    assert browser_name(user_agent) == name


@pytest.mark.parametrize(
    ("ip", "address"), [("10.0.0.1", "10.0.0.1"), ("2001:db8::7", "2001:db8::"), ("::1", "–")]
)
def test_an_address_that_says_nothing_is_not_shown(team: Team, ip: str, address: str):
    member(team, "mara")
    page = shown(signed_in("mara", FIREFOX, ip).get("/account/"))
    assert re.search('data-name="address">(.*?)<', page.html)[1] == address


def test_one_browser_is_signed_out_from_another(team: Team):
    mara = member(team, "mara")
    here, phone = signed_in("mara", FIREFOX), signed_in("mara", SAFARI, "10.0.0.2")
    page = shown(here.get("/account/"))
    assert "Firefox on Linux this one" in page.text
    assert "Safari on iOS 10.0.0.2" in page.text
    row = UserSession.objects.get(user=mara, ip="10.0.0.2")
    assert here.post("/account/", {"act": "browser", "browser": row.pk}).status_code == 302
    assert phone.get("/account/").status_code == 403
    assert here.get("/account/").status_code == 200
    entry = AuditEntry.objects.get(team=team, action="browser.ended")
    assert (entry.actor, entry.detail) == ("mara", {"browser": "Safari on iOS", "of": "10.0.0.2"})
    saved = here.post("/account/", {"act": "browser", "browser": row.pk})
    assert "signed out before" in shown(here.get(saved["Location"])).text


def test_the_browser_of_another_person_is_not_signed_out(team: Team):
    member(team, "mara")
    jo = member(team, "jo")
    here, theirs = signed_in("mara", FIREFOX), signed_in("jo", SAFARI)
    row = UserSession.objects.get(user=jo)
    here.post("/account/", {"act": "browser", "browser": row.pk})
    assert theirs.get("/account/").status_code == 200
    here.post("/account/", {"act": "browsers"})
    assert theirs.get("/account/").status_code == 200


def test_all_others_are_signed_out_listed_or_not(team: Team):
    mara = member(team, "mara")
    here, phone, old = signed_in("mara", FIREFOX), signed_in("mara", SAFARI), browser(mara)
    UserSession.objects.filter(session_key=old.session.session_key).delete()  # from before
    saved = here.post("/account/", {"act": "browsers"})
    assert "2 other browsers are signed out." in shown(here.get(saved["Location"])).text
    assert [one.get("/account/").status_code for one in (here, phone, old)] == [200, 403, 403]
    assert AuditEntry.objects.get(team=team, action="browser.ended").detail == {"others": 2}


def test_a_browser_is_seen_every_ten_minutes(team: Team, monkeypatch: pytest.MonkeyPatch):
    mara = member(team, "mara")
    here = signed_in("mara", FIREFOX)
    first = UserSession.objects.get(user=mara).last_seen_at
    here.get("/account/")
    assert UserSession.objects.get(user=mara).last_seen_at == first
    monkeypatch.setattr(timezone, "now", lambda: first + timedelta(minutes=11))
    here.get("/account/", REMOTE_ADDR="10.0.0.9")
    row = UserSession.objects.get(user=mara)
    assert (row.last_seen_at - first, row.ip) == (timedelta(minutes=11), "10.0.0.9")


def test_a_changed_password_leaves_one_browser_listed(team: Team):
    mara = member(team, "mara")
    here = signed_in("mara", FIREFOX)
    signed_in("mara", SAFARI)
    new = "harbour-lantern-7"
    asked = {"oldpassword": "lantern-ferry-42", "password1": new, "password2": new}
    here.post("/account/", {"act": "password", **asked})
    shown(here.get("/account/"))
    (row,) = UserSession.objects.filter(user=mara)
    assert row.session_key == here.session.session_key
