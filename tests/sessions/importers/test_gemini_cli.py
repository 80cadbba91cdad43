"""Chats of Gemini CLI: content is text, a part, or a list of parts; none of it is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sessions import importers
from sessions.actions.imports.verified import verify_log
from sessions.importers.records import Log, Message
from tests.sessions.made import count

PNG = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
TOKENS = {"input": 100, "output": 40, "total": 140}


def chat(*messages: dict[str, Any]) -> bytes:
    return json.dumps({"sessionId": "g", "projectHash": "h", "messages": messages}).encode()


def user(content: Any) -> dict[str, Any]:
    return {"type": "user", "content": content}


def model(content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "gemini", "content": content, "tokens": TOKENS, **more}


def read(*messages: dict[str, Any]) -> tuple[Log, list[list[str]]]:
    log = importers.parse(chat(*messages), "session-g.json")
    said = [one for one in log.sessions[0].records if isinstance(one, Message)]
    return log, [[b.get("text") or b["type"] for b in one.blocks] for one in said]


def test_every_part_of_a_content_becomes_a_block() -> None:
    log, blocks = read(
        user("Read it"),
        model([{"text": "Part one "}, {"text": "why", "thought": True}, "part two"]),
        user([PNG]),
        model({"text": "seen"}),
        user([{"text": "and this"}, {"fileData": {"mimeType": "application/pdf"}}]),
        user("[1, 2]"),
    )
    assert blocks == [
        ["Read it"],
        ["Part one ", "thinking", "part two"],
        ["image"],
        ["seen"],
        ["and this", "document"],
        ["[1, 2]"],
    ]
    assert log.problems == []


def test_parts_of_an_unknown_kind_are_shown_and_named() -> None:
    part = {"executableCode": {"code": "print(1)"}}
    log, blocks = read(user("Run it"), model([{"text": "so"}, part]), model([part]))
    assert blocks == [["Run it"], ["so", "other"], ["other"]]
    assert log.problems == [
        "Parts of an unknown kind, shown as the log has them: executableCode (message 2)."
    ]


def test_images_of_a_result_stay_with_it() -> None:
    reply = {"functionResponse": {"id": "c", "name": "read", "response": {"output": "a png"}}}
    inside = {"functionResponse": {**reply["functionResponse"], "parts": [PNG]}}
    calls = [
        {"id": "c1", "name": "read", "result": [reply, PNG]},
        {"id": "c2", "name": "read", "result": [inside]},
        {"id": "c3", "name": "read", "result": [reply]},
    ]
    log, _ = read(user("Look"), model("", toolCalls=calls))
    last = log.sessions[0].records[-1]
    assert isinstance(last, Message)
    held = [block["content"] for block in last.blocks]
    assert [[one["type"] for one in content] for content in held[:2]] == [["text", "image"]] * 2
    assert held[2] == "a png"


@pytest.mark.django_db
def test_the_second_reader_finds_the_same_parts() -> None:
    reply = {"functionResponse": {"id": "c", "name": "read", "response": {"output": "a png"}}}
    silent = {"functionResponse": {"id": "e", "name": "run", "response": {"output": ""}}}
    call = {"id": "c", "name": "read", "args": {}, "result": [reply, PNG]}
    calls = [call, {"id": "e", "name": "run", "args": {}, "result": [silent]}]
    found = verify_log(
        chat(
            user([{"text": "Read"}, PNG, "both"]),
            model([{"text": "one"}, {"text": "why", "thought": True}], toolCalls=calls),
            user([PNG]),
            model([{"executableCode": {}}, {"text": ""}, {"functionCall": {"name": "x"}}]),
            model("end"),
        ),
        "session-g.json",
        count,
    )
    assert found.differences == []
    assert found.steps == 3


def lined(*said: dict[str, Any]) -> bytes:
    head = {"sessionId": "g", "projectHash": "h", "kind": "main"}
    return b"".join(json.dumps(one).encode() + b"\n" for one in (head, *said))


SET_UP = {"id": "s", **user([{"text": "<session_context>\nLinux\n</session_context>"}])}


@pytest.mark.django_db
def test_a_chat_in_lines_is_read_as_it_stands_at_its_end() -> None:
    data = lined(
        {"$set": {"messages": [SET_UP]}},
        {"id": "1", **user([{"text": "Say hello."}])},
        {"$set": {"lastUpdated": "2026-11-24T17:51:54.458Z"}},
        {"id": "2", **model("Hel")},
        {"id": "2", **model("Hello.")},
        {"id": "3", **user("No.")},
        {"id": "4", **model("Sorry.")},
        {"$rewindTo": "3"},
        {"id": "5", **user("Thanks.")},
    )
    log = importers.parse(data)
    messages = [one for one in log.sessions[0].records if isinstance(one, Message)]
    assert [one.blocks[0]["text"] for one in messages[1:]] == ["Say hello.", "Hello.", "Thanks."]
    assert [one.human for one in messages] == [False, True, False, True]
    assert log.problems == ["Messages that were taken back or replaced, and are not imported: 2."]
    found = verify_log(data, "chat.jsonl", count)
    assert (found.differences, found.steps) == ([], 1)


@pytest.mark.django_db
def test_a_result_that_also_stands_with_its_call_is_read_once() -> None:
    def reply(id: str) -> dict[str, Any]:
        return {"functionResponse": {"id": id, "name": "run", "response": {"output": f"of {id}"}}}

    call = {"id": "c1", "name": "run", "args": {}}
    data = lined(
        {"id": "1", **user("Run it.")},
        {"id": "2", **model("")},
        {"id": "2", **model("", toolCalls=[{**call, "result": [reply("c1")]}])},
        {"id": "3", **user([reply("c1")])},
        {"id": "4", **model([{"functionCall": {**call, "id": "c2"}}])},
        {"id": "5", **user([reply("c2")])},
        {"id": "6", **model("Done.")},
    )
    log = importers.parse(data)
    messages = [one for one in log.sessions[0].records if isinstance(one, Message)]
    said = [(one.role, one.human, one.blocks[0].get("content")) for one in messages]
    roles = ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert [role for role, *_ in said] == roles
    assert [content for role, _, content in said if role == "tool"] == ["of c1", "of c2"]
    assert [human for _, human, _ in said] == [True, *[False] * 5]
    assert ([one.type for one in log.skipped], log.sessions[0].title) == (["functionResponse"], "")
    found = verify_log(data, "chat.jsonl", count)
    assert (found.differences, found.steps) == ([], 3)
