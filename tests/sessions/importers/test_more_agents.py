"""What each sample of a log becomes, in one line per session.

A message is its role, or its kind if it has one, with the types of its blocks; a star marks what a
person wrote. Usage stands in brackets: prompt, of it read from the cache, output.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sessions.importers import NotALog, counts, detect, parse
from sessions.importers.bundles import conversation_of, is_event, join_events
from sessions.importers.records import Call, Message, Session
from sessions.importers.wire import mapping

SAMPLES = Path(__file__).parent / "samples"

EXPECTED = {
    "gemini-cli/chat.json": {
        "g-1": [
            "user*:text",
            "assistant:thinking+tool_use+tool_use",
            "(900/0/42)",
            "tool:tool_result+tool_result",
            "assistant:text",
            "(1000/800/4)",
            "user*:text",
        ],
    },
    "qwen-code/chat.jsonl": {
        "qw-1": [
            "user*:text",
            "assistant:thinking+tool_use",
            "(500/400/9)",
            "tool:tool_result",
            "assistant:text",
            "(520/0/3)",
            "Rewind",
            "assistant:text",
            "(520/0/2)",
            "Compaction",
            "summary:text",
            "user:text",
        ],
        "qw-1/agent-explore-1": ["assistant:text"],
    },
    "amp/T-0001.json": {
        "T-0001": [
            "user*:text",
            "assistant:thinking+tool_use",
            "(1004/700/20)",
            "tool:tool_result",
            "assistant:tool_use",
            "(1000/900/5)",
            "tool:tool_result",
            "assistant:text",
        ],
    },
    "goose/export.json": {
        "20260301_1": [
            "user*:text",
            "assistant:text+tool_use",
            "tool:tool_result",
            "assistant:text",
        ],
    },
    "goose/session.jsonl": {
        "session-c55f5aef": ["user*:text", "assistant:text+tool_use", "tool:tool_result"],
    },
    "cursor/transcript.jsonl": {
        "transcript-26bc120c": [
            "user*:text",
            "assistant:text+tool_use",
            "tool:tool_result",
            "assistant:text",
        ],
    },
    "kimi/wire.jsonl": {
        "wire-750bff07": [
            "user*:text",
            "assistant:thinking",
            "assistant:thinking",
            "assistant:tool_use",
            "(33/20/7)",
            "tool:tool_result",
            "assistant:text",
            "(33/20/7)",
            "Compaction",
        ],
    },
    "kimi/code.wire.jsonl": {
        "code.wire-078675e5": [
            "user*:text",
            "user:text",
            "assistant:text",
            "assistant:text",
            "assistant:tool_use",
            "tool:tool_result",
            "(16/3/7)",
            "Compaction",
            "summary:text",
            "assistant:text",
        ],
    },
    "opencode/export.json": {
        "ses_1": [
            "user*:text+text",
            "assistant:thinking+tool_use+tool_use+tool_use",
            "(120/100/50)",
            "tool:tool_result+tool_result+tool_result",
            "Compaction",
            "summary:text",
            "(150/0/20)",
            "assistant:text",
            "(90/0/5)",
        ],
    },
    "copilot-cli/events.jsonl": {
        "cp-1": [
            "system:text",
            "user*:text",
            "assistant:thinking+tool_use",
            "tool:tool_result",
            "user:text",
            "assistant:text",
        ],
    },
    "claude-stream-json/stream.jsonl": {
        "00000000-0000-4000-8000-00000000000a": [
            "user*:text",
            "assistant:thinking",
            "(103/100/1)",
            "assistant:tool_use",
            "(103/100/20)",
            "user:tool_result",
            "assistant:text",
            "(132/130/4)",
        ],
        "00000000-0000-4000-8000-00000000000a/toolu_1": ["user:text", "assistant:text", "(9/0/2)"],
    },
    "aider/history.md": {
        "history.md-ff98a7ba": ["user*:text", "assistant:text", "user*:text"],
        "history.md-e66e44c1": ["user*:text", "assistant:text"],
    },
    "langgraph-thread/stream.txt": {
        "th-2": ["user*:text", "assistant:text+tool_use", "tool:tool_result", "assistant:text"],
    },
    "langgraph-thread/thread.json": {
        "th-1": [
            "system:text",
            "user*:text",
            "assistant:thinking+tool_use",
            "(50/32/9)",
            "tool:tool_result",
            "assistant:nothing",
            "assistant:text",
        ],
    },
    "cline/after.compaction.json": {
        "cl-1/after.compaction": ["summary:text", "user*:text"],
    },
    "cline/session.messages.json": {
        "cl-1": [
            "system:text",
            "user*:text",
            "assistant:tool_use",
            "(500/400/7)",
            "user:tool_result",
        ],
    },
    "cline/ui_messages.json": {
        "ui_messages-afd6f8ca": [
            "user*:text",
            "assistant:thinking",
            "(490/400/20)",
            "assistant:tool_use",
            "assistant:tool_use",
            "(10/0/5)",
            "assistant:text",
        ],
    },
    "chat-jsonl/chat.jsonl": {
        "talk-2": ["user*:text", "assistant:text"],
        "chat-3258ca0b": [
            "user*:text",
            "system:text",
            "assistant:tool_use",
            "(20/0/3)",
            "tool:tool_result",
            "assistant:thinking+text",
            "(9/0/2)",
        ],
    },
    "tau-bench/simulations.json": {
        "simulations 7#0-3f886791": [
            "system:text",
            "assistant:text",
            "user*:text",
            "assistant:tool_use",
            "(100/64/7)",
            "tool:tool_result",
            "assistant:text",
            "(120/0/2)",
        ],
    },
    "tau-bench/trials.json": {
        "trials 3#1-4e350a8d": [
            "system:text",
            "user*:text",
            "assistant:tool_use",
            "tool:tool_result",
            "assistant:text",
        ],
        "trials 3#0-4e350a8d": ["user*:text", "assistant:text"],
    },
    "who-and-when/failure.json": {
        "failure-8bd94488": [
            "system:text",
            "user:text",
            "assistant:text",
            "result:text",
            "assistant:text",
        ],
    },
    "inspect-log/log.json": {
        "run-1/1/2": [
            "user*:text",
            "assistant:thinking+text+tool_use",
            "(70/60/5)",
            "tool:tool_result",
            "assistant:text",
            "(80/64/3)",
        ],
    },
    "openhands-events/events.jsonl": {
        "o0": [
            "system:tools+text",
            "user*:text",
            "assistant:text+tool_use",
            "assistant:text+tool_use",
            "tool:tool_result",
            "tool:tool_result",
            "Compaction",
            "summary:text",
            "assistant:text",
        ],
    },
    "openhands-output/output.jsonl": {
        "output mast-1-e468eef4": [
            "user*:text",
            "assistant:text+tool_use",
            "(90/0/8)",
            "tool:tool_result",
            "assistant:text",
        ],
        "output 4-56ead351": ["user*:text", "assistant:text+tool_use", "tool:tool_result"],
    },
}


def outline(session: Session) -> str:
    said = []
    for record in session.records:
        if isinstance(record, Call):
            if (usage := record.usage) is not None:
                said.append(f"({usage.prompt}/{usage.cache_read}/{usage.output})")
        elif isinstance(record, Message):
            forms = "+".join(block["type"] for block in record.blocks) or "nothing"
            said.append(f"{record.kind or record.role}{'*' if record.human else ''}:{forms}")
        else:
            said.append(type(record).__name__)
    return " ".join(said)


@pytest.mark.parametrize("sample", EXPECTED)
def test_what_a_log_becomes(sample: str) -> None:
    path = SAMPLES / sample
    log = parse(path.read_bytes(), path.name)
    found = {session.external_id: outline(session) for session in log.sessions}
    assert found == {name: " ".join(parts) for name, parts in EXPECTED[sample].items()}


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
    assert "not readable JSON: 10" in " ".join(parse(broken).problems)


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


def test_every_sample_counts_its_calls_once() -> None:
    for sample in EXPECTED:
        log = parse((SAMPLES / sample).read_bytes(), sample)
        ids = [
            (session.external_id, one.call)
            for session in log.sessions
            for one in session.records
            if isinstance(one, Call)
        ]
        assert counts(log)["calls"] == len(set(ids))


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
