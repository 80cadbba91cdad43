"""The client that agents use, against a running server and a provider of our own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from contextlab.client import ContextLab, Refused, Unreachable, wrap
from contextlab.client.sessions import Session
from tests.conftest import Server, free_port
from tests.provider import Answer, ErrorInStream, Provider, Text, provider

TOOL = {"name": "Read", "input_schema": {"type": "object"}, "description": "Read a file."}


@pytest.fixture(scope="module")
def lab(served: Server) -> Iterator[ContextLab]:
    """A client of the team of this file."""
    with ContextLab(served.address, served.new_key()) as server:
        yield server


@pytest.fixture
def model() -> Iterator[Provider]:
    with provider() as running:
        yield running


@pytest.fixture
def claude(model: Provider) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key="none", base_url=model.url, max_retries=0) as client:
        yield client


def test_pins_reading_back_and_the_end(lab: ContextLab):
    session = lab.session("pinned", model="claude-sonnet-5")
    stored = session.append([{"role": "user", "content": "port 8417\nhost kelp"}])
    session.pin(stored.raw["last_seq"])
    assert session.read_back("m1.0", lines="2-2") == "host kelp"
    session.finish("succeeded")
    assert lab.request("GET", f"sessions/{session.id}")["outcome"] == "succeeded"


def test_a_board_a_share_and_a_search(lab: ContextLab):
    session = lab.session("noted", agent="fixer", task="kelp", opening="board", project="sea")
    session.append({"role": "user", "content": "Count the kelp."})
    session.note("knowledge", "Kelp stands at port 8417.", key="port", files={"a.py": ""})
    assert "<knowledge>Kelp stands at port 8417.</knowledge>" in session.board()
    reader = lab.session("reading", agent="reader")
    assert reader.subscribe("task", "kelp")["value"] == "kelp"
    assert session.share("Kelp is counted.", "counted")["version"] == 1
    found = session.search_memory("kelp port", task="kelp")
    assert found[0]["text"] == "Kelp stands at port 8417."


def test_why_a_text_was_forgotten_and_what_a_session_came_to(lab: ContextLab):
    session = lab.session("asked", model="claude-sonnet-5")
    session.append({"role": "user", "content": "port 8417\nhost kelp"})
    session.append({"role": "assistant", "content": "Noted."})
    found = session.why("8417", policies=True)
    assert (found["text"], found["seen"][0]["entry"], found["removed"]) == ("8417", "1", None)
    assert "balanced@1" in [one["policy"] for one in found["policies"]]
    assert session.why("never said")["seen"] == []
    with pytest.raises(Refused, match="^404: "):
        session.why("8417", run="nowhere")
    assert session.verdict()["sentence"] is None, "it goes on"


def answers(body: dict[str, Any]) -> Answer:
    """Reads a file first, then says that it is done."""
    last = body["messages"][-1]["content"]
    if isinstance(last, list) and any(block["type"] == "tool_result" for block in last):
        return Text("Done.")
    use = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a.py"}}
    return Answer((use,), "tool_use")


def test_a_wrapped_client_sends_the_managed_context_and_stores_what_came(
    lab: ContextLab, model: Provider, claude: anthropic.Anthropic
):
    model.answer = answers
    client = wrap(claude, session="wrapped", server=lab)
    history: list[dict[str, Any]] = [{"role": "user", "content": "What is in a.py?"}]
    ask = {"model": "claude-sonnet-5", "max_tokens": 100, "tools": [TOOL], "system": "Be brief."}
    first = client.messages.create(messages=history, **ask)
    history.append({"role": "assistant", "content": first.content})
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x = 1"}
    history.append({"role": "user", "content": [result]})
    second = client.messages.create(messages=history, **ask)
    assert second.content[0].text == "Done."
    assert not model.refused
    assert [len(body["messages"]) for body in model.bodies] == [1, 3]
    assert model.bodies[0]["system"]
    found = lab.request("GET", f"sessions/{lab.session('wrapped').id}/messages")
    roles = [message["role"] for message in found["messages"]]
    assert roles == ["system", "system", "user", "assistant", "user", "assistant"]
    assert lab.request("GET", "sessions/wrapped")["steps"] == 2


def test_only_what_is_new_is_sent_until_the_history_changes(
    lab: ContextLab, claude: anthropic.Anthropic, monkeypatch: pytest.MonkeyPatch
):
    sent: list[tuple[int, bool, bool]] = []
    step = Session.shared_step

    def counted(self: Session, messages: Any = (), **more: Any) -> Any:
        sent.append((len(messages), more["history"], "system" in more))
        return step(self, messages, **more)

    monkeypatch.setattr(Session, "shared_step", counted)
    client = wrap(claude, session="new-only", server=lab)
    marked = {"type": "text", "text": "One", "cache_control": {"type": "ephemeral"}}
    client.messages.create(messages=said("One"), system="Be brief.", **ASK)
    again = [{"role": "user", "content": [marked]}, *said("One", "ok", "Two")[1:]]
    client.messages.create(messages=again, system="Be brief.", **ASK)
    client.messages.create(messages=said("Once", "ok", "Two"), system="Be brief.", **ASK)
    longer = said("Once", "ok", "Two", "ok", "Three")
    client.messages.create(messages=longer, system="Be long.", **ASK)
    assert sent == [(1, True, True), (1, False, False), (3, True, True), (1, False, True)]
    found = lab.request("GET", "sessions/new-only/messages")["messages"]
    texts = [one["content"][0]["text"] for one in found]
    assert texts[:5] == ["Be brief.", "One", "ok", "Two", "ok"]
    assert texts[-3:] == ["Be long.", "Three", "ok"]


def said(*texts: str) -> list[dict[str, Any]]:
    """Turns of a user and of the model, in turn."""
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]


ASK: dict[str, Any] = {"model": "claude-sonnet-5", "max_tokens": 100}


def words(body: dict[str, Any]) -> list[str]:
    """The texts of a request's messages."""
    contents = [message["content"] for message in body["messages"]]
    return [one if isinstance(one, str) else one[0]["text"] for one in contents]


