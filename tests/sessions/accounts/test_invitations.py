"""Invitations: single-use and expiring; the first owner comes by a command."""

from __future__ import annotations

import json
import re
import threading
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from sessions.actions.accounts import members
from sessions.actions.accounts.audit import COMMAND
from sessions.actions.accounts.invitations import AlreadyMember, NotUsable, accept, invite, withdraw
from sessions.actions.accounts.teams import local_user, team_called
from sessions.models import Invitation, Membership, Team
from tests.sessions.people import (
    PASSWORD,
    QUICK,
    acts,
    browser,
    member,
    person,
    shown,
    sign_in,
)

pytestmark = pytest.mark.django_db

NEW = {"name": "jo", "email": "", "password": PASSWORD, "again": PASSWORD}


@pytest.fixture(autouse=True)
def quick(settings: Any) -> None:
    settings.PASSWORD_HASHERS = QUICK


@pytest.fixture
def team(db: None) -> Team:
    return Team.objects.create(slug="ours", name="Ours")


@pytest.fixture
def owner(team: Team) -> Client:
    return browser(member(team, "mara"))


def roles(team: Team) -> dict[str, str]:
    return dict(Membership.objects.filter(team=team).values_list("user__username", "role"))


def invited(owner: Client, role: str = "reviewer") -> str:
    """The URL of a new invitation, created on the page."""
    answer = owner.post("/settings/members/", {"role": role, "email": "jo@example.org"})
    page = shown(answer, 201)
    address = page.html.partition('id="invitation-address">')[2].partition("<")[0]
    assert address.startswith("http://127.0.0.1/invitations/")
    assert "no-store" in answer["Cache-Control"]
    return address.removeprefix("http://127.0.0.1")


def test_the_invited_e_mail_stands_in_the_form(owner: Client):
    assert 'value="jo@example.org"' in shown(browser().get(invited(owner))).html


def test_an_invitation_is_shown_once_and_stored_as_a_hash(owner: Client, team: Team):
    address = invited(owner)
    token = address.split("/")[2]
    assert len(token) >= 43, "256 bits"
    row = Invitation.objects.get()
    assert token not in str([getattr(row, field.attname) for field in row._meta.fields])
    page = shown(owner.get("/settings/members/"))
    assert token not in page.html
    assert "jo@example.org" in page.text
    assert acts(team) == [("member.invited", "mara", "jo@example.org")]
    assert timedelta(days=6.9) < row.expires - timezone.now() <= timedelta(days=7)


def test_who_has_no_account_makes_one_and_is_in(owner: Client, team: Team):
    address, client = invited(owner), browser()
    page = shown(client.get(address))
    assert "mara invites you to the team Ours as reviewer" in page.text
    assert roles(team) == {"mara": "owner"}, "looking grants nothing"
    assert client.get("/sessions/").status_code == 403
    answer = client.post(address, NEW)
    assert answer["Location"] == "/?team=ours"
    assert roles(team) == {"mara": "owner", "jo": "reviewer"}
    assert client.get("/settings/members/").status_code == 200
    assert acts(team)[1:] == [("member.joined", "jo", "jo")]
    assert client.get(address)["Location"] == "/?team=ours", "who used it is led on"


def test_who_has_an_account_signs_in_first_and_comes_back(owner: Client, team: Team):
    address, client = invited(owner), browser()
    person("jo")
    led = sign_in(client, "jo", next=address)
    assert led["Location"] == address
    assert "Join as jo" in shown(client.get(address)).text
    assert client.post(address).status_code == 302
    assert roles(team)["jo"] == "reviewer"


def test_the_wrong_person_signs_out_and_is_back_at_the_invitation(owner: Client):
    address = invited(owner)
    assert owner.post("/logout/", {"next": address})["Location"] == address


@pytest.mark.parametrize(
    ("given", "said"),
    [({"name": "MARA"}, "taken"), ({"again": "other"}, "do not match"), ({"email": "x"}, "valid"),
     ({"password": "jojojo", "again": "jojojo"}, "too short"), ({"name": ""}, "required"),
     ({"name": "local"}, "taken")],
)  # fmt: skip
def test_an_account_that_will_not_do_uses_nothing_up(
    given: dict[str, str], said: str, owner: Client, team: Team
):
    address = invited(owner)
    assert said in shown(browser().post(address, NEW | given), 422).text
    assert roles(team) == {"mara": "owner"}
    assert browser().post(address, NEW).status_code == 302


@pytest.mark.fault("H5")
def test_one_that_cannot_be_used_looks_like_one_that_never_was(owner: Client, team: Team):
    used, withdrawn, expired = invited(owner), invited(owner), invited(owner)
    browser().post(used, NEW)
    first, second, third = Invitation.objects.order_by("pk")
    assert withdraw(second, COMMAND)
    assert not withdraw(second, COMMAND)
    assert not withdraw(first, COMMAND), "what was accepted is no more an invitation"
    Invitation.objects.filter(pk=third.pk).update(expires=timezone.now())
    never = "/invitations/never-was/"
    for client in (browser(), browser(person("ann"))):
        for method in (client.get, client.post):
            answers = [method(at) for at in (used, withdrawn, expired, never)]
            pages = {re.sub(rb"[A-Za-z0-9]{64}", b"", answer.content) for answer in answers}
            assert len(pages) == 1
            assert "cannot be used" in pages.pop().decode()
            assert {answer.status_code for answer in answers} == {404}
    assert roles(team) == {"mara": "owner", "jo": "reviewer"}


