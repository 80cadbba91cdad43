"""What each sample of a log becomes, in one line per session.

A message is its role, or its kind if it has one, with the types of its blocks; a star marks what a
person wrote. Usage stands in brackets: prompt, of it read from the cache, output.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sessions.importers import counts, parse
from sessions.importers.records import Call, Message, Session

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
