"""Where a format leaves open what was sent, whose parent it is, or which ids and calls are one."""

from __future__ import annotations

import json

import pytest

from sessions.importers import NotALog, detect, parse
from sessions.importers.bundles import conversation_of, is_event, join_events
from sessions.importers.records import Call, Message
from sessions.importers.wire import mapping
from tests.sessions.importers.test_more_agents import SAMPLES, outline


def texts(sample: str) -> list[str]:
    """All texts and results of a sample."""
    log = parse((SAMPLES / sample).read_bytes(), sample)
    blocks = [
        block
        for session in log.sessions
        for record in session.records
        if isinstance(record, Message)
        for block in record.blocks
    ]
    found = [block.get("text") or block.get("content") for block in blocks]
    return [one for one in found if isinstance(one, str)]


def test_the_model_reads_what_was_sent_and_not_what_was_shown() -> None:
    assert "<now>9</now>\n\nMend it." in texts("copilot-cli/events.jsonl")
    assert "one.boat\ntwo.boat" in texts("gemini-cli/chat.json")
    assert "[Old tool result content cleared]" in texts("opencode/export.json")
    assert 'rename the boat\nto "Heron"' in texts("aider/history.md")
    assert any("#### A heading of the model" in one for one in texts("aider/history.md"))
    assert "How many oars?" in texts("inspect-log/log.json")


def test_side_sessions_name_their_parents() -> None:
    main, side = parse((SAMPLES / "claude-stream-json/stream.jsonl").read_bytes()).sessions
    assert (side.parent, side.parent_call) == (main.external_id, "toolu_1")
    assert parse((SAMPLES / "opencode/export.json").read_bytes()).sessions[0].parent == "ses_0"


def test_totals_are_the_usage_of_an_only_call() -> None:
    lines = (SAMPLES / "copilot-cli/events.jsonl").read_text().splitlines()
    (asked,) = [line for line in lines if '"m1"' in line]
    done = lines[-2].replace('"count": 2', '"count": 1')
    (session,) = parse("\n".join([lines[0], asked, done]).encode()).sessions
    usages = [one.usage for one in session.records if isinstance(one, Call) and one.usage]
    assert [(one.prompt, one.output) for one in usages] == [(900, 46)]


def test_events_that_are_missing_are_named() -> None:
    log = parse((SAMPLES / "openhands-events/events.jsonl").read_bytes())
    assert "6 to 7" in log.problems[0]
    assert "Missing events" not in " ".join(parse(b'{"role":"user","content":""}\n' * 2).problems)


def test_a_folder_of_events_is_one_log_in_their_order() -> None:
    lines = (SAMPLES / "openhands-events/events.jsonl").read_text().splitlines()
    files = []
    for line in reversed(lines):
        given = mapping(json.loads(line))
        name = f"x/run-7/events/event-{given['number']:05d}-ab-12.json"
        files.append((name, json.dumps(given["event"], indent=1).encode()))
    assert all(is_event(name) and conversation_of(name) == "x/run-7" for name, _ in files)
    joined, whole = parse(join_events(files)), parse("\n".join(lines).encode())
    assert [outline(one) for one in joined.sessions] == [outline(one) for one in whole.sessions]
    broken = join_events([*files, ("x/run-7/events/event-00011-a.json", b"{cut")])
    assert "not readable JSON: number 10" in " ".join(parse(broken).problems)


def test_recorded_calls_of_one_session_share_its_id() -> None:
    asked = [{"role": "user", "content": "Mend."}]
    answer = {"role": "assistant", "content": "Which?"}
    first = {"messages": asked, "response": {"choices": [{"message": answer}]}}
    later = [*asked, answer, {"role": "user", "content": "The mast."}]
    second = {"messages": later, "response": {"choices": [{"message": answer}]}}
    names = [
        parse(json.dumps(body).encode(), f"calls-17570{place}.5.json").sessions[0].external_id
        for place, body in enumerate((first, second))
    ]
    assert names[0] == names[1]