def test_who_is_in_already_stays_what_he_is(owner: Client, team: Team):
    for role, offered in (("editor", "viewer"), ("viewer", "owner")):
        address = invited(owner, offered)
        client = browser(member(team, role, role))
        assert "You are in this team already" in shown(client.get(address)).text
        assert "already" in shown(client.post(address), 409).text
        assert roles(team)[role] == role
        assert browser().post(address, NEW | {"name": f"for{role}"}).status_code == 302, "unused"


@pytest.mark.store
@pytest.mark.django_db(transaction=True)
def test_of_two_who_accept_at_once_one_is_in():
    team = Team.objects.create(slug="ours", name="Ours")
    made, _ = invite(team, "editor", COMMAND)
    ended: list[str] = []
    together = threading.Barrier(2)

    def join(name: str) -> None:
        user = person(name)
        together.wait()
        try:
            accept(made, user, COMMAND)
            ended.append("in")
        except NotUsable:
            ended.append("too late")
        finally:
            connection.close()

    threads = [threading.Thread(target=join, args=(name,)) for name in ("jo", "ann")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ended) == ["in", "too late"]
    assert Membership.objects.filter(team=team).count() == 1
    assert [action for action, _, _ in acts(team)] == ["member.invited", "member.joined"]


def test_accepting_twice_has_its_own_answer(team: Team):
    made, _ = invite(team, "editor", COMMAND)
    user = person("jo")
    accept(made, user, COMMAND)
    with pytest.raises(AlreadyMember):
        accept(made, user, COMMAND)
    with pytest.raises(NotUsable):
        accept(made, person("ann"), COMMAND)


def test_an_invitation_is_withdrawn_on_the_page(owner: Client, team: Team):
    address = invited(owner)
    row = Invitation.objects.get()
    withdrawn = owner.post(f"/settings/members/invitations/{row.pk}/withdraw/")
    assert withdrawn["Location"] == "/settings/members/?team=ours"
    assert browser().get(address).status_code == 404
    assert acts(team)[-1] == ("invitation.withdrawn", "mara", "jo@example.org")


@pytest.mark.parametrize("end", ["demoted", "removed"])
def test_invitations_of_a_former_owner_are_void(end: str, owner: Client, team: Team):
    address = invited(owner)
    member(team, "jo")
    mara = Membership.objects.get(user__username="mara")
    if end == "demoted":
        members.change_role(mara, "editor", COMMAND)
    else:
        members.remove(mara, COMMAND)
    assert browser().get(address).status_code == 404


@pytest.mark.parametrize("given", [{"role": "king"}, {}, {"role": "owner", "email": "nonsense"}])
def test_an_invitation_that_makes_no_sense_is_refused(given: dict[str, str], owner: Client):
    assert "problem-text" in shown(owner.post("/settings/members/", given), 422).html
    assert not Invitation.objects.exists()


def reported(*words: str) -> str:
    out = StringIO()
    call_command("invite", *words, stdout=out)
    return out.getvalue()


def test_the_first_owner_comes_by_an_address_that_a_command_prints():
    given = ["--team", "Night Shift", "--email", "jo@example.org", "--url", "https://lab.example/"]
    made = json.loads(reported(*given, "--json"))
    assert (made["team"], made["role"], made["email"]) == ("night-shift", "owner", "jo@example.org")
    address = made["url"].removeprefix("https://lab.example")
    assert browser().post(address, NEW).status_code == 302
    team = Team.objects.get(slug="night-shift")
    assert roles(team) == {"local": "owner", "jo": "owner"}
    assert ("member.invited", "command line", "jo@example.org") in acts(team)
    assert reported("--team", "night-shift", "--role", "viewer").startswith("http://127.0.0.1:")
    assert json.loads(reported("--team", "night-shift", "--json"))["role"] == "editor"


def test_page_and_command_offer_the_same_role():
    team, _ = team_called("ops")
    local = local_user()
    for expected in ("owner", "editor"):
        page = shown(browser(local).get("/settings/members/?team=ops")).html
        offered = re.search(r'<option value="(\w+)" selected', page)
        said = json.loads(reported("--team", "ops", "--json"))["role"]
        assert offered is not None and offered[1] == said == expected
        if expected == "owner":
            member(team, "jo")


@pytest.mark.parametrize(
    "words", [["--team", "!!!"], ["--email", "nonsense"], ["--url", "lab.example"]]
)
def test_the_command_says_what_is_wrong(words: list[str]):
    with pytest.raises(CommandError) as error:
        reported(*words)
    assert error.value.returncode == 2
    assert not Invitation.objects.exists()


def test_the_command_names_the_origin_people_use(settings: Any):
    settings.CSRF_TRUSTED_ORIGINS = ["https://*.example", "https://lab.example"]
    assert reported().startswith("https://lab.example/invitations/")
