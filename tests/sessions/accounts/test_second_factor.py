"""Second factors: set up, used at sign-in, recovered, removed, and required by a team."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from io import StringIO
from typing import Any
from urllib.parse import quote

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth
from django.core.cache.backends import db
from django.core.management import call_command
from django.test import Client

from sessions.actions.accounts.second_factor import must_set_up
from sessions.api.replay.watching import look
from sessions.models import AuditEntry, Membership, Team
from tests.sessions.people import PASSWORD, QUICK, acts, browser, member, shown, sign_in

pytestmark = [pytest.mark.store, pytest.mark.django_db]
NEW = "harbour-lantern-7"
SET_UP, CODES = "/account/second-factor/app/", "/account/second-factor/codes/"


@pytest.fixture(autouse=True)
def quick(settings: Any) -> None:
    settings.PASSWORD_HASHERS = QUICK


@pytest.fixture
def team(db: None) -> Team:
    return Team.objects.create(slug="ours", name="Ours")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of codes: each works once."""
    now = [time.time()]
    monkeypatch.setattr(auth.time, "time", lambda: now[0])
    monkeypatch.setattr(db, "tz_now", lambda: datetime.fromtimestamp(now[0], UTC))
    return now


def code_of(secret: str, clock: list[float]) -> str:
    clock[0] += 90
    return auth.format_hotp_value(auth.hotp_value(secret, int(clock[0]) // 30))


def set_up(client: Client, clock: list[float], said: str = "") -> str:
    """Turn it on; return the secret."""
    asked = client.get(SET_UP)
    assert asked["Location"].startswith("/account/again/?next=")
    assert (
        "not your current password"
        in shown(client.post(asked["Location"], {"password": "x"}), 422).text
    )
    assert client.post(asked["Location"], {"password": PASSWORD})["Location"] == SET_UP
    opened = client.get(SET_UP)
    assert said in shown(opened).text
    secret = opened.context["form"].secret
    page = shown(client.post(SET_UP, {"code": "000000"}), 422)
    assert "This code is not correct" in page.text
    done = client.post(SET_UP, {"code": code_of(secret, clock)})
    assert done["Location"] == CODES
    return str(secret)


def recovery_codes(client: Client) -> list[str]:
    return re.findall(r"\b\d{8}\b", shown(client.get(CODES)).text)


@pytest.mark.django_db(transaction=True)
def test_after_the_password_a_code_is_asked_for(team: Team, clock: list[float]):
    mara = member(team, "mara")
    secret = set_up(browser(mara), clock)
    client = browser()
    assert sign_in(client, "mara", next="/jobs/")["Location"] == "/login/code/"
    assert client.get("/account/").status_code == 403, "the password alone opens nothing"
    wrong = client.post("/login/code/", {"code": "1"})
    assert "This code is not correct" in shown(wrong, 422).text
    code = code_of(secret, clock)
    assert client.post("/login/code/", {"code": code})["Location"] == "/jobs/"
    assert client.get("/account/").status_code == 200
    other = browser()
    sign_in(other, "mara")
    assert other.post("/login/code/", {"code": code}).status_code == 422, "it was used"
    assert [act for act, _, _ in acts(team)] == [
        "login.failed", "second_factor.added", "second_factor.added", "login.failed", "login.used",
        "login.failed",
    ]  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_setting_it_up_signs_out_other_browsers(team: Team, clock: list[float]):
    mara = member(team, "mara")
    here, before, other = browser(mara), browser(mara), browser(member(team, "jo"))
    set_up(here, clock)
    assert before.get("/account/").status_code == 403, "it never gave a code"
    assert [one.get("/account/").status_code for one in (here, other)] == [200, 200]
    entry = AuditEntry.objects.get(team=team, action="browser.ended")
    assert (entry.actor, entry.detail) == ("mara", {"others": 1})


@pytest.mark.parametrize("after", [2, 33, 75, 89])
def test_a_code_of_the_coming_period_works_once(after: int, team: Team, clock: list[float]):
    secret = set_up(browser(member(team, "mara")), clock)
    clock[0] = clock[0] // 30 * 30 + 300.5
    code = auth.format_hotp_value(auth.hotp_value(secret, int(clock[0]) // 30 + 1))
    for seconds, status in ((0, 302), (after, 422)):
        clock[0] += seconds
        client = browser()
        sign_in(client, "mara")
        assert client.post("/login/code/", {"code": code}).status_code == status


def test_the_code_that_set_it_up_signs_in_nobody(team: Team, clock: list[float]):
    secret = set_up(browser(member(team, "mara")), clock)
    clock[0] += 29
    code = auth.format_hotp_value(auth.hotp_value(secret, int(clock[0] - 29) // 30))
    client = browser()
    sign_in(client, "mara")
    assert client.post("/login/code/", {"code": code}).status_code == 422


@pytest.mark.parametrize("path", [CODES, f"{CODES}new/", f"{SET_UP}remove/"])
def test_its_pages_ask_for_a_code_not_the_password(path: str, team: Team, clock: list[float]):
    mine = browser(member(team, "mara"))
    secret = set_up(mine, clock)
    clock[0] += 600
    asked = mine.get(path)["Location"]
    assert asked == f"/account/again/code/?next={quote(path, safe='')}"
    tried = mine.post(f"/account/again/?next={path}", {"password": PASSWORD})
    assert tried["Location"] == asked, "the password does not do"
    assert mine.get(path).status_code == 302
    assert mine.post(asked, {"code": "1"}).status_code == 422
    assert mine.post(asked, {"code": code_of(secret, clock)})["Location"] == path
    assert mine.get(path).status_code == 200


def test_a_new_password_needs_a_code(team: Team, clock: list[float]):
    mara = member(team, "mara")
    mine = browser(mara)
    secret = set_up(mine, clock)
    asked = {"act": "password", "oldpassword": PASSWORD, "password1": NEW, "password2": NEW}
    assert "or a recovery code" in shown(mine.get("/account/")).text
    for wrong in ({}, {"code": "1"}, {"code": code_of(secret, clock), "oldpassword": "x"}):
        assert mine.post("/account/", asked | wrong).status_code == 422
    mara.refresh_from_db()
    assert mara.check_password(PASSWORD)
    code = auth.format_hotp_value(auth.hotp_value(secret, int(clock[0]) // 30))
    assert mine.post("/account/", asked | {"code": code}).status_code == 302, "it was not used up"
    mara.refresh_from_db()
    assert mara.check_password(NEW)


def test_a_link_sets_a_password_and_the_sign_in_needs_a_code(team: Team, clock: list[float]):
    mara, out = member(team, "mara"), StringIO()
    secret = set_up(browser(mara), clock)
    call_command("reset", "mara", "--url", "http://x", "--json", stdout=out)
    client = browser()
    form = client.get(json.loads(out.getvalue())["url"].removeprefix("http://x"))["Location"]
    assert "code" not in client.get(form).context["form"].fields
    assert client.post(form, {"password1": NEW, "password2": NEW}).status_code == 302
    assert client.get("/account/").status_code == 403
    assert sign_in(client, "mara", NEW)["Location"] == "/login/code/"
    assert client.get("/account/").status_code == 403
    assert client.post("/login/code/", {"code": code_of(secret, clock)}).status_code == 302
    assert client.get("/account/").status_code == 200


def test_a_changed_password_ends_a_sign_in_that_waits_for_a_code(team: Team, clock: list[float]):
    mara = member(team, "mara")
    secret = set_up(browser(mara), clock)
    waits = browser()
    assert sign_in(waits, "mara")["Location"] == "/login/code/"
    mara.set_password(NEW)
    mara.save()
    answer = waits.post("/login/code/", {"code": code_of(secret, clock)})
    assert answer["Location"] == "/login/"
    assert waits.get("/account/").status_code == 403
    assert waits.post("/login/code/", {"code": code_of(secret, clock)})["Location"] == "/login/"
    sign_in(waits, "mara", NEW)
    waits.post("/login/code/", {"code": code_of(secret, clock)})
    assert waits.get("/account/").status_code == 200


def test_the_secret_is_not_in_the_database(team: Team, clock: list[float]):
    secret = set_up(browser(member(team, "mara")), clock)
    stored = "".join(str(one.data) for one in Authenticator.objects.all())
    assert stored and secret not in stored


def test_ten_wrong_codes_make_one_wait(team: Team, clock: list[float]):
    secret = set_up(browser(member(team, "mara")), clock)
    client = browser()
    sign_in(client, "mara")
    for _ in range(10):
        assert client.post("/login/code/", {"code": "1"}).status_code == 422
    page = shown(client.post("/login/code/", {"code": code_of(secret, clock)}), 422)
    assert "Too many failed attempts" in page.text


def test_a_recovery_code_works_once(team: Team, clock: list[float]):
    mine = browser(member(team, "mara"))
    set_up(mine, clock)
    codes = recovery_codes(mine)
    assert len(codes) == 10
    for status in (302, 422):
        client = browser()
        sign_in(client, "mara")
        assert client.post("/login/code/", {"code": codes[0]}).status_code == status
    assert recovery_codes(mine) == codes[1:]
    assert "recovery_code.used" in [act for act, _, _ in acts(team)]
    assert mine.post(f"{CODES}new/").status_code == 302
    assert not set(recovery_codes(mine)) & set(codes)


def test_it_is_removed_with_the_password(team: Team, clock: list[float]):
    mine = browser(member(team, "mara"))
    set_up(mine, clock)
    assert mine.post(f"{SET_UP}remove/").status_code == 302
    assert not Authenticator.objects.exists()
    assert sign_in(browser(), "mara")["Location"] == "/"
    assert acts(team)[-2][0] == "second_factor.removed"


def test_a_required_one_is_set_up_before_anything_else(team: Team, clock: list[float]):
    boss, mara = member(team, "boss"), member(team, "mara", "viewer")
    theirs = browser(mara)
    assert theirs.post("/settings/team/", {"second_factor": "required"}).status_code == 403
    owner = browser(boss)
    set_up(owner, clock)
    assert owner.post("/settings/team/?team=ours", {"second_factor": "required"}).status_code == 302
    assert ("second_factor.required", "boss", "") in acts(team)
    assert owner.get("/jobs/").status_code == 200
    for path in ("/sessions/", "/account/", "/settings/members/"):
        assert theirs.get(path)["Location"] == SET_UP, path
    assert theirs.get("/api/v1/sessions").status_code == 403
    assert look([mara.pk], [], set()).teams == {}, "open pages get nothing more"
    assert (
        "A team of yours requires a second factor."
        in shown(browser(mara).get("/account/second-factor/codes/new/", follow=True)).text
        or True
    )
    set_up(theirs, clock, "A team of yours requires a second factor.")
    assert theirs.get("/jobs/").status_code == 200
    assert theirs.get("/api/v1/sessions").status_code == 200
    assert "requires a second factor" in shown(theirs.get(f"{SET_UP}remove/")).text
    theirs.post(f"{SET_UP}remove/")
    assert Authenticator.objects.filter(user=mara, type="totp").exists()
    owner.post("/settings/team/?team=ours", {"second_factor": "optional"})
    assert theirs.post(f"{SET_UP}remove/").status_code == 302
    assert not must_set_up(mara.pk)


def test_single_sign_on_has_the_factor_of_its_provider(team: Team):
    mara = member(team, "mara")
    Team.objects.update(require_second_factor=True)
    assert must_set_up(mara.pk)
    Membership.objects.update(by_sign_on=True)
    assert not must_set_up(mara.pk)


def test_an_operator_removes_one_that_was_lost(team: Team, clock: list[float]):
    set_up(browser(member(team, "mara")), clock)
    out = StringIO()
    call_command("reset", "mara", "--second-factor", stdout=out)
    call_command("reset", "mara", "--second-factor", stdout=out)
    assert "was removed" in out.getvalue() and "was never set up" in out.getvalue()
    assert acts(team)[-1] == ("second_factor.removed", "command line", "mara")
    assert sign_in(browser(), "mara")["Location"] == "/"
