"""Members: roles change, members leave, and every team keeps an owner."""

from __future__ import annotations

import threading

import pytest
from django.db import connection
from django.test import Client

from sessions.actions.accounts import members
from sessions.actions.accounts.audit import COMMAND
from sessions.actions.accounts.teams import local_user, team_called
from sessions.actions.erasure.requests import ErasureRule, begin
from sessions.models import Erasure, Membership, Team
from tests.sessions.accounts.test_invitations import owner, quick, roles, team
from tests.sessions.people import (
    acts,
    browser,
    member,
    shown,
)

__all__ = ["owner", "quick", "team"]

pytestmark = pytest.mark.django_db


def test_roles_change_and_members_go(owner: Client, team: Team):
    member(team, "jo", "viewer")
    jo = Membership.objects.get(user__username="jo")
    at = f"/settings/members/{jo.pk}"
    assert owner.post(f"{at}/role/", {"role": "editor"}).status_code == 302
    assert roles(team)["jo"] == "editor"
    assert shown(owner.post(f"{at}/role/", {"role": "king"}), 422).text.count("Choose one")
    assert "Remove jo for good" in shown(owner.get("/settings/members/")).text
    assert owner.post(f"{at}/remove/").status_code == 302
    assert "jo is no longer a member of" in shown(owner.get("/settings/members/")).text
    assert "jo" not in roles(team)
    assert owner.post(f"{at}/remove/").status_code == 404
    assert acts(team) == [("role.changed", "mara", "jo"), ("member.removed", "mara", "jo")]


def test_the_last_owner_stays_one(owner: Client, team: Team):
    mara = Membership.objects.get(user__username="mara")
    idle = member(team, "idle")
    idle.is_active = False
    idle.save()
    at = f"/settings/members/{mara.pk}"
    for answer in (owner.post(f"{at}/role/", {"role": "viewer"}), owner.post(f"{at}/remove/")):
        assert "A team needs an owner." in shown(answer, 409).text
    assert roles(team)["mara"] == "owner"
    assert owner.post(f"{at}/role/", {"role": "owner"}).status_code == 302, "that changes nothing"
    assert acts(team) == []


@pytest.mark.store
@pytest.mark.django_db
def test_the_local_user_is_no_owner_who_can_stay_alone():
    team, _ = team_called("Ours")
    mara = Membership.objects.get(user=member(team, "mara"))
    rule = ErasureRule(Erasure.Kind.MEMBER, "mara")
    for change in (
        lambda: members.leave(mara, COMMAND),
        lambda: members.change_role(mara, "viewer", COMMAND),
        lambda: begin(team, rule, [], COMMAND),
    ):
        with pytest.raises(members.LastOwner):
            change()
    assert roles(team) == {"local": "owner", "mara": "owner"}
    local = local_user()
    local.set_password("of its own")
    local.save()
    members.leave(mara, COMMAND)
    assert roles(team) == {"local": "owner"}


@pytest.mark.store
@pytest.mark.django_db(transaction=True)
def test_of_two_owners_who_leave_at_once_one_stays():
    team = Team.objects.create(slug="ours", name="Ours")
    mine = [Membership.objects.get(user=member(team, name)) for name in ("mara", "jo")]
    together = threading.Barrier(2)

    def go(one: Membership) -> None:
        together.wait()
        try:
            members.leave(one, COMMAND)
        except members.LastOwner:
            pass
        finally:
            connection.close()

    threads = [threading.Thread(target=go, args=(one,)) for one in mine]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(roles(team).values()) == ["owner"]


def test_a_team_is_renamed_by_its_owners(owner: Client, team: Team):
    assert owner.post("/settings/team/", {"name": "Harbour"})["Location"].endswith("?team=ours")
    assert "Harbour" in shown(owner.get("/settings/team/")).text
    assert acts(team) == [("team.renamed", "mara", "Harbour")]
    assert "required" in shown(owner.post("/settings/team/", {"name": ""}), 422).text
    viewer = browser(member(team, "jo", "viewer"))
    assert "Owners can rename" in shown(viewer.get("/settings/team/")).text


def test_pages_offer_what_the_role_may(team: Team):
    for role in ("editor", "reviewer", "viewer"):
        page = shown(browser(member(team, role, role)).get("/settings/members/"))
        assert set(page.forms) <= {"/logout/"}, "nothing to change"
        assert "example.org" not in page.text
        assert ("Audit log" in page.links) == (role == "editor")
