"""Signing in: by name or e-mail, refused alike, a few times only, and never led astray."""

from __future__ import annotations

import base64
import logging
import re
import threading
import time
from hashlib import sha256
from typing import Any

import pytest
from allauth.account import adapter as allauth_adapter
from allauth.core.internal import ratelimit
from django.contrib.auth import hashers
from django.core.cache import cache, caches
from django.db import connection
from django.test import Client
from django.utils import timezone

from contextlab.operations.logs import OneLine
from sessions.actions.accounts import logins
from sessions.actions.accounts.teams import local_team, local_user
from sessions.models import Attempts, Team
from tests.sessions.people import PASSWORD, QUICK, browser, member, person, shown, sign_in

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def quick(settings: Any) -> None:
    settings.PASSWORD_HASHERS = QUICK


@pytest.fixture
def team(db: None) -> Team:
    return Team.objects.create(slug="ours", name="Ours")


@pytest.mark.parametrize("typed", ["mara", "Mara", "mara@example.org", "MARA@example.org"])
def test_a_person_signs_in_by_name_or_e_mail(typed: str, team: Team):
    user = member(team, "mara")
    user.email = "mara@example.org"
    user.save()
    client = browser()
    answer = sign_in(client, typed)
    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert client.get("/sessions/", follow=True).status_code == 200


def test_a_refusal_stands_above_all_ways_to_sign_in():
    person("mara")
    html = shown(sign_in(browser(), "mara", "wrong"), 403).html
    assert html.count('role="alert"') == 1
    assert html.index('role="alert"') < html.index('aria-label="Name and password"')


@pytest.mark.parametrize(
    ("name", "password"),
    [("mara", "wrong"), ("missing", PASSWORD), ("", ""), ("local", ""), ("gone", PASSWORD),
     ("twice@example.org", PASSWORD), ("mara\x00", PASSWORD), ("mara", "x" * 5000)],
)  # fmt: skip
def test_whoever_cannot_is_refused_alike(name: str, password: str):
    person("mara")
    gone = person("gone")
    gone.is_active = False
    gone.save()
    person("one", "twice@example.org")
    person("two", "twice@example.org")
    local_user()
    page = shown(sign_in(browser(), name, password), 403)
    assert "Incorrect name or password." in page.text
    assert password not in page.html or not password


@pytest.mark.fault("H8")
def test_an_unknown_name_costs_a_hash_like_a_known_one(monkeypatch: pytest.MonkeyPatch):
    hashed: list[str] = []
    encode = hashers.MD5PasswordHasher.encode

    def counted(self: Any, password: str, salt: str) -> str:
        hashed.append(password)
        return encode(self, password, salt)

    person("mara", "mara@example.org")
    monkeypatch.setattr(hashers.MD5PasswordHasher, "encode", counted)
    for name in ("mara", "missing", "mara@example.org", "none@example.org"):
        hashed.clear()
        assert sign_in(browser(), name, "wrong").status_code == 403
        assert hashed == ["wrong"], name


@pytest.mark.parametrize(
    ("wanted", "led"),
    [("/jobs/?team=ours", "/jobs/?team=ours"), ("https://elsewhere.example/", "/"),
     ("//elsewhere.example/", "/"), ("javascript:alert(1)", "/"), ("/\\elsewhere.example", "/"),
     ("sessions", "/"), ("", "/")],
)  # fmt: skip
def test_one_is_led_on_to_places_of_ours_only(wanted: str, led: str):
    person("mara")
    client = browser()
    assert sign_in(client, "mara", next=wanted)["Location"] == led
    assert client.get("/login/", {"next": wanted})["Location"] == led, "signed in already"


def test_the_way_in_is_shown_where_one_was_stopped(team: Team):
    local_user()
    alone = shown(browser().get("/jobs/"), 403)
    assert "Name and password" not in alone.html
    assert "contextlab login" in alone.text
    member(team, "mara")
    client = browser()
    page = shown(client.get("/jobs/?cursor=1"), 403)
    assert 'value="/jobs/?cursor=1"' in page.html
    assert "contextlab login" not in page.text, "the printed address is off"
    assert 'name="next"' not in client.post("/imports/").content.decode(), "no form is sent twice"
    assert client.get("/jobs/")["Cache-Control"].count("no-store")


