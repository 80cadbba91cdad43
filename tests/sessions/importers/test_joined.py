"""Logs joined with `cat` become the sessions that each log alone becomes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sessions.importers import parse
from sessions.importers.records import Log
from tests.sessions.importers.claude_lines import TALK, line, responded, said
from tests.sessions.importers.test_codex import message
from tests.sessions.importers.test_properties import assert_lines_accounted

SAMPLES = Path(__file__).parent / "samples"


def of(name: str, *given: dict[str, Any]) -> bytes:
    """A log of Claude Code with another session id, and uuids of its own."""
    renamed = [
        {**one, "sessionId": name, "uuid": name + one["uuid"],
         "parentUuid": one["parentUuid"] and name + one["parentUuid"]}
        for one in given
    ]  # fmt: skip
    return data_of(*renamed)


def data_of(*given: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in given)


def rollout(name: str, *given: tuple[str, Any]) -> bytes:
    lines = [("session_meta", {"id": name}), *given]
    return data_of(*({"type": form, "payload": payload} for form, payload in lines))


def pi(name: str, text: str) -> bytes:
    header = {"type": "session", "id": name, "cwd": "/w", "timestamp": "2026-03-01T10:00:00Z"}
    line = {"type": "message", "id": "m", "message": {"role": "user", "content": text}}
    return data_of(header, line)


def copilot(name: str, text: str) -> bytes:
    start = {"type": "session.start", "data": {"sessionId": name}}
    return data_of(start, {"type": "user.message", "id": "u", "data": {"content": text}})


def sessions(*logs: Log) -> list[tuple[str, list[Any]]]:
    """Ids, with what was said under which key."""
    return [
        (one.external_id, [(record.key, getattr(record, "blocks", None)) for record in one.records
                           if hasattr(record, "key")])
        for log in logs
        for one in log.sessions
    ]  # fmt: skip


LOGS = {
    "claude-code": (of("a", *TALK), of("b", *TALK[:2]), of("c", said("u", None))),
    "codex-rollout": (
        rollout("a", message("user", "One.")),
        rollout("b", ("session_meta", {"id": "a"}), message("user", "Two.")),
        rollout("c", message("user", "Three."), ("session_meta", {"id": "c"}), message("user", "")),
    ),
    "pi": (pi("a", "One."), pi("b", "Two.")),
    "copilot-cli": (copilot("a", "One."), copilot("b", "Two.")),
}


@pytest.mark.parametrize("name", LOGS)
def test_each_session_is_the_one_of_its_own_log(name: str) -> None:
    joined = parse(b"".join(LOGS[name]))
    assert joined.format == name
    assert sessions(joined) == sessions(*(parse(log) for log in LOGS[name]))
    assert f"logs of {len(LOGS[name])} sessions" in joined.problems[0]
    assert_lines_accounted(joined, b"".join(LOGS[name]))


def test_mixed_lines_are_told_apart_by_their_id() -> None:
    a, b = (LOGS["claude-code"][n].splitlines(keepends=True) for n in (0, 1))
    mixed = b"".join([a[0], b[0], a[1], b[1], *a[2:]])
    assert sessions(parse(mixed)) == sessions(*map(parse, LOGS["claude-code"][:2]))


@pytest.mark.parametrize("field", ["parentUuid", "logicalParentUuid"])
def test_a_session_that_goes_on_under_another_id_is_one(field: str) -> None:
    beside = {"type": "summary", "summary": "Kelp", "leafUuid": "u1"}
    boundary = {**line("system", "v", None, subtype="compact_boundary"), "sessionId": "t"}
    goes_on = {**boundary, field: "a1"}
    log = parse(data_of(*TALK, beside, goes_on, {**responded("x", "v", "m9"), "sessionId": "t"}))
    assert [one.external_id for one in log.sessions] == ["s"]
    assert any("2 session ids" in problem for problem in log.problems)


def test_a_log_joined_with_itself_is_itself() -> None:
    for logs in LOGS.values():
        log = parse(logs[0] + logs[1] + logs[0])
        assert [one.external_id for one in log.sessions] == ["a", "b"]


def test_the_samples_are_each_one_log() -> None:
    for name in LOGS:
        for sample in (SAMPLES / name).glob("*.jsonl"):
            problems = parse(sample.read_bytes(), sample.name).problems
            assert not any("has the logs of" in problem for problem in problems), sample
