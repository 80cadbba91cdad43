"""Budgets through the API: agents ask, people set limits and decide."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from sessions.actions.accounts.audit import COMMAND
from sessions.actions.memory.shares import subscribe
from sessions.models import Approval, Budget, Session
from tests.sessions.memory.test_shares import work
from tests.sessions.programs import Program, assert_problem
from tests.sessions.tools.test_tools_api import GRAPH, STATES, TOOLS
from tests.sessions.web.world import browser_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]

USAGE = {"input_tokens": 90, "output_tokens": 10}


@pytest.fixture
def owner(program: Program) -> Client:
    return browser_of(program.team)


@pytest.fixture
def session(program: Program) -> str:
    program.ask(
        "PUT", "/sessions/run", {"agent": "fixer", "task": "ferry", "policy": "passthrough"}
    )
    program.post("/sessions/run/messages", {"messages": [{"role": "user", "content": "Mend it."}]})
    return "/sessions/run"


def put(owner: Client, **fields: Any) -> Any:
    given = {"scope": "session", "tokens": 2_000, "mode": "hard"} | fields
    return owner.put("/api/v1/budgets", given, content_type="application/json")


def test_a_call_is_reserved_and_settled(program: Program, owner: Client, session: str):
    assert put(owner).status_code == 201
    checked = program.post(f"{session}/budgets/check", {"call": "c1", "tokens": 1_500})
    assert (checked["can_proceed"], checked["budgets"][0]["key"]) == (True, "run")
    refused = program.post(f"{session}/budgets/check", {"call": "c2", "tokens": 501})
    assert (refused["can_proceed"], refused["require_approval"]) == (False, False)
    assert refused["reason"]
    program.post(f"{session}/calls", {"call": "c1", "usage": USAGE})
    (result,) = program.get("/budgets")["budgets"]
    (use,) = result["uses"]
    assert (use["used"]["tokens"], use["reserved"]["tokens"]) == (100, 0)


def test_a_body_may_be_left_out(program: Program, owner: Client, session: str):
    put(owner)
    checked = program.post(f"{session}/budgets/check", None)
    assert (checked["can_proceed"], checked["estimated"], checked["expires"]) == (True, True, None)


def test_what_was_reserved_is_given_back(program: Program, owner: Client, session: str):
    put(owner)
    program.post(f"{session}/budgets/check", {"call": "a/b c", "tokens": 1_500})
    gone = program.ask("DELETE", f"{session}/reservations?call=a/b%20c")
    assert gone.json() == {"released": 1}
    program.post(f"{session}/budgets/check", {"call": "d", "tokens": 1_500})
    assert program.ask("DELETE", f"{session}/reservations").json() == {"released": 1}


def test_an_append_tells_how_budgets_stand_and_is_never_refused(
    program: Program, owner: Client, session: str
):
    put(owner, tokens=100)
    batch = {"messages": [{"role": "assistant", "content": "Done."}], "usage": USAGE, "call": "m1"}
    answer = program.post(f"{session}/messages", batch)
    assert answer["budgets"][0]["state"] == "over"
    assert (answer["advice"]["delay_ms"], answer["advice"]["retry_after"]) == (1_500, 1.5)
    assert answer["warnings"] == ["The session run passed 80 %: 100 %.",
                                  "The session run passed 100 %: 100 %."]  # fmt: skip
    assert program.post(f"{session}/messages", batch | {"messages": []})["warnings"] == []


def test_a_context_beyond_a_hard_budget_is_402(program: Program, owner: Client, session: str):
    result = program.get(f"{session}/context")
    assert result["budgets"] == []
    put(owner, tokens=0)
    body = assert_problem(program.ask("GET", f"{session}/context"), 402)
    assert (body["require_approval"], body["approval"]) == (False, None)
    assert body["budgets"][0]["limit"]["tokens"] == 0
    assert program.get(f"{session}/context?at=1")["context_id"], "what was is no call to come"
    assert owner.get("/api/v1/sessions/run/context").status_code == 200, "people look at it"
    assert program.get(f"{session}/context?context_id={result['context_id']}")["tokens"]


def test_a_context_waits_for_a_yes(program: Program, owner: Client, session: str):
    put(owner, tokens=1, mode="approval")
    body = assert_problem(program.ask("GET", f"{session}/context"), 402)
    assert body["require_approval"]
    row = f"/approvals/{body['approval']}"
    assert program.get(row)["state"] == "waiting"
    assert program.get("/approvals?state=waiting")["approvals"][0]["id"] == body["approval"]
    decided = owner.post(f"/api/v1{row}", {"granted": True}, content_type="application/json")
    assert (decided.json()["state"], decided.json()["decided_by"]) == (
        "granted", f"owner of {program.team}",
    )  # fmt: skip
    again = owner.post(f"/api/v1{row}", {"granted": False}, content_type="application/json")
    assert_problem(again, 409)
    assert program.get(f"{session}/context")["context_id"]


@pytest.mark.parametrize("format", ["anthropic", "openai"])
@pytest.mark.parametrize("sends", ["enabled", "all"])
def test_a_check_and_a_context_estimate_the_same_call_alike(
    program: Program, owner: Client, format: str, sends: str
):
    """Includes shared knowledge, and tools that are omitted or not allowed."""
    run = "/sessions/run"
    program.ask("PUT", run, {"model": "claude-sonnet-4-5", "policy": "offload-first"})
    result = [{"role": "user", "content": "mend src/a.py"}]
    program.post(f"{run}/messages", {"tools": TOOLS, "messages": result})
    subscribe(Session.objects.get(external_id="run"), "team", "", COMMAND)
    program.ask("PUT", "/sessions/finder", {"agent": "finder"})
    result = [{"role": "user", "content": "Find."}, {"role": "assistant", "content": "Port 8080."}]
    program.post("/sessions/finder/messages", {"messages": result})
    program.ask("PUT", "/sessions/finder", {"outcome": "succeeded"})
    work("tend")
    work("share")
    assert program.ask("PUT", f"{run}/tools", STATES | GRAPH | {"sends": sends}).status_code == 200
    context = program.get(f"{run}/context?format={format}")
    assert context["recited"] and len(context["toolset"]["allowed"]) < len(TOOLS)
    said = {"role": "assistant", "content": "Yes."}
    program.post(f"{run}/messages", {"messages": [said], "usage": USAGE, "call": "m1"})
    program.post(f"{run}/messages", {"messages": [{"role": "user", "content": "Go on."}]})
    put(owner, tokens=1, mode="approval")
    checked = program.post(f"{run}/budgets/check", {})
    again = program.ask("POST", f"{run}/budgets/check", {}, idempotency_key=str(uuid4()))
    assert_problem(program.ask("GET", f"{run}/context?format={format}"), 402)
    waits = Approval.objects.get()
    estimate = {"tokens": waits.tokens, "microusd": waits.microusd}
    assert checked["estimate"] == again.json()["estimate"] == estimate
    Budget.objects.all().delete()
    handed = program.get(f"{run}/context?format={format}")["tokens"]
    assert waits.tokens == handed + USAGE["output_tokens"]
    row = Session.objects.get(external_id="run")
    assert handed != row.used_tokens, "or neither of the two would matter"


def test_a_program_does_not_raise_its_own_limit_or_say_yes_to_itself(
    program: Program, owner: Client, session: str
):
    put(owner, tokens=1, mode="approval")
    refused = assert_problem(
        program.ask("PUT", "/budgets", {"scope": "session", "tokens": 10**9}), 403
    )
    assert "API keys cannot" in refused["detail"]
    assert "with the role owner or editor." in refused["detail"]
    waits = program.post(f"{session}/budgets/check", {"call": "c1", "tokens": 10})["approval"]
    assert_problem(program.ask("POST", f"/approvals/{waits}", {"granted": True}), 403)
    assert_problem(program.ask("DELETE", f"/budgets/{Budget.objects.get().pk}"), 403)
    assert Approval.objects.get().state == "waiting"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"scope": "team"}, "/scope"),
        ({"tokens": -1}, "/tokens"),
        ({"tokens": 1.5}, "/tokens"),
        ({"tokens": None}, "/tokens"),
        ({"warn": 101}, "/warn"),
        ({"mode": ""}, "/mode"),
    ],
)
def test_a_problem_names_the_field(owner: Client, body: dict[str, Any], pointer: str):
    said = assert_problem(put(owner, **body), 422)
    assert said["errors"][0]["pointer"] == pointer


@pytest.mark.parametrize("body", [{"call": 1}, {"tokens": -1}, {"seconds": 0}, {"call": "x" * 201}])
def test_a_check_that_says_nonsense(program: Program, session: str, body: dict[str, Any]):
    assert_problem(program.ask("POST", f"{session}/budgets/check", body), 422)


def test_the_same_budget_again_is_changed(owner: Client):
    assert put(owner).status_code == 201
    changed = put(owner, tokens=5)
    assert (changed.status_code, changed.json()["tokens"]) == (200, 5)
    assert owner.delete(f"/api/v1/budgets/{changed.json()['id']}").status_code == 200
    assert not Budget.objects.exists()


def test_another_team_s_look_like_none(program: Program, stranger: Program, session: str):
    theirs = browser_of(stranger.team)
    made = put(theirs).json()["id"]
    assert program.get("/budgets")["budgets"] == []
    mine = browser_of(program.team, "editor")
    assert_problem(mine.delete(f"/api/v1/budgets/{made}"), 404)
    assert_problem(mine.delete(f"/api/v1/budgets/{uuid4()}"), 404)
    assert program.post(f"{session}/budgets/check", {"tokens": 10**6})["can_proceed"]


def test_budgets_of_the_demo_are_listed_only_while_it_is_alone(
    program: Program, owner: Client
) -> None:
    assert put(owner, scope="agent", name="demo-writer").status_code == 201
    listed = lambda: [one["name"] for one in owner.get("/api/v1/budgets").json()["budgets"]]  # noqa: E731
    assert listed() == ["demo-writer"]
    program.ask("PUT", "/sessions/run", {"agent": "fixer"})
    assert listed() == []
