"""Codex rollouts: the items are the context, the events their mirror."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compaction.context.session import Usage
from sessions.actions.accounts.teams import local_team
from sessions.actions.imports import verified
from sessions.actions.record.append import append
from sessions.importers import counts, parse
from sessions.importers.records import Call, Compaction, Log, Message, Rewind, Session
from tests.sessions.made import count as counted

SAMPLE = Path(__file__).parent / "samples" / "codex-rollout" / "codex.jsonl"


def of(session: Session, kind: type[Any]) -> list[Any]:
    return [record for record in session.records if isinstance(record, kind)]


def log_of(*lines: tuple[str, Any]) -> Log:
    return parse(data_of(*lines), "rollout.jsonl")


def data_of(*lines: tuple[str, Any]) -> bytes:
    given = [{"timestamp": "2026-04-02T08:00:00Z", "type": t, "payload": p} for t, p in lines]
    return "\n".join(json.dumps(each) for each in given).encode()


def message(role: str, text: str) -> tuple[str, Any]:
    content = [{"type": "input_text", "text": text}]
    return "response_item", {"type": "message", "role": role, "content": content}


def count(total: int, last: int = 10) -> tuple[str, Any]:
    info = {
        "total_token_usage": {"input_tokens": total},
        "last_token_usage": {"input_tokens": last, "cached_input_tokens": 4, "output_tokens": 3},
    }
    return "event_msg", {"type": "token_count", "info": info}


def test_a_rollout() -> None:
    log = parse(SAMPLE.read_bytes(), SAMPLE.name)
    (session,) = log.sessions
    assert session.external_id == "01900000-0000-7000-8000-000000000001"
    assert (session.model, session.window) == ("gpt-5.5", 258_400)
    assert [call.usage for call in of(session, Call)] == [
        Usage(uncached=4000, cache_read=1000, output=80, reasoning=20),
        Usage(uncached=500, cache_read=4900, output=60),
        Usage(uncached=200, cache_read=5400, output=15),
        Usage(uncached=2000, cache_read=1000, output=9),
    ]
    assert all(call.reconciles for call in of(session, Call))
    prompts = [m.blocks[0]["text"] for m in of(session, Message) if m.human]
    assert prompts == ["Why is the lamp off?", "And the horn?", "Paint the door."]
    assert [m.kind for m in of(session, Message)[:4]] == ["system", "system", "memory", None]
    assert {item.type for item in log.skipped if item.reason == "unknown"} == {"something_new"}


def test_calls_ask_for_the_effort_of_their_turn() -> None:
    (session,) = log_of(
        ("turn_context", {"model": "gpt-5.6", "effort": "low"}),
        message("user", "One."), count(10),
        ("turn_context", {"model": "gpt-5.6", "effort": "high"}),
        message("user", "Two."), count(20),
    ).sessions  # fmt: skip
    assert [call.settings for call in of(session, Call)] == ["low", "high"]


def test_items_carry_the_call_that_the_next_count_ends() -> None:
    (session,) = parse(SAMPLE.read_bytes()).sessions
    first = [m for m in of(session, Message) if m.call == "call-1"]
    assert [m.blocks[0]["type"] for m in first] == ["thinking", "tool_use", "tool_use"]
    assert first[0].blocks[0]["thinking"] == "Look at the lamp."
    assert first[0].blocks[0]["encrypted_content"] == "AAAA"
    assert [m.blocks[0]["input"] for m in first[1:]] == [
        {"cmd": "cat lamp.py"},
        {"arguments": '{"cmd":"git log'},
    ]


def test_a_call_in_flight_is_not_counted_yet() -> None:
    log = parse(SAMPLE.read_bytes())
    assert of(log.sessions[0], Message)[-1].call == "call-5"
    assert counts(log)["calls"] == 4


def uncounted() -> list[tuple[str, Any]]:
    def item(**payload: Any) -> tuple[str, Any]:
        return "response_item", payload

    return [
        ("session_meta", {"id": "u"}),
        message("user", "List."),
        item(type="reasoning", summary=[]),
        item(type="function_call", name="ls", arguments="{}", call_id="a"),
        item(type="function_call", name="pwd", arguments="{}", call_id="b"),
        item(type="function_call_output", call_id="a", output="x"),
        item(type="function_call_output", call_id="b", output="y"),
        item(type="custom_tool_call", name="apply_patch", input="p", call_id="c"),
        item(type="custom_tool_call_output", call_id="c", output="Done!"),
        message("assistant", "Listed."),
        message("user", "Thanks."),
        message("assistant", "Bye."),
    ]


def test_without_counts_each_answer_to_something_new_is_a_call() -> None:
    log = log_of(*uncounted())
    (session,) = log.sessions
    said = [one.call for one in of(session, Message) if one.role == "assistant"]
    assert said == ["call-1", "call-1", "call-1", "call-2", "call-3", "call-4"]
    assert [one.call for one in of(session, Call)] == ["call-1", "call-2", "call-3"]
    assert (counts(log)["calls"], counts(log)["usage_calls"]) == (4, 0)


def test_with_counts_a_result_within_a_response_does_not_end_it() -> None:
    log = log_of(message("assistant", "Hm."), count(5), *uncounted(), count(20))
    assert [one.call for one in of(log.sessions[0], Call)] == ["call-1", "call-2"]


@pytest.mark.django_db
def test_without_counts_import_store_and_verify_agree_however_the_log_grew() -> None:
    lines = uncounted()
    whole = verified.verify_log(data_of(*lines), "rollout.jsonl", counted)
    assert (whole.steps, whole.differences) == (4, [])
    for end in range(2, len(lines) + 1):
        stored = append(local_team(), log_of(*lines[:end]).sessions[0], counted, source="test")
    assert stored.session.step_count == 4


def test_a_prompt_after_an_aborted_call_is_not_part_of_it() -> None:
    reasoning = "response_item", {"type": "reasoning", "summary": []}
    aborted = "event_msg", {"type": "turn_aborted"}
    after = message("user", "Stop."), message("assistant", "Yes."), count(20)
    log = log_of(message("user", "Go."), reasoning, aborted, *after, reasoning, count(30))
    assert [one.call for one in of(log.sessions[0], Message)] == [
        *(None, "call-1", None, "call-1.1"),
        "call-2",
    ]
    assert [one.call for one in of(log.sessions[0], Call)] == ["call-1.1", "call-2"]
    # Without a call to cut off, ids stay as they are.
    kept = log_of(message("user", "Go."), aborted, *after)
    assert [one.call for one in of(kept.sessions[0], Call)] == ["call-1"]


def test_a_compaction_keeps_what_comes_again_and_brings_the_rest() -> None:
    (session,) = parse(SAMPLE.read_bytes()).sessions
    (compaction,) = of(session, Compaction)
    kept = [m for m in of(session, Message) if m.key in compaction.keep]
    assert [m.blocks[0]["text"] for m in kept] == [
        "You are a careful harbour master.",
        "Writing is allowed in /home/ada/harbour.",
        "Why is the lamp off?",
    ]
    place = session.records.index(compaction)
    new = session.records[place + 1 : place + 3]
    assert [(m.kind, m.human) for m in new] == [("memory", False), ("summary", False)]  # type: ignore[union-attr]


def test_a_second_summary_is_not_taken_for_the_first() -> None:
    history = [{"type": "compaction", "id": f"c{n}", "encrypted_content": "R"} for n in (1, 2)]
    (session,) = log_of(
        message("user", "Go."),
        *(("compacted", {"message": "", "replacement_history": [item]}) for item in history),
    ).sessions
    assert [compaction.keep for compaction in of(session, Compaction)] == [(), ()]
    assert [m.kind for m in of(session, Message)] == [None, "summary", "summary"]


def test_old_compactions_keep_prompts_and_state_a_summary() -> None:
    (session,) = log_of(
        message("user", "Go."), message("assistant", "Gone."), ("compacted", {"message": "Went."})
    ).sessions
    assert [compaction.keep for compaction in of(session, Compaction)] == [("line-1",)]
    assert of(session, Message)[-1].kind == "summary"


def test_a_rollback_drops_the_turns_it_names() -> None:
    (session,) = log_of(
        *(message(role, f"{role} {n}") for n in range(3) for role in ("user", "assistant")),
        ("event_msg", {"type": "thread_rolled_back", "num_turns": 2}),
        ("event_msg", {"type": "thread_rolled_back", "num_turns": 9}),
    ).sessions
    assert [r.drop for r in of(session, Rewind)] == [("line-3", "line-4", "line-5", "line-6")]


@pytest.mark.parametrize(
    ("totals", "calls"), [([10, 20, 30], 3), ([10, 10, 20], 2), ([10, 20, 10], 3)]
)
def test_a_repeated_count_is_no_call(totals: list[int], calls: int) -> None:
    log = log_of(message("user", "Go."), *(count(total) for total in totals))
    assert (counts(log)["calls"], counts(log)["usage_calls"]) == (calls, calls)
    assert len(log.skipped) == len(totals) - calls


@pytest.mark.parametrize(
    ("text", "human"),
    [
        ("Hello", True),
        ("<div> is closed twice", True),
        ("# AGENTS.md instructions for /x", False),
        ("<environment_context>\n</environment_context>", False),
        (" <user_instructions>", False),
        ("<turn_aborted>", False),
    ],
)
def test_who_wrote_a_user_item(text: str, human: bool) -> None:
    (item,) = of(log_of(message("user", text)).sessions[0], Message)
    assert (item.human, item.kind) == (human, None if human else "memory")


@pytest.mark.parametrize(
    ("item", "role", "block"),
    [
        (
            {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "***"},
            "assistant",
            {"type": "tool_use", "id": "c", "name": "apply_patch", "input": {"input": "***"}},
        ),
        (
            {"type": "local_shell_call", "call_id": "c", "action": {"command": ["ls"]}},
            "assistant",
            {"type": "tool_use", "id": "c", "name": "local_shell", "input": {"command": ["ls"]}},
        ),
        (
            {"type": "function_call_output", "call_id": "c", "output": {"content": "x"}},
            "tool",
            {"type": "tool_result", "tool_use_id": "c", "content": "x"},
        ),
        (
            {
                "type": "custom_tool_call_output",
                "call_id": "c",
                "output": [{"type": "input_image", "image_url": "data:"}],
            },
            "tool",
            {
                "type": "tool_result",
                "tool_use_id": "c",
                "content": [{"type": "image", "source": {"type": "url", "url": "data:"}}],
            },
        ),
        (
            {"type": "tool_search_output", "tools": [{"name": "a"}]},
            "tool",
            {"type": "tools", "tools": [{"name": "a"}]},
        ),
        (
            {"type": "web_search_call", "action": {"query": "q"}},
            "assistant",
            {"type": "web_search_call", "action": {"query": "q"}},
        ),
    ],
)
def test_items_become_blocks(item: Any, role: str, block: Any) -> None:
    (record,) = of(log_of(("response_item", item)).sessions[0], Message)
    assert (record.role, record.blocks) == (role, [block])


def test_a_review_is_a_session_with_a_parent() -> None:
    meta = {"id": "child", "session_id": "main", "parent_thread_id": "main"}
    session = log_of(("session_meta", meta), message("user", "Review.")).sessions[0]
    assert (session.external_id, session.parent) == ("child", "main")


RAN = "Chunk ID: a1b2c3\nWall time: 0.4 seconds\nProcess exited with code {}\nOutput:\n{}"
BY_CODE = '{{"output":"{}","metadata":{{"exit_code":{},"duration_seconds":0.1}}}}'


@pytest.mark.parametrize(
    ("output", "failed"),
    [
        (RAN.format(1, "no lamp"), True),
        (RAN.format(-1, ""), True),
        (RAN.format(0, "Process exited with code 1\nOutput:\n"), False),
        ("Exit code: 2\nWall time: 0 seconds\nOutput:\nno horn", True),
        ("Exit code: 0\nWall time: 0 seconds\nOutput:\nExit code: 2", False),
        ("the horn said\nExit code: 2\nOutput:\n", False),
        ("Exit code: 2", False),
        (BY_CODE.format("no door", 127), True),
        (BY_CODE.format("Exit code: 2", 0), False),
        ('{"metadata": null}', False),
        ({"content": "no", "success": False}, True),
        ({"content": "yes", "success": True}, False),
        ({"content": "no", "metadata": {"exit_code": 1}}, True),
        ([{"type": "input_text", "text": "Script failed\nWall time 1 seconds\nOutput:\n"}], True),
        ([{"type": "input_text", "text": "Script completed\nWall time 1 s\nOutput:\n"}], False),
        ("apply_patch verification failed: no such line in door.py", True),
        ("", False),
        ([], False),
        (None, False),
    ],
)  # fmt: skip
def test_a_result_is_an_error_where_the_tool_says_so(output: Any, failed: bool) -> None:
    given = {"type": "function_call_output", "call_id": "c1", "output": output}
    (session,) = log_of(("response_item", given)).sessions
    assert of(session, Message)[0].blocks[0].get("is_error", False) is failed