def test_the_key_of_the_browser_is_another_after_signing_in():
    person("mara")
    client = browser()
    given = client.session  # someone else's, put into this browser
    given.save()
    before = given.session_key
    client.cookies["contextlab_session"] = before
    sign_in(client, "mara")
    assert client.session.session_key != before
    assert not client.session.exists(before)


@pytest.mark.fault("H6")
def test_the_form_needs_its_token():
    person("mara")
    strict = Client(SERVER_NAME="127.0.0.1", enforce_csrf_checks=True)
    assert "too old" in shown(sign_in(strict, "mara"), 403).text


def attempt(name: str, password: str, ip: str, client: Client | None = None) -> int:
    """The status of an attempt from an address."""
    asked = {"login": name, "password": password}
    return (client or browser()).post("/login/", asked, REMOTE_ADDR=ip).status_code


def fail(times: int, name: str, ip: str, client: Client | None = None) -> None:
    for _ in range(times):
        assert attempt(name, "wrong", ip, client) == 403


def test_wrong_passwords_from_one_address_lock_the_name_there_only():
    person("mara", "mara@example.org")
    for number in range(10):
        fail(1, ("MARA", "mara", "mara@example.org")[number % 3], "10.0.0.1")
    assert attempt("mara", PASSWORD, "10.0.0.1") == 429
    assert attempt("mara", PASSWORD, "10.0.0.2") == 302
    fail(1, "jo", "10.0.0.1")


def test_one_customer_has_one_ipv6_network():
    person("mara")
    for number in range(10):
        fail(1, "mara", f"2001:db8:1:2::{number:x}")
    assert attempt("mara", PASSWORD, "2001:db8:1:2:ffff::1") == 429
    assert attempt("mara", PASSWORD, "2001:db8:1:3::1") == 302


def test_many_addresses_cannot_lock_out_a_browser_that_signed_in_before():
    person("mara")
    mine = browser()
    assert sign_in(mine, "mara").status_code == 302
    mine.post("/logout/")
    for number in range(100):
        fail(1, "mara", f"10.0.{number % 12}.{number}")
    assert attempt("mara", PASSWORD, "10.9.9.9") == 429
    assert sign_in(browser(), "mara").status_code == 429
    assert sign_in(mine, "mara", "wrong").status_code == 403, "it is heard"
    assert sign_in(mine, "mara").status_code == 302


def test_a_known_browser_has_ten_attempts_for_its_own_account():
    person("mara")
    person("jo")
    mine = browser()
    sign_in(mine, "mara")
    mine.post("/logout/")
    fail(10, "mara", "10.0.0.1", mine)
    assert attempt("mara", PASSWORD, "10.0.0.1", mine) == 429
    fail(10, "jo", "10.0.0.1", mine)
    assert attempt("jo", PASSWORD, "10.0.0.1") == 429, "of another account it says nothing"
    assert attempt("mara", PASSWORD, "10.0.0.1") == 302, "as from any address"


@pytest.mark.parametrize(
    "cookie",
    ["", "x", "a:b:c", logins.signing.dumps(["id", "name"])],
    ids=["empty", "text", "unsigned", "signed"],
)
def test_a_cookie_of_others_makes_no_browser_known(cookie: str):
    assert logins.known_browser(cookie, "name") == ""


def test_a_name_that_is_none_waits_just_so():
    fail(10, "missing", "10.0.0.1")
    assert attempt("missing", "wrong", "10.0.0.1") == 429


def test_an_address_has_thirty_attempts_whatever_the_name():
    person("mara")
    for number in range(30):
        fail(1, f"name{number}", "10.0.0.1")
    assert attempt("mara", PASSWORD, "10.0.0.1") == 429
    assert attempt("mara", PASSWORD, "10.0.0.2") == 302


