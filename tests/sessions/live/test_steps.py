"""A step in one request: what it appends, and a context that is cut to what the agent lacks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions.api.live import handing_out
from sessions.models import ManagedContext, Message, ModelCall
from tests.sessions.budgets.test_budgets_api import put
from tests.sessions.programs import Program, assert_problem
from tests.sessions.web.world import browser_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]

STEPS = "/sessions/run/steps"
USAGE = {"input_tokens": 90, "output_tokens": 10}


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def turn(number: int, size: int = 40) -> list[dict[str, Any]]:
    """A call of a tool, and its result."""
    call = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {"path": f"{number}"}}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"{number} " * size}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def applied(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """What an agent has after an answer that says only what changed."""
    kept = old["messages"][: new["keep"]] if new["since"] else []
    parts = {n: old[n] if new[n] is None and new["since"] else new[n] for n in ("system", "tools")}
    return {"messages": [*kept, *new["messages"]], **parts}


def whole(program: Program, context_id: str) -> dict[str, Any]:
    """The same context, reproduced."""
    found = program.get(f"/sessions/run/context?context_id={context_id}")
    return {name: found[name] for name in ("messages", "system", "tools")}


def test_a_step_appends_reports_and_answers_with_the_next_context(program: Program):
    program.ask("PUT", "/sessions/run", {"policy": "passthrough", "model": "claude-sonnet-5"})
    first = program.post(STEPS, {"messages": [said("Mend it.")], "system": "Be brief."})
    assert first["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Mend it.", "cache_control": {"type": "ephemeral"}}
            ],
        }
    ]
    assert (first["keep"], first["since"], first["appended"]["appended"]) == (0, None, 2)
    step = {"messages": turn(1), "usage": USAGE, "context_id": first["context_id"]}
    second = program.post(STEPS, {**step, "since": first["context_id"]})
    call = ModelCall.objects.get()
    assert (call.uncached, call.output, call.context) == (90, 10, first["context_id"])
    assert (second["step"], second["since"]) == (2, first["context_id"])
    assert second["system"] is None
    assert applied(first, second) == whole(program, second["context_id"])


def test_it_begins_a_session_that_does_not_exist(program: Program):
    made = program.post(STEPS, {"messages": [said("Hello")]})
    assert "created" in made["appended"]["notes"][0]
    assert made["messages"][0]["content"][0]["text"] == "Hello"


def test_without_messages_it_only_answers(program: Program):
    program.post(STEPS, {"messages": [said("Hello")]})
    again = program.post(STEPS, {})
    assert (again["appended"], Message.objects.count()) == (None, 1)
    assert again["messages"][0]["content"][0]["text"] == "Hello"


@pytest.mark.parametrize(("model", "refused"), [("claude-sonnet-4-6", True), ("gpt-5.1", False)])
def test_a_context_that_its_model_refuses_says_so(program: Program, model: str, refused: bool):
    program.ask("PUT", "/sessions/run", {"policy": "passthrough", "model": model})
    words = {"role": "assistant", "content": "It is done."}
    made = program.post(STEPS, {"messages": [said("Hello"), words]})
    assert any("this model refuses" in note for note in made["notes"]) == refused
    assert program.post(STEPS, {"messages": [said("And now?")]})["notes"] == []


def test_a_repeated_step_appends_once(program: Program):
    body = {"messages": [said("Hello")]}
    for _ in range(2):
        made = program.ask("POST", STEPS, body, idempotency_key="one").json()
        assert made["appended"]["appended"] == 1
    assert Message.objects.count() == 1


def test_a_context_that_is_not_known_is_sent_whole(program: Program):
    first = program.post(STEPS, {"messages": [said("Hello")]})
    handing_out._shown.clear()
    for since in (first["context_id"], "ctx_unknown"):
        second = program.post(STEPS, {"since": since})
        assert (second["since"], second["keep"], len(second["messages"])) == (None, 0, 1)
    other = {"messages": [said("Hi")], "since": second["context_id"]}
    assert program.post("/sessions/other/steps", other)["since"] is None


def test_a_session_is_not_made_by_asking(program: Program):
    assert_problem(program.ask("POST", STEPS, {}), 404)
    assert program.ask("POST", STEPS, {"messages": [said("Hi")]}).status_code == 201
    assert program.ask("POST", STEPS, {}).status_code == 200


def test_over_budget_what_was_sent_is_stored(program: Program):
    program.ask("PUT", "/sessions/run", {"policy": "passthrough"})
    put(browser_of(program.team), tokens=10)
    refused = assert_problem(program.ask("POST", STEPS, {"messages": [said("long " * 50)]}), 402)
    assert refused["appended"]["appended"] == 1
    assert Message.objects.count() == 1
    assert not ManagedContext.objects.exists()


@pytest.mark.parametrize("body", [[], {"messages": 1}, {"since": 5}, {"wait": 99}, {"format": "x"}])
def test_what_is_wrong_is_named(program: Program, body: dict[str, Any]):
    refused = assert_problem(program.ask("POST", STEPS, body), 422)
    assert refused["errors"] or refused["detail"]
    assert not Message.objects.exists()


@settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    sizes=st.lists(st.integers(1, 4_000), min_size=1, max_size=8),
    form=st.sampled_from(["anthropic", "openai", "pairs"]),
    policy=st.sampled_from(["balanced", "passthrough", "offload-first"]),
)
def test_what_changed_is_enough(program: Program, sizes: list[int], form: str, policy: str):
    name = f"/sessions/walk-{Message.objects.count()}-{form}-{policy}-{len(sizes)}-{sum(sizes)}"
    program.ask("PUT", name, {"policy": policy, "window": 16_000, "model": "claude-sonnet-5"})
    has = program.post(f"{name}/steps", {"messages": [said("Go.")], "format": form})
    since, state = has["context_id"], {n: has.get(n) for n in ("messages", "system", "tools")}
    for number, size in enumerate(sizes):
        new = program.post(
            f"{name}/steps", {"messages": turn(number, size), "format": form, "since": since}
        )
        new.setdefault("system", None), new.setdefault("tools", None)
        state, since = applied(state, new), new["context_id"]
        whole = program.get(f"{name}/context?context_id={since}&format={form}")
        assert state["messages"] == whole["messages"]
