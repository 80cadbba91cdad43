"""Keys have an owner, may expire, and end with the owner's membership unless taken over."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from sessions.actions.accounts import members
from sessions.actions.accounts.audit import COMMAND, person
from sessions.actions.accounts.keys import check_key, create_key, take_over
from sessions.models import AuditEntry, Key, Membership, Team
from tests.sessions.people import QUICK, acts, browser, member, shown
from tests.sessions.programs import Program, assert_problem

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def quick(settings: Any) -> None:
    settings.PASSWORD_HASHERS = QUICK


@pytest.fixture
def team(db: None) -> Team:
    return Team.objects.create(slug="ours", name="Ours")


def held(team: Team, name: str) -> Membership:
    return Membership.objects.get(team=team, user__username=name)


def test_the_person_who_makes_a_key_owns_it_and_a_command_has_no_owner(team: Team):
    mara = member(team, "mara")
    assert create_key(team, actor=person(mara))[0].owner == mara
    assert create_key(team)[0].owner is None


def test_a_key_works_until_it_expires(team: Team):
    soon = timezone.now() + timedelta(minutes=1)
    key, token = create_key(team, expires=soon)
    assert check_key(token)
    Key.objects.filter(pk=key.pk).update(expires=timezone.now())
    assert check_key(token) is None
    program = Program(team)
    program.token = token
    assert "expired" in assert_problem(program.ask("GET", "/sessions/x"), 401)["detail"]


@pytest.mark.parametrize("how", ["remove", "leave", "demote", "deactivate", "delete"])
def test_a_key_ends_with_what_its_owner_may(how: str, team: Team):
    member(team, "boss")
    mara = member(team, "mara", "editor")
    _, token = create_key(team, actor=person(mara))
    _, other = create_key(team)
    assert check_key(token)
    if how == "remove":
        members.remove(held(team, "mara"), COMMAND)
    elif how == "leave":
        members.leave(held(team, "mara"), person(mara))
    elif how == "demote":
        assert members.change_role(held(team, "mara"), "reviewer", COMMAND) == 1
    elif how == "deactivate":
        mara.is_active = False
        mara.save()
    else:
        mara.delete()
    assert check_key(token) is None
    assert check_key(other), "a key without owner stays"
    if how in ("remove", "leave", "demote"):
        assert acts(team)[-1][0] == "key.revoked"
        Membership.objects.filter(team=team, user=mara).delete()
        Membership.objects.create(team=team, user=mara, role="editor")
        assert check_key(token) is None, "it does not come back with the person"


def test_another_team_of_the_owner_keeps_its_keys(team: Team):
    mara = member(team, "mara")
    member(team, "boss")
    other = Team.objects.create(slug="other", name="Other")
    Membership.objects.create(team=other, user=mara, role="owner")
    _, token = create_key(other, actor=person(mara))
    members.remove(held(team, "mara"), COMMAND)
    assert check_key(token)


def test_a_key_that_was_taken_over_stays(team: Team):
    boss, mara = member(team, "boss"), member(team, "mara", "editor")
    key, token = create_key(team, "ci", actor=person(mara))
    take_over(key, boss, person(boss))
    members.remove(held(team, "mara"), COMMAND)
    assert check_key(token)
    assert ("key.taken", "boss", "ci") in acts(team)


def test_whoever_removes_a_member_may_take_their_keys_over(team: Team):
    boss, mara = member(team, "boss"), member(team, "mara", "editor")
    _, token = create_key(team, actor=person(mara))
    page = shown(browser(boss).get("/settings/members/"))
    assert "1 API key of mara ends too" in page.text
    address = f"/settings/members/{held(team, 'mara').pk}/remove/"
    assert browser(boss).post(address, {"keys": "on"}).status_code == 302
    found = check_key(token)
    assert found is not None and found.owner_id == boss.pk


def test_the_page_shows_owner_and_end_and_takes_over(team: Team):
    boss, mara = member(team, "boss"), member(team, "mara", "editor")
    made = browser(mara).post("/settings/keys/", {"name": "ci", "expires": "30"})
    assert made.status_code == 201
    key = Key.objects.get()
    assert key.expires is not None
    assert timedelta(29) < key.expires - timezone.now() < timedelta(31)
    page = shown(browser(boss).get("/settings/keys/"))
    assert "mara" in page.text and key.expires.strftime("%Y") in page.text
    assert browser(boss).post(f"/settings/keys/{key.prefix}/take/").status_code == 302
    key.refresh_from_db()
    assert key.owner == boss
    viewer = browser(member(team, "vera", "viewer"))
    assert viewer.post(f"/settings/keys/{key.prefix}/take/").status_code == 403
    Key.objects.update(expires=timezone.now())
    assert "expired" in shown(browser(boss).get("/settings/keys/")).text


def test_a_service_account_stays_when_whoever_made_it_leaves(team: Team):
    boss, mara = member(team, "boss"), member(team, "mara")
    made = browser(mara).post(
        "/settings/keys/", {"name": "ci", "of": "team", "scope": "read", "expires": "90"},
        headers={"accept": "application/json"},
    ).json()  # fmt: skip
    entry = AuditEntry.objects.get(action="key.made")
    assert (entry.actor, entry.detail["service_account"]) == ("mara", True)
    members.remove(held(team, "mara"), COMMAND)
    key = check_key(made["token"])
    assert key is not None and (key.owner, key.scopes) == (None, ["read"])
    page = shown(browser(boss).get("/settings/keys/"))
    assert "service account" in page.text and f"clk_{key.prefix}…" in page.text


def test_only_owners_decide_what_belongs_to_the_team(team: Team):
    boss, mara = member(team, "boss"), member(team, "mara", "editor")
    hers = browser(mara)
    assert "service account)" not in shown(hers.get("/settings/keys/")).text
    assert hers.post("/settings/keys/", {"of": "team"}).status_code == 403
    key, token = create_key(team, "ci", actor=person(mara))
    assert hers.post(f"/settings/keys/{key.prefix}/give/").status_code == 403
    assert browser(boss).post(f"/settings/keys/{key.prefix}/give/").status_code == 302
    assert acts(team)[-1] == ("key.given", "boss", "ci")
    assert "Take over" not in shown(hers.get("/settings/keys/")).text
    members.remove(held(team, "mara"), COMMAND)
    assert check_key(token)


def test_the_account_page_counts_the_keys_that_end(team: Team):
    mara = member(team, "mara")
    create_key(team, actor=person(mara))
    create_key(team, actor=person(mara))
    assert "Your 2 API keys end too" in shown(browser(mara).get("/account/")).text


@pytest.mark.fault("H7")
def test_the_api_lists_them_without_tokens(team: Team):
    mara = member(team, "mara")
    create_key(team, "hers", actor=person(mara), expires=timezone.now() + timedelta(days=9))
    program = Program(team)
    listed = program.get("/keys")["keys"]
    assert [(row["name"], row["owner"], row["current"]) for row in listed] == [
        ("", None, True), ("hers", "mara", False),
    ]  # fmt: skip
    assert listed[1]["expires"] and listed[1]["ended"] is None
    assert program.token not in json.dumps(listed)
    stranger = Program(Team.objects.create(slug="theirs", name="Theirs"))
    assert len(stranger.get("/keys")["keys"]) == 1


def answer(*words: str) -> str:
    out = StringIO()
    call_command("token", *words, stdout=out)
    return out.getvalue()


def test_the_command_names_owner_and_expiry(team: Team):
    member(team, "mara", "editor")
    member(team, "vera", "viewer")
    words = ("create", "--team", "ours", "--owner", "mara", "--expires", "30", "--json")
    made = json.loads(answer(*words))
    assert made["owner"] == "mara"
    (row,) = json.loads(answer("list", "--json"))
    assert (row["owner"], row["expires"][:16]) == ("mara", made["expires"][:16])
    assert "mara" in answer("list") and f"expires {made['expires'][:10]}" in answer("list")
    with pytest.raises(CommandError, match="not an owner or editor"):
        answer("create", "--team", "ours", "--owner", "vera")
    with pytest.raises(CommandError, match="number of days"):
        answer("create", "--expires", "soon")
    members.remove(held(team, "mara"), COMMAND)
    assert "revoked" in answer("list")


def test_a_key_erases_only_while_its_owner_may(team: Team):
    member(team, "boss")
    mara = member(team, "mara")
    program, service = Program(team), Program(team, ("erase",))
    key, program.token = create_key(team, scopes=("erase",), owner=mara)
    wanted = {"kind": "team", "reason": "a lawsuit"}
    assert program.ask("POST", "/holds", wanted).status_code == 201
    Membership.objects.filter(user=mara).update(role="editor")
    assert_problem(program.ask("POST", "/holds", wanted), 403)
    listed = {one["prefix"]: one["scopes"] for one in program.get("/keys")["keys"]}
    assert listed[key.prefix] == ["read", "write"]
    assert service.ask("POST", "/holds", wanted).status_code == 201


def test_a_command_gives_nobody_a_key_that_erases_who_may_not(team: Team):
    member(team, "mara", "editor")
    command = ("token", "create", "--team", "ours", "--owner", "mara", "--scope", "erase")
    with pytest.raises(CommandError, match="not an owner of team ours, who may erase"):
        call_command(*command)
    assert not Key.objects.exists()
