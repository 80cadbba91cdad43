"""Exports can be imported next to the original session."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compaction.context.session import Usage
from sessions import importers
from sessions.actions.accounts.teams import local_team
from sessions.actions.record.append import append
from sessions.actions.record.export import export
from sessions.actions.record.measure import measure
from sessions.importers import records
from sessions.models import Session
from tests.sessions import made


def data(session: Session) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in export(session, None)).encode()


def content(session: Session) -> list[Any]:
    rows = session.blocks.order_by("position")
    return list(rows.values_list("message__role", "born", "type", "kind", "tokens", "sha"))


@pytest.mark.django_db
def test_an_export_gives_the_same_contexts_again():
    talk = made.reading(6)
    talk.records.insert(0, records.Message("system", [{"type": "text", "text": "Be brief."}]))
    talk.records.append(records.Call("c6", model="m", usage=Usage(uncached=5, output=2), at=9_000))
    first = append(local_team(), talk, made.count, source="test").session
    measure(first)
    log = importers.parse(data(first), "any.jsonl")
    assert log.format == "contextlab-export"
    assert [item.type for item in log.skipped] == ["session"]
    again = append(local_team(), log.sessions[0], made.count, source=log.format).session
    measure(again)
    assert again.external_id == "export:s1"
    assert content(again) == content(first)
    assert (again.step_count, again.output_tokens) == (first.step_count, 2)
    assert not append(local_team(), log.sessions[0], made.count, source=log.format).changed


def test_what_is_no_record_is_kept_and_counted():
    lines = [
        {"type": "session", "external_id": "x", "window": -1},
        {"type": "message", "role": "wizard", "content": "?"},
        {"type": "message", "seq": 1, "role": "user", "content": "Hi.", "kind": "strange"},
        {"type": "call", "call": ""},
        {"type": "call", "call": "c1", "usage": {"uncached": -1}},
        {"type": "revision", "number": 1},
    ]
    raw = "".join(json.dumps(line) + "\n" for line in lines).encode() + b'{"half'
    log = importers.parse(raw, "x")
    [session] = log.sessions
    assert [type(record) for record in session.records] == [records.Message, records.Call]
    assert session.window is None
    assert [item.reason for item in log.skipped] == [
        "not context", "unknown", "unknown", "not context", "unknown",
    ]  # fmt: skip
    assert log.problems == ["1 revisions of the exported session were not imported."]