def test_refused_attempts_store_nothing():
    for number in range(30):
        fail(1, f"name{number}", "10.0.0.1")
    stored = Attempts.objects.count()
    for number in range(5):
        assert attempt(f"other{number}", "wrong", "10.0.0.1") == 429
    assert Attempts.objects.count() == stored


def test_many_counts_remove_no_other(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(caches["default"], "_max_entries", 5)
    cache.set("gone", "y", timeout=-1)
    for number in range(10):
        fail(1, "mara", "10.0.0.1")
        fail(1, f"name{number}", f"10.0.1.{number}")
    assert attempt("mara", "wrong", "10.0.0.1") == 429
    assert not Attempts.objects.filter(expires__lt=timezone.now()).exists(), "those that expired do"


def test_it_says_when_the_next_attempt_is_heard(monkeypatch: pytest.MonkeyPatch):
    person("mara")
    fail(10, "mara", "127.0.0.1")
    answer = sign_in(browser(), "mara")
    assert "Try again in 15 minutes." in shown(answer, 429).text
    assert answer["Retry-After"] == "900"
    later = time.time() + 901
    monkeypatch.setattr(ratelimit.time, "time", lambda: later)
    assert sign_in(browser(), "mara").status_code == 302, "refused unheard is no more"


def test_who_got_in_has_all_attempts_again():
    person("mara")
    fail(9, "mara", "127.0.0.1")
    assert sign_in(browser(), "mara").status_code == 302
    fail(10, "mara", "127.0.0.1")


def test_what_is_typed_as_a_name_is_not_kept():
    fail(1, "my-secret-password", "10.0.0.1")
    rows = list(Attempts.objects.values_list("cache_key", "value"))
    assert rows
    typed = sha256(b"my-secret-password 10.0.0.1").hexdigest()
    for key, value in rows:
        assert re.fullmatch("[0-9a-f]{64}", key)
        assert key != typed
        assert b"secret" not in base64.b64decode(value)


@pytest.mark.django_db(transaction=True)
def test_many_at_once_do_not_slip_through(monkeypatch: pytest.MonkeyPatch):
    """An attempt counts before its result is known."""
    asked: list[str] = []
    monkeypatch.setattr(allauth_adapter, "authenticate", lambda *_, **given: asked.append("x"))
    together = threading.Barrier(20)

    def one() -> None:
        together.wait()
        try:
            attempt("mara", "wrong", "10.0.0.1")
        finally:
            connection.close()

    threads = [threading.Thread(target=one) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0 < len(asked) <= 10


def test_behind_a_proxy_everybody_has_an_address_of_his_own(settings: Any):
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    person("mara")
    for number in range(30):
        said = {"x-forwarded-for": f"10.6.6.{number}, 10.0.0.1"}
        asked = {"login": f"x{number}", "password": "y"}
        assert browser().post("/login/", asked, headers=said).status_code == 403
    asked = {"login": "mara", "password": PASSWORD}
    for said, status in (("10.0.0.1", 429), ("10.0.0.1, 10.0.0.2", 302)):
        answer = browser().post("/login/", asked, headers={"x-forwarded-for": said})
        assert answer.status_code == status


@pytest.mark.parametrize(
    "path",
    ["/invitations/s3cret/", "/login/s3cret/", "/login/?next=/invitations/s3cret/",
     "/login/?next=%2Finvitations%2Fs3cret%2F", "/lab/login/s3cret",
     "/login/reset/1/d-s3cret/", "/login/confirm/s3cret:x:y/ 404"],
)  # fmt: skip
def test_credentials_are_not_in_the_log(path: str):
    said = logging.LogRecord("django", 30, "", 1, "Not Found: %s", (path,), None)
    line = OneLine().format(said)
    assert "s3cret" not in line
    assert "/login/" in line or "invitations" in line


def test_signing_out_ends_it():
    local_team()
    client = browser(local_user())
    assert client.post("/logout/")["Location"] == "/"
    assert client.get("/jobs/").status_code == 403
