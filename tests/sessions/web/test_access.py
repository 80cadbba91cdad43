"""Access: every route, for every kind of requester.

Routes come from the URL configuration: one that addresses.py and world.py do not know fails the
test. Roles are tested in test_roles.py.
"""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.http import HttpResponse
from django.test import Client

from contextlab.asgi import application
from sessions.actions.accounts.teams import local_user
from sessions.models import Membership, Policy, PolicyVersion, Session
from tests.sessions.programs import Program, assert_problem
from tests.sessions.web.addresses import ADDRESSES, AT_LARGE, MAKES, PRIVATE, PUBLIC
from tests.sessions.web.world import browser_of, by_browser, by_program, each

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]

SAME_ORIGIN = [(b"origin", b"http://localhost:8765"), (b"host", b"localhost:8765")]


def seen(response: HttpResponse, ids: dict[str, Any]) -> tuple[Any, ...]:
    """Everything in a response that could distinguish two: status, headers and body, without the
    requested name and the changing CSRF token."""
    body = response.content.decode()
    for name, value in ids.items():
        if len(str(value)) > 3:
            body = body.replace(str(value), name)
    body = re.sub(r"[A-Za-z0-9]{64}", "", body)
    changing = ("Content-Length", "Expires")
    headers = {name: value for name, value in response.headers.items() if name not in changing}
    return response.status_code, headers, body