def test_one_conversation_alone_is_a_document() -> None:
    line = b'{"messages": [{"role": "user", "content": "x"}]}\n'
    assert (detect(line), detect(line * 2)) == ("openai-messages", "chat-jsonl")


def said(role: str, text: str, **more: object) -> bytes:
    content = [{"type": "text", "text": text}]
    message = {"role": role, "content": content, **more}
    return json.dumps({"type": "context.append_message", "message": message}).encode()


def test_equal_answers_of_kimi_are_answers_each() -> None:
    turns = [(said("user", f"do {one}"), said("assistant", "Done.")) for one in "abc"]
    lines = [
        b'{"type": "metadata", "protocol_version": "1"}',
        *(each for two in turns for each in two),
    ]
    lines += [said("tool", "x", toolCallId="Bash:0"), said("tool", "y", toolCallId="Bash:0")]
    assert outline(parse(b"\n".join(lines)).sessions[0]) == (
        "user*:text assistant:text user*:text assistant:text user*:text assistant:text "
        "tool:tool_result tool:tool_result"
    )


def test_many_kept_messages_of_kimi_end_in_a_refusal() -> None:
    compact = b'{"type": "context.apply_compaction", "compactedCount": 1}'
    with pytest.raises(NotALog, match="the compactions keep more than 500,000"):
        parse(b"\n".join([said("user", "go")] * 1_100 + [compact] * 1_000))


def test_a_result_of_cursor_answers_the_call_before_it() -> None:
    used = {"type": "tool_use", "name": "Read", "input": {}}
    result = {"type": "tool_result", "content": "b"}
    texts = [("assistant", used), ("user", {"type": "text", "text": "Stop."})]
    turns = [*texts, ("assistant", used), ("user", result)]
    data = [json.dumps({"role": one, "message": {"content": [block]}}) for one, block in turns]
    (session,) = parse("\n".join(data).encode()).sessions
    messages = [one for one in session.records if isinstance(one, Message)]
    assert messages[-1].blocks[0]["tool_use_id"] == messages[-2].blocks[0]["id"]
    assert messages[0].blocks[0]["id"] != messages[-2].blocks[0]["id"]


def test_chats_of_qwen_code_in_one_file_are_sessions_each() -> None:
    data = (SAMPLES / "qwen-code/chat.jsonl").read_bytes()
    log = parse(data + data.replace(b"qw-1", b"qw-2") + data)
    assert [one.external_id for one in log.sessions if one.parent is None] == ["qw-1", "qw-2"]
    assert len({outline(one) for one in log.sessions if one.parent is None}) == 1


@pytest.mark.parametrize(
    ("typed", "is_sent"),
    [
        ("/add boat.py", False),
        ("!ls", False),
        ("Add file to the chat? (Y)es/(N)o/(A)ll [Yes]: all", False),
        ("/ask what floats?", True),
        ("mend it", True),
    ],
    ids=["command", "shell", "answer", "question", "prompt"],
)
def test_what_is_typed_for_aider_itself_is_no_prompt(typed: str, is_sent: bool) -> None:
    history = f"# aider chat started at 2026-03-01 09:00:00\n\n#### {typed}  \n\nDone.\n"
    log = parse(history.encode(), "h.md")
    said = [one for one in log.sessions[0].records if isinstance(one, Message) and one.human]
    assert len(said) == is_sent
    assert [one.line for one in log.skipped] == ([] if is_sent else [3])


def test_a_session_of_cline_has_its_task_as_title() -> None:
    titles = {
        name: parse((SAMPLES / "cline" / name).read_bytes(), name).sessions[0].title
        for name in ("session.messages.json", "ui_messages.json", "after.compaction.json")
    }
    assert list(titles.values()) == ["Hoist.", "Hoist the sail.", "And now?"]
    wrapped = (
        b'{"version": 1, "updated_at": "", "agent": "lead", "sessionId": "c", "messages": [%s]}'
    )
    task = b'{"role": "user", "content": "<task>\\nMend it.\\n</task>"}'
    assert parse(wrapped % task, "c.json").sessions[0].title == "Mend it."
    assert parse(wrapped % b'{"role": "assistant"}', "c.json").sessions[0].title == "c"
