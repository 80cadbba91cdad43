"""Models that take system messages for one turn: a recitation is one, and takes no thinking."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction import render
from compaction.context.blocks import FileRef
from compaction.context.session import Session
from compaction.fold.fold import Arrival, State, advance, start
from compaction.policies.policy import Policy
from compaction.policies.presets import PRESETS
from compaction.prices.binding import binds_thinking
from compaction.prices.system_messages import takes_system_messages
from compaction.proposals.plan import Means
from compaction.recitation.recite import Recite
from compaction.simulation.simulate import simulate
from compaction.summaries.extract import extractive
from tests import provider_rules, provider_system
from tests.build import Talk, rough
from tests.compaction.fold.test_preserved_thinking import signed, thinking
from tests.compaction.talks import policies, talks
from tests.provider_binding import Bindings

BINDING, OTHER = "claude-fable-5-2", "claude-opus-4-8"
RECITES = Policy("p", recite=Recite())


class Agent:
    """An agent on a model: what each of its contexts was, and what its provider refused."""

    def __init__(self, session: Session, policy: Policy, model: str) -> None:
        self.session, self.model, self.provider = session, model, Bindings()
        self.means = Means(rough, extractive, binds=binds_thinking(model), one_turn=True)
        self.state = start(policy, session.window, self.means)
        self.said: dict[int, str] = {}
        self.bodies: list[dict[str, Any]] = []
        self.refused: list[str] = []
        for call in session.calls:
            self._call(call.step, call.at)

    def _call(self, step: int, at: int | None) -> None:
        born = [block for block in self.session.blocks if block.born == step]
        advance(self.state, Arrival(step, tuple(born), at))
        body = self._asked()
        if body["messages"][-1].get("clear_at") and self.means.binds:
            self.said[step] = body["messages"][-1]["content"][0]["text"]
        self.bodies.append(body)
        self.refused += self.provider.invalid(body)
        self.refused += provider_system.wrong(body)
        answer = [b for b in self.session.blocks if b.born == step + 1 and b.role == "assistant"]
        if born[-1:] and born[-1].role == "user":  # no model goes on by itself
            spoken = [one for one in answer if one.type != "text" or one.text.strip()]
            self.provider.note(body, [signed(block) for block in spoken])

    def _asked(self) -> dict[str, Any]:
        ending = replace(self.state.ending, earlier=dict(self.said))
        body = render.anthropic(self.state.standing.values(), signed, ending, system_messages=True)
        return {**body, "model": self.model}


@given(
    talks(),
    st.one_of(st.sampled_from(list(PRESETS.values())), policies()),
    st.sampled_from([BINDING, OTHER]),
)
def test_no_context_is_refused(session: Session, policy: Policy, model: str) -> None:
    agent = Agent(session, policy, model)
    assert agent.refused == []
    for body in agent.bodies:
        sent = {name: value for name, value in body.items() if name != "notes"}
        if sent["messages"]:
            assert provider_rules.anthropic({**sent, "max_tokens": 1}) == []


def reciting(steps: int = 3) -> Talk:
    talk = Talk()
    talk.system("be careful")
    talk.user("go")
    for number in range(steps):
        talk.respond()
        talk.think(f"so {number}")
        todos = [{"content": f"part {number}", "status": "pending"}]
        talk.result(talk.call("TodoWrite", {"todos": todos}), "ok")
    return talk


def roles(body: dict[str, Any]) -> list[str]:
    return [f"{m['role']}*" if m.get("clear_at") else m["role"] for m in body["messages"]]


def test_thinking_made_after_a_recitation_stays() -> None:
    agent = Agent(reciting().session(), RECITES, BINDING)
    assert agent.refused == []
    assert len(thinking(agent.state)) == 3 and not agent.state.made
    assert roles(agent.bodies[-1]) == [
        *("user", "assistant", "user"),
        *("system*", "assistant", "user"),
        *("system*", "assistant", "user"),
        "system*",
    ]
    seen = provider_system.shown(agent.bodies[-1]["messages"])
    assert [one["role"] for one in seen].count("system") == 1, "earlier ones cost nothing"


def test_a_recitation_is_sent_again_unchanged() -> None:
    agent = Agent(reciting().session(), RECITES, BINDING)
    for before, after in zip(agent.bodies, agent.bodies[1:], strict=False):
        bare = [{**m, "content": [_bare(b) for b in m["content"]]} for m in after["messages"]]
        again = [{**m, "content": [_bare(b) for b in m["content"]]} for m in before["messages"]]
        assert bare[: len(again)] == again


def _bare(block: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name != "cache_control"}


def test_a_model_that_binds_nothing_is_sent_the_newest_only() -> None:
    agent = Agent(reciting().session(), RECITES, OTHER)
    assert roles(agent.bodies[-1]).count("system*") == 1


def test_without_such_messages_it_ends_the_users() -> None:
    agent = Agent(reciting().session(), RECITES, BINDING)
    made = render.anthropic(agent.state.standing.values(), signed, agent.state.ending)
    assert made["messages"][-1]["role"] == "user"
    assert made["messages"][-1]["content"][-1]["text"] == agent.state.ending.text


def test_breakpoints_stand_before_it() -> None:
    agent = Agent(reciting().session(), RECITES, BINDING)
    *_, user, system = agent.bodies[-1]["messages"]
    assert "cache_control" in user["content"][-1]
    assert "cache_control" not in system["content"][-1]


def test_no_word_of_a_result_is_in_a_system_message() -> None:
    talk = reciting(1)
    for number in range(12):
        talk.respond()
        path = f"/a/file_{number}.log"
        read = talk.call("Read", {"file_path": path}, file=FileRef(path, "read"))
        talk.result(read, f"obey_me_{number} error: obey_me\n" * 900)
    talk.respond()
    read = talk.call("Read", {"file_path": "todo.md"}, file=FileRef("todo.md", "read"))
    talk.result(read, "- [ ] obey_me")
    policy = replace(PRESETS["recitation"], recite=Recite(tokens=5_000, dashboard=2_000))
    agent = Agent(talk.session(), policy, BINDING)
    text = agent.state.ending.text
    assert "file_11.log" in text and "not written in this session" in text
    assert "obey_me" not in text
    user = Means(rough, extractive)
    assert "obey_me" in _last(talk.session(), policy, user).ending.text


def _last(session: Session, policy: Policy, means: Means) -> State:
    state = start(policy, session.window, means)
    for call in session.calls:
        born = tuple(block for block in session.blocks if block.born == call.step)
        advance(state, Arrival(call.step, born, call.at))
    return state


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("result", ["user", "assistant", "user", "system", "assistant", "user"]),
        ("answer", ["user", "assistant", "user", "assistant", "user", "assistant", "user"]),
    ],
)
def test_a_system_message_stays_in_its_place(after: str, expected: list[str]) -> None:
    talk = Talk()
    talk.system("be careful")
    talk.user("go")
    talk.respond()
    talk.think("so")
    talk.result(talk.call("Bash", {"command": "ls"}), "ok")
    if after == "answer":
        talk.respond()
        talk.say("done")
    talk.system("another rule")
    talk.respond()
    talk.think("so it is")
    talk.result(talk.call("Bash", {"command": "make"}), "ok")
    agent = Agent(talk.session(), PRESETS["passthrough"], BINDING)
    assert agent.refused == []
    body = agent.bodies[-1]
    assert roles(body) == expected
    assert [block["text"] for block in body["system"]] == ["be careful"]
    said = [b for m in body["messages"] for b in m["content"] if b.get("text") == "another rule"]
    assert len(said) == 1
    assert len(thinking(agent.state)) == 2


def test_a_simulation_keeps_the_thinking_too() -> None:
    session = reciting(6).session()
    made = simulate(replace(session, model=BINDING), RECITES, rough)
    assert made.revisions == () and made.steps[-1].recited > 0


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        ("claude-opus-4-8", True),
        ("claude-opus-5-20260801", True),
        ("anthropic/claude-sonnet-5.5", True),
        ("claude-haiku-5-5", False),
        ("claude-fable-5", True),
        ("claude-mythos-5-2", True),
        ("claude-sonnet-5", False),
        ("claude-opus-4-7", False),
        ("claude-haiku-4-5", False),
        ("gpt-5.5", False),
        ("", False),
    ],
)
def test_which_models_take_them(model: str, takes: bool) -> None:
    assert takes_system_messages(model) is takes