def test_a_retry_sends_what_was_asked_for(
    lab: ContextLab, model: Provider, claude: anthropic.Anthropic
):
    model.then(Text("one"), Text("two"), Text("three"))
    client = wrap(claude, session="retried", server=lab)
    client.messages.create(messages=said("Hi."), tools=[TOOL], system="Be brief.", **ASK)
    client.messages.create(messages=said("Hi."), **ASK)
    client.messages.create(messages=said("Hi.", "two", "Go on."), **ASK)
    assert [words(body) for body in model.bodies] == [["Hi."], ["Hi."], ["Hi.", "two", "Go on."]]
    assert [sorted({"tools", "system"} & set(body)) for body in model.bodies] == [
        ["system", "tools"], [], [],
    ]  # fmt: skip
    assert [tool["name"] for tool in model.bodies[0]["tools"]] == ["Read"]
    assert lab.request("GET", "sessions/retried")["steps"] == 3
    assert lab.request("GET", "sessions/retried/revisions")["revisions"]


def stored(lab: ContextLab, session: str) -> list[tuple[str, str, bool]]:
    """The model's answer as stored: text, and whether its call is named."""
    found = lab.request("GET", f"sessions/{session}/messages")["messages"]
    return [
        (one["role"], one["content"][0]["text"], bool(one["call"]))
        for one in found
        if one["role"] == "assistant"
    ]


def test_streams_are_managed_as_well(
    lab: ContextLab, model: Provider, claude: anthropic.Anthropic, caplog
):
    model.then(Text("one"), Text("two"), Text("three"), ErrorInStream(Text("four")))
    client = wrap(claude, session="streamed", server=lab)
    with client.messages.stream(messages=said("Hi."), **ASK) as stream:
        assert "".join(stream.text_stream) == "one"
    with client.messages.create(messages=said("Hi.", "one", "On."), stream=True, **ASK) as events:
        assert [event.type for event in events][-1] == "message_stop"
    with client.messages.stream(messages=said("Hi.", "one", "On.", "two", "And?"), **ASK) as stream:
        stream.get_final_message()
    with pytest.raises(anthropic.APIStatusError):
        list(client.messages.create(messages=said("Hi."), stream=True, **ASK))
    assert len(model.bodies) == 4
    assert stored(lab, "streamed") == [("assistant", t, True) for t in ("one", "two", "three")]
    assert lab.request("GET", "sessions/streamed")["steps"] == 3
    assert not caplog.messages


