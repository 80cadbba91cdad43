"""Results without the id of their call, as google-genai sends them, find their calls."""

from __future__ import annotations

from typing import Any

import pytest

from sessions.models import Session
from tests.sessions.live.appends import live, send

pytestmark = [pytest.mark.django_db, pytest.mark.store]

Json = dict[str, Any]


def asks(*calls: tuple[str, str]) -> Json:
    parts = [{"functionCall": {"id": id, "name": name, "args": {}}} for name, id in calls]
    return {"role": "model", "parts": parts}


def gives(*names: str) -> Json:
    parts = [
        {"functionResponse": {"name": name, "response": {"result": f"{name} {at}"}}}
        for at, name in enumerate(names)
    ]
    return {"role": "user", "parts": parts}


def results(session: Session) -> list[tuple[str, str, str]]:
    found = session.blocks.filter(type="tool_result").order_by("position")
    return list(found.values_list("tool_call", "tool", "preview"))


USER = {"role": "user", "parts": [{"text": "Go."}]}
TURNS = [
    [USER, asks(("read", "c1"), ("list", "c2"), ("read", "c3"))],
    [gives("read", "list", "read"), asks(("read", "c4"))],
    [gives("read")],
]
EXPECTED = [
    ("c1", "read", "read → read 0"),
    ("c2", "list", "list → list 1"),
    ("c3", "read", "read → read 2"),
    ("c4", "read", "read → read 0"),
]


def test_in_one_request_and_in_several():
    at_once, in_turns = live("at-once"), live("in-turns")
    send(at_once, *[message for turn in TURNS for message in turn])
    for turn in TURNS:
        send(in_turns, *turn)
    assert results(at_once) == results(in_turns) == EXPECTED


def test_a_history_that_is_sent_again_is_known():
    session = live()
    for turn in TURNS:
        send(session, *turn)
    again = send(session, *[message for turn in TURNS for message in turn])
    assert (again["appended"], again["known"]) == (0, 5)


def test_each_part_of_a_streamed_answer_in_a_request_of_its_own():
    session = live()
    for message in (USER, asks(("read", "c1")), asks(("read", "c2")), gives("read", "read")):
        send(session, message)
    assert [call for call, *_ in results(session)] == ["c1", "c2"]


def test_what_no_open_call_has_keeps_its_name():
    session = live()
    send(session, USER, asks(("read", "c1")), gives("read"))
    send(session, gives("read", "write"))
    assert [call for call, *_ in results(session)] == ["c1", "read", "write"]
