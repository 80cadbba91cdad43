"""Claude Code logs: conversion of lines, and lines to ignore."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compaction.context.session import Usage
from sessions.importers import parse
from sessions.importers.records import (
    Call,
    Clear,
    Compaction,
    Log,
    Message,
    Record,
    Rewind,
    Session,
)

SAMPLES = Path(__file__).parent / "samples"
SESSION = "0b5c1a52-0000-4000-8000-000000000001"
Json = dict[str, Any]


def load(name: str) -> Log:
    return parse((SAMPLES / name).read_bytes(), name)


def of(session: Session, kind: type[Record]) -> list[Any]:
    return [record for record in session.records if isinstance(record, kind)]


def line(form: str, uuid: str, parent: str | None, **more: Any) -> Json:
    return {
        "type": form,
        "uuid": uuid,
        "parentUuid": parent,
        "isSidechain": False,
        "sessionId": "s",
        "timestamp": "2026-03-01T10:00:00Z",
        **more,
    }


def said(uuid: str, parent: str | None, content: Any = "Do it.", **more: Any) -> Json:
    return line("user", uuid, parent, message={"role": "user", "content": content}, **more)


def answered(uuid: str, parent: str, tool_call: str) -> Json:
    block = {"type": "tool_result", "tool_use_id": tool_call, "content": "ok"}
    return said(uuid, parent, [block])


def responded(
    uuid: str, parent: str | None, call: str, tool_call: str | None = None, **more: Any
) -> Json:
    block: Json = {"type": "text", "text": "Yes."}
    if tool_call:
        block = {"type": "tool_use", "id": tool_call, "name": "Read", "input": {}}
    message = {"role": "assistant", "id": call, "model": "claude-opus-4-5", "content": [block]}
    return line("assistant", uuid, parent, message={**message, **more})


def session_of(*given: Json) -> Session:
    return log_of(*given).sessions[0]


def log_of(*given: Json) -> Log:
    return parse("\n".join(json.dumps(each) for each in given).encode(), "s.jsonl")


def drops(*given: Json) -> list[tuple[str, ...]]:
    return [rewind.drop for rewind in of(session_of(*given), Rewind)]


def test_a_session_of_every_kind_of_line() -> None:
    log = load("claude-code/claude-code.jsonl")
    (session,) = log.sessions
    assert (session.external_id, session.title, session.window) == (SESSION, "Tide table", 200_000)
    assert session.meta["version"] == "2.1.20"
    assert session.meta["spawned"] == {f"{SESSION}/agent-a1b2c3d": "toolu_3"}
    assert [m.blocks[0]["text"] for m in of(session, Message) if m.human] == [
        "The tide table prints one hour late. Find out why.",
        "Fix it in tide.",
        "No, fix it in print_table instead.",
        "Go on.",
    ]
    calls = of(session, Call)
    assert [call.call for call in calls] == [
        "msg_1",
        "msg_1",
        *(f"msg_{n}" for n in range(2, 8)),
        "5e5e",
        "msg_8",
    ]
    assert calls[0].usage == Usage(4, 12000, 3000, 0, 1)
    assert calls[1].usage == Usage(4, 12000, 3000, 0, 96)
    assert calls[2].usage == Usage(3, 15000, 200, 900, 40)
    assert {call.model for call in calls} == {
        "claude-opus-4-5-20251101",
        "claude-sonnet-4-5-20250929",
        "<synthetic>",
    }
    assert [item.type for item in log.skipped if item.reason == "unknown"] == ["a-type-of-tomorrow"]


def test_who_leaves_or_updates_the_client_starts_it_anew() -> None:
    exit_said = "<command-name>/exit</command-name>\n<command-message>exit</command-message>"
    updated = responded("a3", "u3", "c3") | {"version": "2.2", "effort": "high"}
    session = session_of(
        said("u1", None, version="2.1"), responded("a1", "u1", "c1") | {"version": "2.1"},
        said("x", "a1", exit_said), said("u2", "x", version="2.1"),
        responded("a2", "u2", "c2") | {"version": "2.1"}, said("u3", "a2"), updated,
    )  # fmt: skip
    calls = of(session, Call)
    assert [call.client for call in calls] == ["2.1 0", "2.1 1", "2.2 1"]
    assert [call.settings for call in calls] == ["", "", "high"]


def test_going_back_drops_what_was_said_since() -> None:
    (session,) = load("claude-code/claude-code.jsonl").sessions
    (rewind,) = of(session, Rewind)
    dropped = [m for m in of(session, Message) if m.key in rewind.drop]
    assert [m.call for m in dropped] == [None, "msg_4", None, "msg_5"]
    place = session.records.index(rewind)
    assert session.records[place + 1].human  # type: ignore[union-attr]


def test_a_compaction_is_followed_by_its_summary() -> None:
    (session,) = load("claude-code/claude-code.jsonl").sessions
    (compaction,) = of(session, Compaction)
    assert (compaction.trigger, compaction.keep) == ("manual", ())
    assert (compaction.tokens_before, compaction.tokens_after) == (15500, 2100)
    after = session.records[session.records.index(compaction) + 1]
    assert isinstance(after, Message)
    assert (after.kind, after.human) == ("summary", False)


def test_a_microcompaction_clears_results() -> None:
    (session,) = load("claude-code/claude-code.jsonl").sessions
    (clear,) = of(session, Clear)
    assert clear.tool_calls == ("toolu_1",)


def test_an_agent_file_is_a_session_of_its_own() -> None:
    (agent,) = load("claude-code/agent-a1b2c3d.jsonl").sessions
    assert (agent.external_id, agent.parent) == (f"{SESSION}/agent-a1b2c3d", SESSION)
    assert not any(message.human for message in of(agent, Message))
    assert "warmup" not in agent.meta


def test_an_inline_side_chain_is_split_out_and_tied_to_its_task() -> None:
    main, side = load("claude-code/claude-code-inline.jsonl").sessions
    assert side.external_id == f"{main.external_id}/00000203-0000-4000-8000-00000000aaaa"
    assert (side.parent, side.parent_call) == (main.external_id, "toolu_o1")
    assert [call.call for call in of(main, Call)] == ["msg_o1", "msg_o4"]
    assert [call.call for call in of(side, Call)] == ["msg_o2", "msg_o3"]
    assert of(main, Rewind) == of(side, Rewind) == []


def test_two_side_chains_with_one_prompt_are_tied_in_order() -> None:
    task = {"type": "tool_use", "name": "Task", "input": {"prompt": "Go."}}
    tasks = [{**task, "id": "one"}, {**task, "id": "two"}]
    log = log_of(
        responded("a", None, "m", content=tasks),
        said("x", None, "Go.", isSidechain=True),
        said("y", None, "Go.", isSidechain=True),
    )
    assert [session.parent_call for session in log.sessions] == [None, "one", "two"]


def test_a_warm_up_is_flagged() -> None:
    session = session_of(said("u", None, "Warmup", isSidechain=True, agentId="9"))
    assert session.meta["warmup"] is True


PARALLEL = [
    said("u", None),
    responded("a1", "u", "m1", "t1"),
    responded("a2", "a1", "m1", "t2"),
    line("progress", "p", "a1", data={}),
    answered("r1", "p", "t1"),
    answered("r2", "a2", "t2"),
]
TALK = [
    said("u1", None),
    responded("a1", "u1", "m1"),
    said("u2", "a1"),
    responded("a2", "u2", "m2"),
]


@pytest.mark.parametrize("parent", ["r1", "r2"])
def test_forks_at_parallel_tool_calls_are_no_rewind(parent: str) -> None:
    assert drops(*PARALLEL, responded("b", parent, "m2"), said("v", "b")) == []


@pytest.mark.parametrize(
    ("new", "dropped"),
    [
        (said("v", "a2"), []),
        (said("v", "a1"), [("u2", "a2")]),
        (said("v", "u1"), [("a1", "u2", "a2")]),
        (said("v", None), [("u1", "a1", "u2", "a2")]),
        (said("v", "not in this file"), []),
        (said("v", "u1", "<command-name>/x</command-name>"), [("a1", "u2", "a2")]),
        (said("v", "u1", "reminder", isMeta=True), []),
        (responded("v", "u2", "m3"), [("a2",)]),
        (responded("v", "u1", "m3"), []),
    ],
)
def test_what_a_new_entry_leaves_behind(new: Json, dropped: list[tuple[str, ...]]) -> None:
    assert drops(*TALK, new) == dropped


def test_what_fell_does_not_fall_again() -> None:
    assert drops(*TALK, said("v", "a1"), responded("b", "v", "m3"), said("w", "b")) == [
        ("u2", "a2")
    ]


def test_attachments_stay_with_their_prompt_and_fall_with_it() -> None:
    reminder = {"type": "hook_additional_context", "content": ["Mind the tide."]}
    attached = [said("u1", None), line("attachment", "h", "u1", attachment=reminder)]
    assert drops(*attached, responded("a", "u1", "m"), said("u2", "a")) == []
    assert drops(said("u0", None), said("u1", "u0"), *attached[1:], said("v", "u0")) == [
        ("u1", "h")
    ]


def test_a_response_hung_on_its_prompt_again_and_again_is_no_retry() -> None:
    given = [said("u", None), responded("a1", "u", "m1", "t1"), answered("r1", "a1", "t1")]
    assert drops(*given, responded("a2", "u", "m2", "t2"), responded("a3", "u", "m3", "t2")) == []


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


def test_repeated_lines_count_once_and_are_told() -> None:
    log = log_of(*TALK, *TALK)
    assert len(of(log.sessions[0], Message)) == len(TALK)
    assert [item.type for item in log.skipped] == [f"repeated {each['type']}" for each in TALK]
    assert any("4" in problem for problem in log.problems)


def test_a_cut_off_last_line_is_told_apart_from_damage() -> None:
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
