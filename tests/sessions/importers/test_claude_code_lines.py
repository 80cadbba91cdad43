"""Claude Code logs: conversion of lines, and lines to ignore."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compaction.context.session import Usage
from sessions.importers import parse
from sessions.importers.records import Call, Compaction, Message, Rewind
from tests.sessions.importers.claude_lines import (
    TALK,
    Json,
    line,
    log_of,
    of,
    responded,
    said,
    session_of,
)


@pytest.mark.parametrize(
    ("metadata", "kept"),
    [
        ({}, ()),
        ({"preservedSegment": {"headUuid": "u2", "tailUuid": "a2"}}, ("u2", "a2")),
        ({"preservedSegment": {"headUuid": "u2", "tailUuid": "gone"}}, ()),
        ({"preservedMessages": {"uuids": ["a2", "gone", 7]}}, ("a2",)),
        ({"preservedMessages": {"uuids": "a2"}}, ()),
    ],
)
def test_a_compaction_keeps_what_the_log_names(metadata: Json, kept: tuple[str, ...]) -> None:
    boundary = line("system", "c", None, subtype="compact_boundary", compactMetadata=metadata)
    session = session_of(*TALK, boundary, said("v", "c"))
    assert [compaction.keep for compaction in of(session, Compaction)] == [kept]
    assert of(session, Rewind) == []


@pytest.mark.parametrize(
    ("content", "more", "human"),
    [
        ("Hello", {}, True),
        ([{"type": "image", "source": {}}], {}, True),
        ("", {}, False),
        ("Hello", {"isMeta": True}, False),
        ("Hello", {"isSidechain": True}, False),
        ("Hello", {"isCompactSummary": True}, False),
        ("Hello", {"origin": {"kind": "task-notification"}}, False),
        ("<command-name>/clear</command-name>", {}, False),
        ("<local-command-stdout>", {}, False),
        ("<task-notification>", {}, False),
        ("<bash-input>ls", {}, False),
        ("Caveat: local", {}, False),
        ("[Request interrupted by user]", {}, False),
        ([{"type": "tool_result", "tool_use_id": "t", "content": "x"}], {}, False),
    ],
)
def test_who_wrote_a_user_line(content: Any, more: Json, human: bool) -> None:
    (message,) = of(session_of(said("u", None, content, **more)), Message)
    assert message.human is human


@pytest.mark.parametrize(
    ("attachment", "kind", "text"),
    [
        ({"type": "nested_memory", "content": {"content": "A"}}, "memory", "A"),
        ({"type": "skill_listing", "content": "A"}, "memory", "A"),
        ({"type": "deferred_tools_delta", "addedLines": ["A", "B"]}, "memory", "A\nB"),
        ({"type": "total_tokens_reminder", "text": "A"}, "memory", "A"),
        ({"type": "hook_success", "hookEvent": "SessionStart", "content": "A"}, "memory", "A"),
        ({"type": "file", "content": {"file": {"content": "A"}}}, "file", "A"),
        ({"type": "edited_text_file", "snippet": "A"}, "file", "A"),
        ({"type": "queued_command", "prompt": "A"}, None, "A"),
    ],
)
def test_attachments_that_enter_the_prompt(attachment: Json, kind: str | None, text: str) -> None:
    session = session_of(said("u", None), line("attachment", "h", "u", attachment=attachment))
    message = of(session, Message)[1]
    assert (message.role, message.kind, message.blocks) == (
        "user",
        kind,
        [{"type": "text", "text": text}],
    )
    assert message.human is (attachment["type"] == "queued_command")


@pytest.mark.parametrize(
    ("attachment", "reason"),
    [
        ({"type": "hook_success", "hookEvent": "PostToolUse", "content": "A"}, "not context"),
        ({"type": "hook_system_message", "content": "A"}, "not context"),
        ({"type": "task_reminder", "content": []}, "not context"),
        ({"type": "skill_listing", "content": ""}, "not context"),
        ({"type": "of tomorrow", "content": "A"}, "unknown"),
        ("text", "unknown"),
    ],
)
def test_attachments_that_do_not(attachment: Any, reason: str) -> None:
    log = log_of(said("u", None), line("attachment", "h", "u", attachment=attachment))
    assert [item.reason for item in log.skipped] == [reason]


def test_an_api_error_is_a_call_without_a_message() -> None:
    error = {**responded("a", "u", "m", model="<synthetic>"), "isApiErrorMessage": True}
    session = session_of(said("u", None), error)
    assert [message.role for message in of(session, Message)] == ["user"]
    assert [(c.usage, c.stop_reason) for c in of(session, Call)] == [(None, "api_error")]


@pytest.mark.parametrize(
    ("usage", "expected", "reconciles"),
    [
        ({"input_tokens": 1, "output_tokens": 2}, Usage(uncached=1, output=2), True),
        ({"input_tokens": 1, "cache_creation_input_tokens": 9}, Usage(1, 0, 9), True),
        (
            {
                "cache_creation_input_tokens": 9,
                "cache_creation": {"ephemeral_1h_input_tokens": 4, "ephemeral_5m_input_tokens": 0},
            },
            Usage(cache_write_1h=9),
            False,
        ),
        ({"input_tokens": -5, "output_tokens": True}, None, True),
        ({"input_tokens": 0}, None, True),
        ("none", None, True),
    ],
)
def test_usage_is_normalised_and_never_repaired(
    usage: Any, expected: Usage | None, reconciles: bool
) -> None:
    (call,) = of(session_of(responded("a", None, "m", usage=usage)), Call)
    assert (call.usage, call.reconciles) == (expected, reconciles)


@pytest.mark.parametrize(
    ("model", "prompt", "window"),
    [
        ("claude-opus-4-5", 5, 200_000),
        ("claude-opus-4-5", 200_001, 1_000_000),
        ("claude-opus-4-5[1m]", 5, 1_000_000),
        ("model-of-tomorrow", 5, None),
    ],
)
def test_the_window_is_known_or_left_open(model: str, prompt: int, window: int | None) -> None:
    usage = {"input_tokens": prompt, "output_tokens": 1}
    assert session_of(responded("a", None, "m", model=model, usage=usage)).window == window


def test_repeated_lines_count_once_and_are_reported() -> None:
    log = log_of(*TALK, *TALK)
    assert len(of(log.sessions[0], Message)) == len(TALK)
    assert [item.type for item in log.skipped] == [f"repeated {each['type']}" for each in TALK]
    assert any("4" in problem for problem in log.problems)


def test_a_cut_off_last_line_is_not_damage() -> None:
    whole = json.dumps(said("u", None)).encode()
    growing = parse(whole + b"\n" + whole[:40])
    damaged = parse(whole[:40] + b"\n" + whole + b"\n" + whole[:-1] + b"\n" + whole)
    assert [item.reason for item in growing.skipped] == ["malformed"]
    assert "still being written" in growing.problems[0]
    assert not any("still written" in problem for problem in damaged.problems)
    assert [item.line for item in damaged.skipped] == [1, 3, 4]


def test_much_damage_is_one_sentence() -> None:
    (problem,) = parse(
        b"\n".join([json.dumps(said("u", None)).encode()] * 9 + [b"{"] * 9 + [b""])
    ).problems[:1]
    assert "10, 11, 12, 13, 14 and 4 more" in problem


def test_summaries_of_other_sessions_are_no_title() -> None:
    foreign = {"type": "summary", "summary": "Elsewhere", "leafUuid": "far"}
    own = {"type": "summary", "summary": "Here", "leafUuid": "u1"}
    assert session_of(foreign, *TALK).title == ""
    assert session_of(foreign, *TALK, own, foreign).title == "Here"


def test_the_file_name_names_the_session_only_where_the_file_agrees() -> None:
    lines = [said("u", None), {**said("v", "u"), "sessionId": "t"}]
    data = "\n".join(json.dumps(each) for each in lines).encode()
    named = [parse(data, name).sessions[0].external_id for name in ("t.jsonl", "upload.jsonl")]
    assert named == ["t", "s"]
    assert any("2 session ids" in problem for problem in parse(data).problems)
