"""Chat lines: what a file of them becomes."""

from __future__ import annotations

from pathlib import Path

from sessions.importers import counts, parse

SAMPLES = Path(__file__).parent / "samples" / "chat-lines"


def test_every_line_is_a_message() -> None:
    log = parse((SAMPLES / "chat-lines.jsonl").read_bytes(), "run.jsonl")
    (session,) = log.sessions
    assert (log.format, session.external_id, session.model) == ("chat-lines", "c1", "gpt-5")
    found = counts(log)
    assert (found["messages"], found["calls"], found["usage_calls"]) == (4, 2, 1)
    assert (found["tool_calls"], found["skipped"], log.problems) == (1, {"not context": 1}, [])
