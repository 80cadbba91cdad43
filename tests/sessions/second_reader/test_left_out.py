"""Faults planted in an importer are found by the second reader of its format."""

from __future__ import annotations

import pytest

from sessions import importers
from sessions.actions.imports import verified
from sessions.actions.imports.verified import verify_log
from sessions.importers.records import Log, Message
from tests.sessions.made import count
from tests.sessions.second_reader.reading import SAMPLES


@pytest.mark.django_db
@pytest.mark.parametrize("place", [0, -1], ids=["first", "last"])
@pytest.mark.parametrize(
    "sample",
    [
        "aider/history.md",
        "amp/T-0001.json",
        "chat-jsonl/chat.jsonl",
        "claude-stream-json/stream.jsonl",
        "cline/session.messages.json",
        "cline/ui_messages.json",
        "copilot-cli/events.jsonl",
        "cursor/transcript.jsonl",
        "goose/export.json",
        "goose/session.jsonl",
        "inspect-log/log.json",
        "kimi/code.wire.jsonl",
        "langfuse-trace/watch.json",
        "langgraph-thread/stream.txt",
        "langgraph-thread/thread.json",
        "openhands-events/events.jsonl",
        "openhands-output/output.jsonl",
        "otlp-traces/genai.json",
        "otlp-traces/openinference.json",
        "qwen-code/chat.jsonl",
    ],
)
def test_a_message_that_an_importer_left_out_is_missed(
    monkeypatch: pytest.MonkeyPatch, sample: str, place: int
) -> None:
    data = (SAMPLES / sample).read_bytes()
    assert verify_log(data, sample, count).differences == []
    parse = importers.parse

    def faulty(data: bytes, name: str = "") -> Log:
        log = parse(data, name)
        records = log.sessions[0].records
        said = [one for one in records if isinstance(one, Message) and one.blocks]
        records.remove(said[place])
        return log

    monkeypatch.setattr(verified.importers, "parse", faulty)
    assert verify_log(data, sample, count).differences != []
