"""An agent whose model binds thinking to what was before it: its requests are accepted."""

from __future__ import annotations

from typing import Any

import anthropic
import pytest

from contextlab.client import ContextLab, Unreachable, wrap
from contextlab.client.sessions import Session
from tests.contextlab.client.test_client import TOOL, claude, lab, model
from tests.provider import Answer, Json, Provider
from tests.provider_binding import BETA

__all__ = ["claude", "lab", "model"]

ASK: Json = {"model": "claude-fable-5-2", "max_tokens": 100, "tools": [TOOL | {"name": "Bash"}]}
STEPS = 12


def thinks(number: int) -> Answer:
    """A reply that thinks, and calls a tool."""
    return Answer(
        (
            {"type": "thinking", "thinking": f"so {number}", "signature": f"sig {number}"},
            {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "make"}},
        ),
        "tool_use",
    )


def run(agent: Any, model: Provider, **more: Any) -> None:
    """Some steps of an agent that appends what it gets, each with a long result."""
    history: list[Json] = [{"role": "user", "content": "go"}]
    for number in range(STEPS):
        model.then(thinks(number))
        asked = {**ASK, **{name: one(number) for name, one in more.items()}}
        reply = agent.messages.create(**asked, messages=history)
        results = [
            {"type": "tool_result", "tool_use_id": one.id, "content": f"line {number}\n" * 2_000}
            for one in reply.content
            if one.type == "tool_use"
        ]
        history += [{"role": "assistant", "content": reply.content}]
        history += [{"role": "user", "content": results}]


def thoughts(body: Json) -> list[str]:
    """The thinking of a request."""
    content = [one for message in body["messages"] for one in message["content"]]
    return [one["thinking"] for one in content if isinstance(one, dict) and "thinking" in one]


@pytest.mark.parametrize("policy", ["balanced", "recitation", "offload-first", "sliding-window"])
def test_no_request_is_refused_and_nothing_dropped(
    lab: ContextLab, model: Provider, claude: anthropic.Anthropic, policy: str
) -> None:
    run(wrap(claude, f"bound-{policy}", server=lab, policy=policy), model)
    assert (model.refused, model.dropped) == ([], [])
    assert all("block_binding" in body["thinking"] for body in model.bodies)
    edited = lab.request("GET", f"sessions/bound-{policy}/context")["revision"] > 0
    if policy in ("recitation", "offload-first"):
        assert edited
    if not edited:
        assert thoughts(model.bodies[-1]) == [f"so {number}" for number in range(STEPS - 1)]


def test_a_system_prompt_that_changes_is_not_refused(
    lab: ContextLab, model: Provider, claude: anthropic.Anthropic
) -> None:
    agent = wrap(claude, "bound-system", server=lab)
    run(agent, model, system=lambda number: f"It is minute {number}.")
    assert (model.refused, model.dropped) == ([], [])
    assert thoughts(model.bodies[-1]) == []


