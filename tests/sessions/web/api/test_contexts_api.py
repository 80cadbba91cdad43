"""The context that an agent is given, in its formats, and what it reads back."""

from __future__ import annotations

import pytest

from tests.sessions.programs import Program, assert_problem
from tests.sessions.web.api.talks import TALK

pytestmark = [pytest.mark.store, pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]


@pytest.mark.parametrize(("model", "kind"), [("deepseek-v4-pro", "text"), ("claude-x", "image")])
def test_a_model_that_reads_text_alone_gets_no_image(program: Program, model: str, kind: str):
    program.ask("PUT", "/sessions/pictures", {"agent": "a", "model": model})
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    content = [{"type": "text", "text": "See"}, {"type": "image", "source": source}]
    program.post(
        "/sessions/pictures/messages", {"messages": [{"role": "user", "content": content}]}
    )
    given = program.get("/sessions/pictures/context?format=anthropic")
    assert given["messages"][0]["content"][1]["type"] == kind
    blocks = program.get("/sessions/pictures/context?format=blocks")["blocks"]
    assert blocks[1]["block"]["type"] == "image", "who renders blocks alone gets what there is"


def test_a_context_can_be_had_as_actions_and_observations(talked: Program):
    found = talked.get("/sessions/run/context?format=pairs")
    said = found["messages"][-1]
    assert (found["format"], said["role"]) == ("pairs", "user")
    assert "<action>" in said["content"]
    assert "<observation>\nx = 1\n</observation>" in said["content"]


def test_reading_back_and_the_tool_that_does(talked: Program):
    found = talked.get("/sessions/run/content/3")
    assert (found["text"], found["total_lines"], found["truncated"]) == ("x = 1", 1, False)
    assert talked.get("/sessions/run/content/3?grep=y")["lines"] == [0, 0]
    assert_problem(talked.ask("GET", "/sessions/run/content/99"), 404)
    assert assert_problem(talked.ask("GET", "/sessions/run/content/3?grep=("), 422)["errors"]
    assert assert_problem(talked.ask("GET", "/sessions/run/content/3?head=1&tail=1"), 422)["errors"]
    assert talked.get("/sessions/run/content-tool")["input_schema"]["required"] == ["ref"]
    assert talked.get("/sessions/run/content-tool?format=openai")["type"] == "function"


def test_a_read_only_key_sees_the_context_but_is_handed_none(talked: Program, reader: Program):
    seen = reader.get("/sessions/run/context")
    assert seen["context_id"] is None
    assert seen["messages"] == talked.get("/sessions/run/context")["messages"]


def test_a_context_stays_what_it_was(talked: Program):
    first = talked.get("/sessions/run/context")
    talked.post("/sessions/run/messages", {"messages": [{"role": "user", "content": "and?"}]})
    again = talked.get(f"/sessions/run/context?context_id={first['context_id']}")
    assert again["messages"] == first["messages"]
    assert len(talked.get("/sessions/run/context")["messages"][-1]["content"]) == 2
    assert_problem(talked.ask("GET", "/sessions/run/context?context_id=ctx_nothing"), 404)
    assert assert_problem(talked.ask("GET", "/sessions/run/context?at=99"), 422)["errors"]


@pytest.mark.parametrize(
    ("policy", "hours", "asked"),
    [
        ("balanced", True, ["1h", None]),
        ("balanced", False, [None] * 2),
        ("passthrough", True, ["1h"] * 2),
        ("passthrough", False, [None] * 2),
    ],
)
def test_a_context_asks_for_the_ttls_of_its_policy_and_for_none_longer_than_the_client(
    program: Program, policy: str, hours: bool, asked: list[str | None]
):
    program.ask("PUT", "/sessions/run", {"model": "claude-sonnet-4-5", "policy": policy})
    program.post("/sessions/run/messages", {"system": "Be brief.", "messages": TALK})
    if hours:
        written = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 900}
        usage = {"input_tokens": 9, "output_tokens": 9, "cache_creation": written}
        usage |= {"cache_creation_input_tokens": 900, "cache_read_input_tokens": 0}
        program.post("/sessions/run/calls", {"step": 1, "usage": usage})
    first = program.get("/sessions/run/context")
    for query in ("", f"?context_id={first['context_id']}", f"?at={first['step']}"):
        given = program.get(f"/sessions/run/context{query}")
        parts = [*given["system"], *(one for m in given["messages"] for one in m["content"])]
        marks = [part["cache_control"] for part in parts if "cache_control" in part]
        assert [mark.get("ttl") for mark in marks] == asked


def test_a_context_of_gemini_comes_back_as_it_was_sent(program: Program):
    call = {"functionCall": {"name": "read", "args": {"path": "a"}}, "thoughtSignature": "U0lH"}
    response = {"functionResponse": {"name": "read", "response": {"output": "x = 1"}}}
    contents = [
        {"role": "user", "parts": [{"text": "Read a."}]},
        {"role": "model", "parts": [call]},
        {"role": "user", "parts": [response]},
    ]
    schema = {"type": "OBJECT", "properties": {"path": {"type": "STRING"}}}
    tools = [{"functionDeclarations": [{"name": "read", "parameters": schema}]}]
    program.ask("PUT", "/sessions/run", {"model": "gemini-3-pro", "policy": "passthrough"})
    sent = {"messages": contents, "tools": tools, "system": "Be brief."}
    program.post("/sessions/run/messages", sent)
    given = program.get("/sessions/run/context?format=gemini")
    for content in given["messages"]:
        for part in content["parts"]:
            assert (part.get("functionCall") or part.get("functionResponse") or {}).pop(
                "id", "read"
            )
    assert given["messages"] == contents
    assert given["system"] == [{"text": "Be brief."}]
    [declared] = given["tools"][0]["functionDeclarations"]
    assert declared["parametersJsonSchema"]["type"] == "object"
