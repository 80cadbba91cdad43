"""Sessions by names of the agent's own, and the list of them."""

from __future__ import annotations

import pytest

from sessions.models import Job, Session
from tests.sessions.programs import Program, assert_problem
from tests.sessions.web.api.talks import TALK

pytestmark = [pytest.mark.store, pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]


def test_the_simplest_use(program: Program):
    made = program.ask("PUT", "/sessions/my-run", {"agent": "a", "model": "claude-sonnet-4-5"})
    assert made.status_code == 201
    program.post("/sessions/my-run/messages", {"messages": [{"role": "user", "content": "Hi"}]})
    given = program.get("/sessions/my-run/context?format=anthropic")
    assert given["messages"][0]["role"] == "user"
    assert given["messages"][0]["content"][0]["text"] == "Hi"
    assert (given["system"], given["tools"]) == ([], [])
    assert given["context_id"].startswith("ctx_")


def test_a_put_makes_and_then_changes(program: Program):
    assert program.ask("PUT", "/sessions/run", {"agent": "a", "color": "red"}).status_code == 201
    again = program.ask("PUT", "/sessions/run", {"title": "Mine", "outcome": "succeeded"})
    assert again.status_code == 200
    result = again.json()
    assert result["notes"] == []
    assert (result["agent"], result["title"], result["outcome"]) == ("a", "Mine", "succeeded")
    assert result["url"] == f"http://127.0.0.1/sessions/{result['id']}/"
    assert Session.objects.get().meta["color"] == "red"
    by_uuid = program.ask("PUT", f"/sessions/{result['id']}", {"task": "t"}).json()
    assert (by_uuid["external_id"], by_uuid["task"]) == ("run", "t")
    assert program.ask("PUT", "/sessions/bare").status_code == 201, "a body is not needed"
    notes = program.ask("PUT", "/sessions/run", {str(n): n for n in range(12)}).json()["notes"]
    assert notes[0] == '"0" is not a session field and was added to metadata'
    assert notes[10:] == ["2 more unknown fields were added to metadata"]


A_UUID = "5f2b6f0e-9c39-4c6d-8a51-2f7d1f3c9a10"


@pytest.mark.parametrize("name", ["team/repo#1", "läuft", "a b", "x" * 300, A_UUID])
def test_ids_are_the_agents_own(program: Program, name: str):
    from urllib.parse import quote

    address = f"/sessions/{quote(name, safe='')}"
    assert program.ask("PUT", address, {}).json()["external_id"] == name
    assert program.get(address)["external_id"] == name
    program.post(f"{address}/messages", {"messages": TALK[:1]})
    assert program.get(f"{address}/messages")["messages"][0]["seq"] == 1


@pytest.mark.parametrize("name", ["x" * 301, "a%00b", "a%09b"])
def test_ids_that_no_column_takes(program: Program, name: str):
    assert assert_problem(program.ask("PUT", f"/sessions/{name}", {}), 422)["errors"]
    assert not Session.objects.exists()


def test_a_session_that_was_not_announced(program: Program):
    result = program.post("/sessions/new/messages", {"messages": TALK[:1]})
    assert (result["appended"], result["first_seq"]) == (1, 1)
    assert result["notes"] == ["The session did not exist and was created."]
    empty = {"messages": [{"role": "user", "content": []}]}
    assert program.post("/sessions/new/messages", empty)["notes"] == [
        "Message 2 from the user is empty."
    ]
    assert Session.objects.get().external_id == "new"
    assert Job.objects.get().kind == "tend"


def test_a_refused_first_batch_leaves_nothing(program: Program):
    assert_problem(program.ask("POST", "/sessions/new/messages", {"messages": [{"role": 1}]}), 422)
    assert not Session.objects.exists()


def test_the_list_has_pages_that_do_not_shift(program: Program):
    for number in range(5):
        program.ask("PUT", f"/sessions/run-{number}", {"title": f"Number {number}"})
    first = program.get("/sessions?limit=2")
    program.ask("PUT", "/sessions/newer", {})
    seen = [row["external_id"] for row in first["sessions"]]
    cursor = first["next"]
    while cursor:
        page = program.get(f"/sessions?limit=2&cursor={cursor}")
        seen += [row["external_id"] for row in page["sessions"]]
        cursor = page["next"]
    assert seen == [f"run-{number}" for number in (4, 3, 2, 1, 0)]
    assert [row["title"] for row in program.get("/sessions?q=ber 3")["sessions"]] == ["Number 3"]
    assert (
        assert_problem(program.ask("GET", "/sessions?q=%00"), 422)["title"] == "Invalid parameter"
    )


@pytest.mark.parametrize("cursor", ["x", "%00", "bnVsbA", "WzEsMl0", "eyJhIjoxfQ", "ä"])
def test_an_unknown_cursor(program: Program, cursor: str):
    answer = program.ask("GET", f"/sessions?cursor={cursor}")
    assert assert_problem(answer, 422)["errors"][0]["pointer"] == "?cursor"
