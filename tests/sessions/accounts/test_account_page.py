"""The account page: name, password, keyboard, teams."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.http import HttpResponse
from django.test import Client

from sessions.actions.accounts.audit import COMMAND
from sessions.actions.accounts.members import leave
from sessions.actions.accounts.teams import local_team, local_user
from sessions.models import Membership, Session, Team
from tests.sessions.people import PASSWORD, QUICK, acts, browser, member, person, shown, sign_in

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def quick(settings: Any) -> None:
    settings.PASSWORD_HASHERS = QUICK


@pytest.fixture
def team(db: None) -> Team:
    return Team.objects.create(slug="ours", name="Ours")


def local_session() -> Session:
    return Session.objects.create(team=local_team(), external_id="s")


def act(client: Client, what: str, **given: str) -> HttpResponse:
    return client.post("/account/", {"act": what, **given})


def test_a_name_and_an_e_mail_are_changed(team: Team):
    user = member(team, "mara")
    client = browser(user)
    saved = act(client, "profile", name="Mara.K", email="mara@example.org")
    assert "email saved" in shown(client.get(saved["Location"])).text
    user.refresh_from_db()
    assert (user.username, user.email) == ("Mara.K", "mara@example.org")


@pytest.mark.parametrize(
    ("name", "email", "said"),
    [("JO", "", "taken"), ("Local", "", "taken"), ("a b", "", "without spaces"),
     ("m@ra", "", "cannot contain @"), ("", "", "required"),
     ("mara", "jo@EXAMPLE.org", "Another account"),
     ("mara", "nonsense", "valid email"), ("x" * 151, "", "at most 150")],
)  # fmt: skip
def test_what_cannot_be_had_is_said_beside_its_field(name: str, email: str, said: str, team: Team):
    person("jo", "jo@example.org")
    user = member(team, "mara")
    page = shown(act(browser(user), "profile", name=name, email=email), 422)
    assert said in page.text
    assert page.html.count("problem-text") == 1
    user.refresh_from_db()
    assert (user.username, user.email) == ("mara", "")


def test_the_local_user_keeps_the_name_by_which_the_printed_address_finds_him():
    client = browser(local_user())
    act(client, "profile", name="boss", email="me@example.org")
    assert (local_user().username, local_user().email) == ("local", "me@example.org")


def test_a_changed_password_ends_the_other_browsers(team: Team):
    member(team, "mara")
    here, there = browser(), browser()
    for client in (here, there):
        sign_in(client, "mara")
    new = "harbour-lantern-7"
    saved = act(here, "password", oldpassword=PASSWORD, password1=new, password2=new)
    assert "signed out" in shown(here.get(saved["Location"])).text
    assert there.get("/account/").status_code == 403
    assert sign_in(browser(), "mara").status_code == 403
    assert sign_in(browser(), "mara", new).status_code == 302


@pytest.mark.parametrize(
    ("current", "new", "again", "said"),
    [("wrong", "harbour-lantern-7", "harbour-lantern-7", "not your current password"),
     (PASSWORD, "short", "short", "too short"),
     (PASSWORD, "mara.kovacs1", "mara.kovacs1", "similar"),
     (PASSWORD, "password1", "password1", "common"),
     (PASSWORD, "9081726354", "9081726354", "numeric"),
     (PASSWORD, "harbour-lantern-7", "harbour-lantern-8", "same password each time")],
)  # fmt: skip
def test_a_password_that_will_not_do_changes_nothing(
    current: str, new: str, again: str, said: str, team: Team
):
    client = browser(member(team, "mara.kovacs"))
    page = shown(act(client, "password", oldpassword=current, password1=new, password2=again), 422)
    assert said in page.text
    assert f'value="{new}"' not in page.html
    assert sign_in(browser(), "mara.kovacs").status_code == 302


def test_password_attempts_in_an_open_browser_are_limited(team: Team):
    client = browser(member(team, "mara"))
    new = "harbour-lantern-7"
    for _ in range(10):
        act(client, "password", oldpassword="guess", password1=new, password2=new)
    page = shown(act(client, "password", oldpassword=PASSWORD, password1=new, password2=new), 422)
    assert "15 minutes" in page.text


def test_who_has_no_password_sets_one_without_the_old():
    client = browser(local_user())
    new = "harbour-lantern-7"
    assert act(client, "password", password1=new, password2=new).status_code == 302
    assert sign_in(browser(), "local", new).status_code == 302


def test_shortcuts_are_switched_off_for_a_browser(team: Team):
    client = browser(member(team, "mara"))
    assert 'data-keys="off"' not in client.get("/account/").content.decode()
    act(client, "keyboard", keys="off")
    assert 'data-keys="off"' in client.get("/jobs/").content.decode()
    act(client, "keyboard", keys="on")
    assert 'data-keys="off"' not in client.get("/jobs/").content.decode()


def test_there_are_no_other_acts(team: Team):
    assert act(browser(member(team, "mara")), "promote").status_code == 400


def test_anybody_makes_a_team_and_owns_it(team: Team):
    user = member(team, "mara", "viewer")
    client = browser(user)
    made = act(client, "team", name="Night Shift")
    assert made["Location"] == "/settings/members/?team=night-shift"
    assert "Night Shift" in shown(client.get(made["Location"])).text
    its = Team.objects.get(slug="night-shift")
    assert Membership.objects.get(team=its).user == user
    assert acts(its) == [("team.made", "mara", "Night Shift")]
    act(client, "team", name="Night Shift")
    assert Team.objects.filter(name="Night Shift").values("slug").distinct().count() == 2
    assert act(client, "team", name="夜").status_code == 302, "a slug is made up"
    assert "required" in shown(act(client, "team", name="  "), 422).text


def test_a_team_is_left_but_not_by_its_last_owner(team: Team):
    user, other = member(team, "mara"), member(team, "jo", "editor")
    client = browser(user)
    page = shown(client.post("/account/teams/ours/leave/"), 409)
    assert "A team needs an owner." in page.text
    Membership.objects.filter(user=other).update(role="owner")
    assert "Leave Ours for good" in shown(client.get("/account/")).text, "it is asked once more"
    assert client.post("/account/teams/ours/leave/").status_code == 302
    assert "You have left Ours." in shown(client.get("/account/")).text
    assert "You have left" not in shown(client.get("/account/")).text, "it is said once"
    assert not Membership.objects.filter(user=user).exists()
    assert acts(team) == [("member.left", "mara", "mara")]
    assert client.post("/account/teams/ours/leave/").status_code == 404


def test_who_is_in_no_team_is_led_to_his_account(team: Team):
    user = member(team, "mara", "viewer")
    leave(Membership.objects.get(user=user), COMMAND)
    client = browser(user)
    assert client.get("/")["Location"] == "/account/"
    assert "You are in no team" in shown(client.get("/account/")).text
    for page in ("/sessions/", "/settings/members/", "/jobs/"):
        gone = shown(client.get(page), 404).text
        assert "You are in no team (any more)" in gone and "Ours" not in gone
    made = local_session()
    foreign, none = (shown(client.get(f"/sessions/{pk}/"), 404).text for pk in (made.pk, uuid4()))
    assert foreign == none


def test_a_foreign_id_looks_like_a_missing_one(team: Team):
    client = browser(member(team, "mara", "viewer"))
    made = local_session()
    foreign, none = (shown(client.get(f"/sessions/{pk}/"), 404).text for pk in (made.pk, uuid4()))
    assert foreign == none
    assert "There is nothing at this address" in none and "You are in Ours." in none


def test_a_refusal_names_the_role_those_it_takes_and_who_gives_them(team: Team):
    member(team, "boss")
    member(Team.objects.create(slug="theirs", name="Theirs"), "stranger")
    page = shown(browser(member(team, "mara", "viewer")).get("/settings/audit/"), 403)
    assert (
        "mara, viewer of Ours. To read the audit log takes the role owner or editor." in page.text
    )
    assert "boss, owner of the team, can give you another role" in page.text
    assert "stranger" not in page.text


@pytest.mark.parametrize(
    ("page", "deed"),
    [("masking", "set masking rules, or what is shown masked"), ("data", "erase data, set retent")],
)
def test_a_refusal_says_what_the_page_is_for(team: Team, page: str, deed: str):
    seen = shown(browser(member(team, "mara", "viewer")).get(f"/settings/{page}/"), 403)
    assert f"viewer of Ours. To {deed}" in seen.text


def test_a_refusal_names_only_owners_who_can_sign_in(team: Team):
    member(team, "boss")
    local = local_user()
    Membership.objects.create(user=local, team=team, role="owner")
    client = browser(member(team, "mara", "viewer"))

    def owners() -> str:
        text = shown(client.get("/settings/audit/"), 403).text
        return text.partition("owner or editor.")[2].partition(", owner")[0].strip()

    assert owners() == "boss"
    local.set_password("a long enough secret")
    local.save()
    assert owners() == "boss or local"


def test_the_other_team_of_a_page_is_one_click_away(team: Team):
    user = member(team, "mara")
    Membership.objects.create(user=user, team=local_team(), role="viewer")
    client = browser(user)
    page = shown(client.get("/settings/members/?team=ours"))
    assert page.links["Local"] == "/settings/members/?team=local"
    assert "Local" in shown(client.get("/settings/members/?team=local")).text
    assert shown(client.get("/jobs/")).links["Ours"] == "/jobs/?team=ours", "a choice stays"
