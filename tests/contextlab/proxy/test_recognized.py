"""Sessions of model calls, and events of streams."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextlab.client.events import EventReader, encoded, parsed
from contextlab.proxy.recognized import Recognized, recognized, with_summary
from contextlab.proxy.sessions import ProxySessions, SeenCall

CLAUDE = {"user-agent": "claude-cli/2.1.197 (external, cli)", "x-claude-code-session-id": "s1"}
CODEX = {"user-agent": "codex_exec/0.169.0 (Debian 12)", "session-id": "c1", "thread-id": "c1"}
COMMITTING = (
    "You are an expert software engineer that generates concise, one-line Git commit messages"
)
TOOLS = {"tools": [{"name": "Bash"}]}


@pytest.mark.parametrize(
    ("headers", "body", "found"),
    [
        (CLAUDE, TOOLS, Recognized("s1", "claude-code")),
        (
            CLAUDE,
            {},
            Recognized("s1/side-calls", "claude-code", "s1", "Side calls", is_side_call=True),
        ),
        (
            CLAUDE | {"x-claude-code-agent-id": "a1"},
            {},
            Recognized("s1/a1", "claude-code", "s1"),
        ),
        (
            CLAUDE | {"x-claude-code-agent-id": "a2", "x-claude-code-parent-agent-id": "a1"},
            {},
            Recognized("s1/a2", "claude-code", "s1/a1"),
        ),
        ({"user-agent": "codex_cli_rs/0.1", "session-id": "c1"}, {}, Recognized("c1", "codex")),
        (
            {"user-agent": "GeminiCLI-tui/0.61.0/gemini-2.5-pro", "session-id": "g1"},
            {},
            Recognized("g1", "gemini-cli"),
        ),
        (
            {**CODEX, "thread-id": "t2", "x-codex-parent-thread-id": "c1"},
            {},
            Recognized("t2", "codex", "c1"),
        ),
        (
            {**CODEX, "x-codex-turn-metadata": '{"request_kind": "memory"}'},
            {},
            Recognized("c1/side-calls", "codex", "c1", "Side calls", is_side_call=True),
        ),
        (
            {"user-agent": "codex_exec", "session-id": "c1", "x-codex-turn-metadata": "[" * 9_999},
            {},
            Recognized("c1", "codex"),
        ),
        (
            CODEX,
            {"messages": [{"role": "user", "content": "<environment>", "kind": "memory"}]},
            Recognized("c1", "codex"),
        ),
        (
            {"user-agent": "QwenCode/0.24.4 (linux; x64)", "session-id": "q1"},
            {"messages": [{"role": "user", "content": '"Look through it."'}]},
            Recognized("q1", "qwen-code", "", "Look through it."),
        ),
        (
            {"user-agent": "ai-sdk/openai-compatible/3.0.37", "session-id": "a1"},
            {"system": [{"type": "text", "text": "You are Cline, an AI coding agent."}]},
            Recognized("a1", "cline"),
        ),
        (
            {"user-agent": "ai-sdk/openai-compatible/3.0.37", "session-id": "a1"},
            {"messages": [{"role": "user", "content": 'Is "a" the same as "b"'}]},
            Recognized("a1", "ai-sdk", "", 'Is "a" the same as "b"'),
        ),
        (
            {"session-id": "a1"},
            {"messages": [{"role": "user", "content": '"a" is not "b"'}]},
            Recognized("a1", "agent", "", '"a" is not "b"'),
        ),
        ({}, {"prompt_cache_key": "p1"}, Recognized("p1", "agent")),
        (
            {"user-agent": "OpenAI/Python 1.99", "x-contextlab-session": "a1"},
            {"messages": [{"role": "system", "content": f"{COMMITTING} for the diffs."}]},
            Recognized("a1/side-calls", "aider", "a1", "Side calls", is_side_call=True),
        ),
        ({"x-contextlab-session": "mine", **CLAUDE}, TOOLS, Recognized("mine", "claude-code")),
        (
            {"user-agent": "Anthropic/Python 1.0"},
            {"metadata": {"user_id": "user_1_account_2_session_0a1b2c3d-4e"}},
            Recognized("0a1b2c3d-4e", "anthropic"),
        ),
        (
            {},
            {"metadata": {"user_id": json.dumps({"session_id": "j1"})}},
            Recognized("j1", "agent"),
        ),
    ],
)
def test_sessions_are_recognized(headers: Any, body: Any, found: Recognized) -> None:
    assert recognized(headers, body) == found


def test_gemini_cli_chooses_its_model_in_a_side_call() -> None:
    asked: Any = {"messages": [{"role": "user", "content": "Rename it."}]}
    routing = {"system": "\nYou are a specialized Task Routing AI. Assign a score.", **asked}
    aside, own = (recognized({"user-agent": "GeminiCLI/0.61.0"}, one) for one in (routing, asked))
    assert (aside.agent, aside.title, aside.is_side_call) == ("gemini-cli", "Side calls", True)
    assert (own.title, own.is_side_call) == ("Rename it.", False)
    assert own.session != aside.session


def test_a_side_call_without_a_session_is_one_of_the_latest_with_its_key() -> None:
    def seen(call: Recognized, key: str = "k1") -> Recognized:
        return sessions.continued(key, SeenCall(form, {}, {}, call)).call

    form: Any = None
    sessions = ProxySessions("http://unused", 1.0)
    asked = {"system": f"{COMMITTING} based on diffs.", "messages": []}
    aside = recognized({"user-agent": "OpenAI/Python 1.99"}, asked)
    assert (aside.agent, aside.parent, aside.is_side_call) == ("aider", "", True)
    assert seen(aside) == aside, "no session was seen yet"
    for name in ("aider-1", "aider-2"):
        seen(Recognized(name, "aider"))
    seen(Recognized("other", "cline"))
    seen(Recognized("aider-3", "aider"), "k2")
    found = seen(aside)
    assert (found.session, found.parent) == ("aider-2/side-calls", "aider-2")
    assert seen(aside) == found, "a side call is no session to belong to"
    sessions.close()


@pytest.mark.parametrize(
    "metadata",
    [
        *(None, [], {}, {"user_id": 3}, {"user_id": "{"}, {"user_id": "[1]"}),
        {"user_id": "[" * 100_000},
    ],
)
def test_without_an_id_a_session_is_its_beginning(metadata: Any) -> None:
    def named(*texts: str, system: Any = "Be brief.") -> str:
        messages = [{"role": "user", "content": text} for text in texts]
        return recognized(
            {}, {"system": system, "messages": messages, "metadata": metadata}
        ).session

    assert named("one") == named("one", "two")
    assert named("one") != named("two")
    assert named("one") != named("one", system="Be long.")
    mark = {"cache_control": {"type": "ephemeral"}}
    block = {"type": "text", "text": "Be brief."}
    assert named("one", system=[block]) == named("one", system=[block | mark])


@given(st.lists(st.integers(0, 80)), st.sampled_from(["\n", "\r\n"]))
def test_events_are_read_wherever_bytes_are_cut(cuts: list[int], end: str) -> None:
    whole = end.join(
        ["event: ping", 'data: {"a": 1}', "", ": note", "", "data: x", "data: y", "", ""]
    )
    data = whole.encode()
    places = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    reader = EventReader()
    found = [
        one for a, b in zip(places, places[1:], strict=False) for one in reader.feed(data[a:b])
    ]
    assert found == [b'{"a": 1}', b"x\ny"]


@pytest.mark.parametrize(
    ("data", "again"),
    [
        (b'{"a":[1,2.5,"\xc3\xa9"]}', b'{"a":[1,2.5,"\xc3\xa9"]}'),
        (b'{"a":"\\ud83d\\ude00 \\udc80"}', b'{"a":"\xf0\x9f\x98\x80 \\udc80"}'),
        (b'{"a":123456789012345678901234567890}', b'{"a":123456789012345678901234567890}'),
    ],
)
def test_what_agents_send_is_read_and_written_as_it_is(data: bytes, again: bytes) -> None:
    found = parsed(data)
    assert found == json.loads(data)
    assert encoded(found) == again


@pytest.mark.parametrize("data", [b"[1]", b"{", b"", b'{"a":' + b"[" * 100_000])
def test_what_is_no_object_is_none(data: bytes) -> None:
    assert parsed(data) is None


SUMMARY = {
    "type": "text",
    "text": "This session is being continued from a previous conversation that ran out of context.",
}
REMINDER = {"type": "text", "text": "<system-reminder>Use it.</system-reminder>"}


def test_a_summary_by_the_agent_is_a_message_of_its_own() -> None:
    reply = {"role": "assistant", "content": "ok"}
    quoted = {"role": "user", "content": [SUMMARY]}
    first = {"role": "user", "content": [REMINDER, SUMMARY, {"type": "text", "text": "Go on."}]}
    body = {"model": "m", "messages": [first, reply, quoted]}
    assert with_summary(body)["messages"] == [
        {"role": "user", "content": [REMINDER]},
        {"role": "user", "content": [SUMMARY], "kind": "summary"},
        {"role": "user", "content": [{"type": "text", "text": "Go on."}]},
        reply,
        quoted,
    ]
    alone = {"messages": [{"role": "user", "content": SUMMARY["text"]}]}
    assert with_summary(alone)["messages"][0]["kind"] == "summary"


@pytest.mark.parametrize(
    "messages", [None, "x", [1], [{"role": "user", "content": None}], [{"role": "system"}]]
)
def test_other_histories_stay_as_they_are(messages: Any) -> None:
    body = {"messages": messages}
    assert with_summary(body) is body
