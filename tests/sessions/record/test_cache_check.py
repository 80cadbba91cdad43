"""POST /cache/check: finds what ends the common prefix of two requests."""

from __future__ import annotations

import pytest

from sessions.api.record import caches

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]


def test_what_ends_the_prefix_is_named(program):
    was = {"model": "m", "system": "It is 10:15.", "messages": [{"role": "user", "content": "Go."}]}
    now = {**was, "system": "It is 10:16."}
    answer = program.post("/cache/check", {"previous": was, "current": now})
    (found,) = answer["findings"]
    assert (found["kind"], found["cause"], found["path"]) == ("clock", "system", "/system")
    assert found["basis"] == "estimated" and found["tokens"] > 0 and found["how"]
    assert found["offset"] < answer["bytes"]
    same = program.post("/cache/check", {"previous": was, "current": was})
    assert same["findings"] == []


def test_a_check_that_takes_too_long_is_stopped(program, monkeypatch):
    """It runs in another process, so that no thread of the server is held up."""
    monkeypatch.setattr(caches, "CHECK_SECONDS", 0.01)
    body = {"tools": [0] * 90_000}
    answer = program.ask("POST", "/cache/check", {"previous": body, "current": body})
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert "took longer than 0.01 s" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"previous": {}}, "/current"),
        ({"previous": [], "current": {}}, "/previous"),
        ({"previous": {}, "current": {}}, "/previous"),
        ({"previous": {"model": "m", "messages": []}, "current": {"system": "x"}}, "/previous"),
        ({"previous": {"system": "x"}, "current": {"input": "x"}}, "/current"),
    ],
)
def test_what_is_no_request_is_refused_by_its_field(program, body, field):
    answer = program.ask("POST", "/cache/check", body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == field