@pytest.mark.fault("H1")
def test_no_one_gets_in_without_a_key(world: dict[str, Any], program: Program, revoked: Program):
    for address in each([address for address in PRIVATE if address.is_api]):
        wrong = program.token[:-1] + ("A" if program.token[-1] != "A" else "B")
        answers = [
            assert_problem(by_program(program, address, world, authorization=header), 401)
            for header in ("", "Basic eDp5", "Bearer", f"Bearer {wrong}", f"Bearer {revoked.token}")
        ]
        assert answers[0] == answers[1], "no key of ours"
        assert answers[2] == answers[3] == answers[4], "one cannot tell why a key is none"
        answer = by_program(program, address, world, authorization="")
        assert answer["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.fault("H1")
def test_pages_are_closed_to_whoever_is_not_signed_in(world: dict[str, Any], program: Program):
    for address in each([address for address in PRIVATE if not address.is_api]):
        asked = Client(SERVER_NAME="127.0.0.1")
        keyed = Client(
            SERVER_NAME="127.0.0.1", headers={"authorization": f"Bearer {program.token}"}
        )
        for client in (asked, keyed):
            answer = by_browser(client, address, world)
            assert (answer.status_code, b"Not signed in" in answer.content) == (403, True)


@pytest.mark.fault("H1", "H2")
def test_a_foreign_key_finds_exactly_nothing(
    world: dict[str, Any], elsewhere: dict[str, Any], stranger: Program
):
    for address in each([a for a in PRIVATE if a.is_api and (a.method, a.route) not in MAKES]):
        foreign = by_program(stranger, address, world)
        assert str(world["session_id"]) not in foreign.content.decode()
        if address.route not in AT_LARGE:
            missing = by_program(stranger, address, elsewhere)
            assert seen(foreign, world) == seen(missing, elsewhere)
            assert_problem(foreign, 404)


def test_a_foreign_id_can_be_used_as_ones_own(
    world: dict[str, Any], program: Program, stranger: Program
):
    for address in each([a for a in PRIVATE if (a.method, a.route) in MAKES]):
        before = Session.objects.values("version", "message_count").get(pk=world["session_id"])
        versions = PolicyVersion.objects.filter(policy__team=program.team).count()
        assert by_program(stranger, address, world).status_code == 201
        if address.names == ("name",):
            assert Policy.objects.filter(team=stranger.team, name=world["name"]).exists()
        else:
            assert Session.objects.get(team=stranger.team).external_id == str(world["session_id"])
        after = Session.objects.values("version", "message_count").get(pk=world["session_id"])
        assert before == after
        assert versions == PolicyVersion.objects.filter(policy__team=program.team).count()


@pytest.mark.fault("H1", "H2")
def test_a_foreign_page_looks_exactly_like_a_missing_one(
    world: dict[str, Any], elsewhere: dict[str, Any], stranger: Program
):
    for address in each([address for address in PRIVATE if not address.is_api]):
        client = browser_of(stranger.team)
        foreign = by_browser(client, address, world)
        assert str(world["session_id"]) not in foreign.content.decode()
        if address.route not in AT_LARGE:
            missing = by_browser(client, address, elsewhere)
            assert seen(foreign, world) == seen(missing, elsewhere)
            assert foreign.status_code in (404, 405)


@pytest.mark.fault("H1")
def test_a_key_that_reads_does_not_write(world: dict[str, Any], reader: Program):
    for address in each([address for address in PRIVATE if address.is_api]):
        answer = by_program(reader, address, world)
        if address.method == "GET" and address.needs == "read":
            assert answer.status_code == 200, answer.content
        else:
            assert "scope" in assert_problem(answer, 403)["detail"]


def test_the_right_key_gets_in(world: dict[str, Any], program: Program):
    for address in each([address for address in PRIVATE if address.is_api]):
        key = Program(program.team, ("read", "erase")) if address.needs == "erase" else program
        answer = by_program(key, address, world)
        if address.needs in ("accept", "members", "reveal"):
            assert "API keys cannot do this" in assert_problem(answer, 403)["detail"], address
        else:
            assert answer.status_code in (200, 201, 202), (address, answer.content)


@pytest.mark.fault("H6")
def test_a_browser_needs_the_token_of_its_page_to_write(world: dict[str, Any], program: Program):
    for address in each([address for address in PRIVATE if address.is_api]):
        owner = browser_of(program.team)
        strict = Client(SERVER_NAME="127.0.0.1", enforce_csrf_checks=True)
        strict.cookies = owner.cookies
        answer = strict.generic(address.method, address.at(world), b"{}", "application/json")
        if address.method == "GET":
            assert answer.status_code == 200, answer.content
        else:
            assert "X-CSRFToken" in assert_problem(answer, 403)["detail"]


def test_a_browser_with_the_token_writes_as_far_as_its_role(program: Program):
    statuses = {}
    for role in ("owner", "editor", "reviewer", "viewer"):
        client = browser_of(program.team, role)
        strict = Client(SERVER_NAME="127.0.0.1", enforce_csrf_checks=True)
        strict.cookies = client.cookies
        strict.cookies["contextlab_csrf"] = "a" * 32
        answer = strict.put(
            "/api/v1/sessions/x", b"{}", "application/json", headers={"x-csrftoken": "a" * 32}
        )
        statuses[role] = answer.status_code
    assert statuses == {"owner": 201, "editor": 200, "reviewer": 403, "viewer": 403}


def test_what_is_open_holds_nothing_of_a_team(world: dict[str, Any], program: Program):
    for address in each([address for address in ADDRESSES if address.route in PUBLIC]):
        answer = by_browser(Client(SERVER_NAME="127.0.0.1"), address, world)
        to_sign_in = answer.get("Location") == "/login/"  # the second step, without the first
        assert answer.status_code in (200, 403, 404, 405) or to_sign_in
        for secret in (world["session_id"], world["sha"], program.team.pk, program.key.prefix):
            assert str(secret) not in answer.content.decode()


def test_a_person_looks_into_all_teams_he_is_in(program: Program, stranger: Program):
    program.ask("PUT", "/sessions/first", {})
    stranger.ask("PUT", "/sessions/second", {})
    client = browser_of(program.team)
    person = Membership.objects.get(team=program.team, user__username__contains="owner").user
    Membership.objects.create(user=person, team=stranger.team, role="viewer")
    for name in ("first", "second"):
        found = client.get(f"/api/v1/sessions/{name}").json()
        assert client.get(found["url"]).status_code == 200
    assert len(client.get("/api/v1/sessions").json()["sessions"]) == 2
    assert b"second" not in client.get("/sessions/").content
    assert b"second" in client.get("/sessions/?team=theirs").content
    assert b"second" in client.get("/sessions/").content, "a choice stays"
    assert b"second" not in client.get("/sessions/?team=no-such-team").content.replace(
        b"?team", b""
    )


def test_who_runs_the_machine_sees_the_teams_made_on_it():
    from sessions.actions.accounts.teams import team_called

    team, _ = team_called("Made here")
    Program(team).ask("PUT", "/sessions/run", {})
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(local_user())
    found = client.get("/api/v1/sessions/run").json()
    assert client.get(found["url"]).status_code == 200


@pytest.mark.django_db(transaction=True)
async def test_sockets_are_for_people_and_tell_each_his_own(program: Program, stranger: Program):
    def open_world() -> tuple[str, bytes]:
        program.ask("PUT", "/sessions/run", {})
        cookies = browser_of(stranger.team).cookies
        cookie = "; ".join(f"{name}={morsel.value}" for name, morsel in cookies.items())
        return f"session:{Session.objects.get().pk}", cookie.encode()

    topic, cookie = await sync_to_async(open_world)()
    bearer = (b"authorization", f"Bearer {program.token}".encode())
    keyed = WebsocketCommunicator(application, "/ws/live/", headers=[*SAME_ORIGIN, bearer])
    assert await keyed.connect() == (False, 4401), "a key opens no socket"
    page = WebsocketCommunicator(
        application, "/ws/live/", headers=[*SAME_ORIGIN, (b"cookie", cookie)]
    )
    assert (await page.connect())[0]
    await page.send_json_to({"watch": [topic, f"session:{uuid4()}"]})
    foreign, missing = await page.receive_json_from(), await page.receive_json_from()
    assert foreign == {"topic": topic, "version": None}
    assert missing["version"] is None
    await page.disconnect()
