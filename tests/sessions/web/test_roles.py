"""Roles: every route for every role, compared with ROLE_MAY."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import resolve

from sessions.models import Membership
from sessions.models.accounts.teams import RIGHTS, ROLE_MAY
from tests.sessions.programs import Program
from tests.sessions.web.addresses import ADDRESSES, NEEDS, OWN, PRIVATE
from tests.sessions.web.world import browser_of, by_browser, each

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]

DONE = {200, 201, 202, 302, 303}
POLITE = {400, 404, 405, 409, 410, 415, 422}
AGAIN = ("account/again/", "account/again/code/")
"""Pages that ask for what these people do not have: a password, and a code."""
"""Refusals for other reasons than rights, such as an empty body or unknown ids."""

ASKED = [address for address in PRIVATE if address.needs is not OWN]


def test_the_roles_are_as_the_specification_has_them():
    assert {role: set(rights) for role, rights in ROLE_MAY.items()} == {
        "owner": set(RIGHTS),
        "editor": set(RIGHTS) - {"members", "erase", "reveal"},
        "reviewer": {"read", "review", "reveal"},
        "viewer": {"read"},
    }


def test_every_line_of_the_table_is_an_address():
    assert set(NEEDS) <= {(address.method, address.route) for address in ADDRESSES}


@pytest.mark.fault("H1")
@pytest.mark.parametrize("role", ROLE_MAY)
def test_each_role_may_what_the_table_says_and_no_more(
    role: str, world: dict[str, Any], program: Program
):
    browser = browser_of(program.team, role)
    for address in each(ASKED):
        answer = by_browser(browser, address, world)
        result = (address.method, address.route, answer.status_code)
        if not address.takes:
            assert answer.status_code == 405, (result, "an address that does things is in NEEDS")
        elif address.route in AGAIN:
            assert answer.status_code in DONE | {403}, result
        elif address.needs in ROLE_MAY[role]:
            assert answer.status_code in DONE | POLITE, result
        else:
            assert answer.status_code == 403, result
    assert browser.get("/sessions/").status_code == 200, "nothing signed it out"


def test_an_owner_of_one_team_is_what_he_is_in_another(
    world: dict[str, Any], program: Program, stranger: Program
):
    """Whatever team is selected: the object belongs to the other team."""
    guarded = [address for address in ASKED if address.takes and address.needs != "read"]
    # A PUT creates a session with that name in the first team instead.
    named = [address for address in guarded if address.names and address.method != "PUT"]
    client = browser_of(stranger.team, "owner")
    Membership.objects.create(
        user=User.objects.get(username__startswith="owner"), team=program.team, role="viewer"
    )
    for address in each(named):
        mixed = f"{address.method} {address.route}"
        assert by_browser(client, address, world).status_code in (403, 404), mixed
        assert client.get(f"/sessions/?team={program.team.slug}").status_code in DONE
        assert by_browser(client, address, world).status_code == 403, mixed


def test_what_names_nothing_is_done_in_the_team_that_is_looked_at(
    world: dict[str, Any], program: Program, stranger: Program
):
    guarded = [address for address in ASKED if address.takes and address.needs != "read"]
    for address in each([a for a in guarded if not a.names and not a.is_api]):
        client = browser_of(stranger.team, "owner")
        person = User.objects.get(username__startswith="owner")
        Membership.objects.create(user=person, team=program.team, role="viewer")
        for slug, refused in ((program.team.slug, True), (stranger.team.slug, False)):
            at = f"{address.at(world)}?team={slug}"
            answer = client.generic(address.method, at, b"{}", "application/json")
            assert (answer.status_code == 403) == refused, (address, slug)


def test_nothing_is_done_in_another_team_than_the_address_names(
    world: dict[str, Any], program: Program
):
    """A page that was left open since before one was removed must not act in the next team."""
    guarded = [address for address in ASKED if address.takes and address.needs != "read"]
    for address in each([a for a in guarded if not a.names and not a.is_api]):
        client = browser_of(program.team, "owner")
        at = f"{address.at(world)}?team=another"
        if address.method != "GET":
            assert client.generic(address.method, at, b"{}", "application/json").status_code == 404


def test_the_forms_of_pages_name_the_team_they_act_in(world: dict[str, Any], program: Program):
    client, seen = browser_of(program.team), set()
    pages = [one for one in ASKED if one.method == "GET" and not one.is_api and one.route != ""]
    for address in pages:
        answer = client.get(address.at(world))
        if answer.status_code != 200 or "html" not in answer["Content-Type"]:
            continue
        for action in re.findall(
            r'<form\s+method="post"\s+action="([^"]+)"', answer.content.decode()
        ):
            route = resolve(action.partition("?")[0]).route
            if "<" not in route and NEEDS.get(("POST", route), OWN) is not OWN:
                seen.add(route)
                assert action.endswith(f"?team={program.team.slug}"), (address.route, action)
    assert {"imports/", "settings/keys/", "settings/members/"} <= seen