def test_without_our_server_thinking_is_dropped_and_nothing_refused(
    lab: ContextLab,
    model: Provider,
    claude: anthropic.Anthropic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was thought after contexts of ours is not bound to the agent's own history."""
    agent = wrap(claude, "bound-alone", server=lab, policy="recitation")

    def gone(number: int) -> list[Json]:
        if number == STEPS - 1:
            monkeypatch.setattr(Session, "shared_step", unreachable)
        return list(ASK["tools"])

    run(agent, model, tools=gone)
    assert model.refused == []
    assert len(model.dropped) == len(thoughts(model.bodies[-1])) == STEPS - 1


def unreachable(*_: Any, **__: Any) -> None:
    raise Unreachable("it does not answer")


@pytest.mark.parametrize("thinking", [{"type": "disabled"}, {"type": "adaptive"}, None])
def test_what_the_agent_says_of_thinking_stays(
    lab: ContextLab, model: Provider, claude: anthropic.Anthropic, thinking: Json | None
) -> None:
    given = {} if thinking is None else {"thinking": thinking}
    name = f"bound-{(thinking or {}).get('type')}"
    agent = wrap(claude, name, server=lab)
    agent.messages.create(
        **ASK,
        **given,
        messages=[{"role": "user", "content": "hello"}],
        extra_headers={"Anthropic-Beta": "other-2026-01-01"},
    )
    asked = model.bodies[-1].get("thinking")
    if thinking == {"type": "disabled"}:
        assert asked == thinking
    else:
        drop = {"prefix_mismatch_behavior": "drop_block"}
        assert asked == {"type": "adaptive", "block_binding": drop}
    assert not model.refused


def test_other_models_are_asked_for_nothing(
    lab: ContextLab, model: Provider, claude: anthropic.Anthropic
) -> None:
    agent = wrap(claude, "not-bound", server=lab)
    agent.messages.create(
        **{**ASK, "model": "claude-sonnet-5"}, messages=[{"role": "user", "content": "hello"}]
    )
    assert "thinking" not in model.bodies[-1]
    context = lab.request("GET", "sessions/not-bound/context")
    assert "thinking" not in context and "betas" not in context


def test_a_context_says_what_its_model_needs(lab: ContextLab) -> None:
    session = lab.session("bound-rest", model="claude-opus-5-5")
    session.append({"role": "user", "content": "hello"})
    context = session.context().raw
    assert context["betas"] == [BETA]
    assert context["thinking"] == {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    assert "thinking" not in session.context("openai").request


@pytest.mark.parametrize("changes", [[], [{"type": "thinking_dropped"}]])
def test_what_the_provider_dropped_is_passed_on(
    lab: ContextLab, monkeypatch: pytest.MonkeyPatch, changes: list[Json]
) -> None:
    """Also that it dropped nothing."""
    sent: list[Json] = []
    monkeypatch.setattr(Session, "append", lambda self, message, **more: sent.append(more))
    session = lab.session("bound-reported", model="claude-opus-5-5")
    session.answer({"content": [], "model": "claude-opus-5-5", "input_transformations": changes})
    session.answer({"content": [], "model": "claude-opus-5-5"})
    assert sent == [
        {"model": "claude-opus-5-5", "input_transformations": changes},
        {"model": "claude-opus-5-5"},
    ]


def writes_a_list(number: int) -> Answer:
    """A reply that thinks, and updates its to-do list."""
    todos = [{"content": f"part {number}", "status": "pending"}]
    call = {"type": "tool_use", "id": f"t{number}", "name": "TodoWrite", "input": {"todos": todos}}
    thought = {"type": "thinking", "thinking": f"so {number}", "signature": f"sig {number}"}
    return Answer((thought, call), "tool_use")


@pytest.mark.parametrize(("name", "kept"), [("claude-fable-5-2", 5), ("claude-opus-4-8", 1)])
def test_a_recitation_is_a_system_message_and_takes_no_thinking(
    lab: ContextLab, model: Provider, claude: anthropic.Anthropic, name: str, kept: int
) -> None:
    agent = wrap(claude, f"one-turn-{name}", server=lab, policy="recitation")
    history: list[Json] = [{"role": "user", "content": "go"}]
    for number in range(6):
        model.then(writes_a_list(number))
        asked = {**ASK, "model": name, "tools": [TOOL | {"name": "TodoWrite"}]}
        reply = agent.messages.create(**asked, messages=history)
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "ok"}
        history += [{"role": "assistant", "content": reply.content}]
        history += [{"role": "user", "content": [result]}]
    assert (model.refused, model.dropped) == ([], [])
    body = model.bodies[-1]
    assert thoughts(body) == [f"so {number}" for number in range(5)]
    cleared = [one for one in body["messages"] if one.get("clear_at")]
    assert len(cleared) == kept and body["messages"][-1] is cleared[-1]
    assert "part 4" in cleared[-1]["content"][0]["text"]
    managed = lab.session(f"one-turn-{name}").context()
    at = {"context_id": managed.id}
    again = lab.request("GET", f"sessions/one-turn-{name}/context", query=at)
    assert again["messages"] == managed.messages
    assert "clear-at" in managed.request["extra_headers"]["anthropic-beta"]