def test_an_asynchronous_client_is_managed_alike(lab: ContextLab, model: Provider):
    async def talk() -> None:
        bare = anthropic.AsyncAnthropic(api_key="none", base_url=model.url, max_retries=0)
        async with wrap(bare, session="awaited", server=lab) as client:
            reply = await client.messages.create(messages=said("Hi."), **ASK)
            assert reply.content[0].text == "one"
            more = said("Hi.", "one", "On.")
            quick = client.with_options(timeout=20)
            async for _ in await quick.messages.create(messages=more, stream=True, **ASK):
                pass
            more = said("Hi.", "one", "On.", "two", "And?")
            async with client.messages.stream(messages=more, **ASK) as stream:
                await stream.get_final_message()

    model.then(Text("one"), Text("two"), Text("three"))
    asyncio.run(talk())
    assert [len(body["messages"]) for body in model.bodies] == [1, 3, 5]
    assert stored(lab, "awaited") == [("assistant", t, True) for t in ("one", "two", "three")]


def test_an_agent_goes_on_where_no_server_answers(
    lab: ContextLab, model: Provider, claude: anthropic.Anthropic, monkeypatch, caplog
):
    clock, asked = [0.0], []
    monkeypatch.setattr("contextlab.client.managed.monotonic", lambda: clock[0])
    away = f"http://127.0.0.1:{free_port()}"
    with ContextLab(away, "clk_none", patience=0) as offline:
        real = offline.request
        monkeypatch.setattr(offline, "request", lambda *call: asked.append(call) or real(*call))
        client = wrap(claude, session="x", server=offline)
        for now, times in ((0.0, 1), (29.0, 1), (31.0, 2)):
            clock[0] = now
            reply = client.messages.create(messages=iter(said("Hi.")), **ASK)
            assert (reply.content[0].text, len(asked)) == ("ok", times)
        assert caplog.text.count("is sent as it is") == 2
        with pytest.raises(Unreachable):
            offline.session("x")
    assert [words(body) for body in model.bodies] == [["Hi."]] * 3


def test_no_error_of_ours_reaches_the_agent(
    lab: ContextLab, model: Provider, claude: anthropic.Anthropic, monkeypatch, caplog
):
    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("said in private")

    client = wrap(claude, session="broken", server=lab)
    monkeypatch.setattr("contextlab.client.sessions.Session.answer", broken)
    assert client.messages.create(messages=said("Hi."), **ASK).content[0].text == "ok"
    refused = wrap(claude, session="refused", server=lab, policy="bogus")
    assert refused.messages.create(messages=said("Hi."), **ASK).content[0].text == "ok"
    monkeypatch.setattr("contextlab.client.sessions.Session.append", broken)
    client = wrap(claude, session="broken", server=lab)
    assert client.messages.create(messages=said("Hi."), **ASK).content[0].text == "ok"
    assert len(caplog.messages) == 3
    assert "ZeroDivisionError" in caplog.text
    assert "private" not in caplog.text


def test_a_field_that_is_none_is_named(lab: ContextLab, caplog: pytest.LogCaptureFixture):
    lab.session("typo", agnt="fixer", title="t", metadata={"mine": 1})
    assert caplog.messages == ['"agnt" is not a session field and was added to metadata']


def test_half_a_character_does_not_stop_an_agent(lab: ContextLab):
    session = lab.session("halves")
    session.append({"role": "user", "content": "caf\udce9 \ud83d"})
    assert session.context().messages[0]["content"][0]["text"] == "caf\ufffd \ufffd"
    assert "caf" in session.read_back("m1.0", grep="caf\udce9?")


def test_a_refusal_names_the_field(lab: ContextLab):
    with pytest.raises(Refused) as refused:
        lab.session("wrong").append([{"role": "wizard", "content": "Hi."}])
    assert refused.value.status == 422
    assert str(refused.value).count("/messages/0/role") == 1
    with ContextLab(lab.url, "clk_missing") as stranger, pytest.raises(Refused) as refused:
        stranger.session("x")
    assert refused.value.status == 401


def test_a_client_without_a_key_says_how_to_get_one(monkeypatch):
    monkeypatch.delenv("CONTEXTLAB_TOKEN", raising=False)
    with pytest.raises(ValueError, match="contextlab token create"):
        ContextLab()
