"""Sessions of pi: a tree of entries, usage without the cache, compactions by entry."""

from __future__ import annotations

import json
from pathlib import Path

from compaction.context.session import Usage
from sessions.importers import parse
from sessions.importers.records import Call, Compaction, Message, Rewind

SAMPLE = Path(__file__).parent / "samples" / "pi" / "pi.jsonl"


def test_a_session_as_a_tree() -> None:
    log = parse(SAMPLE.read_bytes(), "x.jsonl")
    session = log.sessions[0]
    assert (log.format, session.external_id, session.model) == (
        "pi",
        "pi-made-1",
        "claude-sonnet-4-5",
    )
    messages = [one for one in session.records if isinstance(one, Message)]
    assert [(one.role, one.kind, one.key, one.human) for one in messages] == [
        ("system", "system", "a2", False),
        ("user", None, "b1", True),
        ("assistant", None, "b2", False),
        ("user", None, "b3", False),
        ("user", None, "c1", True),
        ("assistant", None, "c2", False),
        ("user", "summary", "d1", False),
    ]
    assert messages[1].blocks[1]["source"] == {
        "type": "base64",
        "media_type": "image/png",
        "data": "aGk=",
    }
    assert messages[2].blocks[1] == {
        "type": "tool_use",
        "id": "t1",
        "name": "read",
        "input": {"path": "tides.csv"},
    }
    assert messages[3].blocks[0]["content"] == "06:12,4.1\n18:40,4.3"
    rewinds = [one for one in session.records if isinstance(one, Rewind)]
    assert [one.drop for one in rewinds] == [("b2", "b3")]
    compactions = [one for one in session.records if isinstance(one, Compaction)]
    assert [(one.keep, one.tokens_before) for one in compactions] == [(("c2",), 2122)]
    calls = [one for one in session.records if isinstance(one, Call)]
    # The aborted call has no output and no usage: it is not a call.
    assert [one.usage for one in calls] == [Usage(3, 0, 2100, 0, 40), Usage(3, 2050, 60, 0, 9)]
    assert calls[0].at == 1772359202000
    assert [(one.type, one.reason) for one in log.skipped] == [
        ("session", "not context"),
        ("model_change", "not context"),
        ("empty response", "not context"),
        ("custom", "not context"),
        ("weather", "unknown"),
    ]


def test_calls_ask_for_the_level_of_thinking_that_stood_when_a_person_wrote() -> None:
    def level(value: str) -> dict[str, object]:
        return {"type": "thinking_level_change", "thinkingLevel": value}

    def message(role: str, text: str) -> dict[str, object]:
        said = {"role": role, "content": [{"type": "text", "text": text}]}
        answered = {"api": "a", "provider": "p", "model": "m", "usage": {"input": 5, "output": 1}}
        return {"type": "message", "message": {**said, **(answered if role == "assistant" else {})}}

    lines = [
        {"type": "session", "id": "s", "timestamp": "2026-03-01T10:00:00Z", "cwd": "/"},
        message("user", "one"), message("assistant", "a"),
        level("low"), level("high"), message("user", "two"), message("assistant", "b"),
        level("off"), message("assistant", "c"),
        message("user", "three"), message("assistant", "d"),
    ]  # fmt: skip
    log = parse("\n".join(map(json.dumps, lines)).encode(), "x.jsonl")
    calls = [one for one in log.sessions[0].records if isinstance(one, Call)]
    assert [one.settings for one in calls] == ["", "high", "high", "off"]


def test_entries_of_the_first_version_have_no_ids() -> None:
    def message(role: str, text: str) -> dict[str, object]:
        content = [{"type": "text", "text": text}]
        usage = {"input": 5, "output": 1, "cacheRead": 0, "cacheWrite": 0}
        more = {"api": "a", "provider": "p", "model": "m", "usage": usage}
        said = {"role": role, "content": content, **(more if role == "assistant" else {})}
        return {"type": "message", "timestamp": "2026-03-01T10:00:01Z", "message": said}

    lines = [
        {"type": "session", "id": "old", "timestamp": "2026-03-01T10:00:00Z", "cwd": "/"},
        message("user", "one"),
        message("assistant", "two"),
        message("user", "three"),
        {"type": "compaction", "summary": "short", "firstKeptEntryIndex": 3, "tokensBefore": 9},
        message("assistant", "four"),
    ]
    log = parse("\n".join(map(json.dumps, lines)).encode())
    records = log.sessions[0].records
    assert [one.keep for one in records if isinstance(one, Compaction)] == [("line-4",)]
    assert not [one for one in records if isinstance(one, Rewind)]
    assert [one.key for one in records if isinstance(one, Message)][-1] == "line-6"
