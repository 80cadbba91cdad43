"""Messages, usage, pins, blobs and imports through the API, and what it says when it fails."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import OperationalError, connection

from sessions.api.record import sessions as sessions_api
from tests.sessions.programs import Program, assert_problem
from tests.sessions.web.api.talks import TALK

pytestmark = [pytest.mark.store, pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]


def test_messages_come_back_as_they_went_in(talked: Program):
    page = talked.get("/sessions/run/messages?limit=2")
    assert [message["seq"] for message in page["messages"]] == [1, 2]
    assert page["messages"][1]["content"] == TALK[1]["content"]
    rest = talked.get(f"/sessions/run/messages?after={page['next']}")
    assert [message["seq"] for message in rest["messages"]] == [3]
    assert rest["next"] is None
    assert talked.get("/sessions/run/messages?after=99") == {"messages": [], "next": None}


def test_a_page_of_messages_ends_where_it_grows_too_large(
    talked: Program, monkeypatch: pytest.MonkeyPatch
):
    from sessions.api.live import messages

    monkeypatch.setattr(messages, "BYTES_AT_ONCE", 1)
    seen, after = [], 0
    while after is not None:
        page = talked.get(f"/sessions/run/messages?after={after}")
        seen += [message["seq"] for message in page["messages"]]
        after = page["next"]
    assert seen == [1, 2, 3]


def test_usage_is_normalised_and_counted_once(talked: Program):
    usage = {"input_tokens": 100, "cache_read_input_tokens": 900, "output_tokens": 7}
    result = talked.post("/sessions/run/calls", {"step": 1, "usage": usage}, idempotency_key="u")
    assert result["step"] == 1
    assert result["usage"]["total"] == 1000
    assert (
        talked.post("/sessions/run/calls", {"step": 1, "usage": usage})["usage"] == result["usage"]
    )


def test_a_response_of_several_requests_lists_them(talked: Program):
    own = {"input_tokens": 2, "cache_read_input_tokens": 61_000, "output_tokens": 200}
    first = {"input_tokens": 2, "cache_read_input_tokens": 59_000, "output_tokens": 100}
    advice = {"type": "advisor_message", "model": "claude-opus-4-1", "input_tokens": 50_000}
    usage = {"input_tokens": 4, "output_tokens": 300, "iterations": [first, advice, own]}
    result = talked.post("/sessions/run/calls", {"step": 1, "usage": usage})
    assert result["usage"]["total"] == 61_002
    assert result["usage"]["output"] == 300
    found = [(one["model"], one["usage"]["total"]) for one in result["iterations"]]
    assert found == [(None, 59_002), ("claude-opus-4-1", 50_000), (None, 61_002)]
    usage["iterations"] = [first, {"output_tokens": -1}]
    refused = talked.ask("POST", "/sessions/run/calls", {"step": 1, "usage": usage})
    (error,) = assert_problem(refused, 422)["errors"]
    assert error["pointer"] == "/usage/iterations/1/output_tokens"


def test_pins_are_set_and_taken_off(talked: Program):
    assert talked.post("/sessions/run/pins", {"seq": 1}) == {"pins": [1]}
    assert talked.get("/sessions/run/pins") == {"pins": [1]}
    assert talked.ask("DELETE", "/sessions/run/pins/1").json() == {"pins": []}
    assert_problem(talked.ask("DELETE", "/sessions/run/pins/1"), 404)
    assert assert_problem(talked.ask("POST", "/sessions/run/pins", {"seq": 9}), 422)["errors"]


@pytest.mark.fault("G8")
def test_blobs_are_downloads(talked: Program):
    message = talked.get("/sessions/run/messages")["messages"][2]
    answer = talked.ask("GET", f"/blobs/{message['blocks'][0]['sha']}")
    assert json.loads(answer.content) == TALK[2]["content"][0]  # type: ignore[index]
    assert answer["Content-Type"] == "application/octet-stream"
    assert "sandbox" in answer["Content-Security-Policy"]
    same = talked.ask("GET", f"/blobs/{message['blocks'][0]['sha']}", if_none_match=answer["ETag"])
    assert (same.status_code, same.content) == (304, b"")
    for sha in ("0" * 64, "..", "A" * 64):
        assert_problem(talked.ask("GET", f"/blobs/{sha}"), 404)


def test_an_import_is_a_job(program: Program):
    log = json.dumps({"messages": [{"role": "user", "content": "hello"}]}).encode()
    result = program.post("/imports?name=talk.json", log, content_type="application/octet-stream")
    job = program.get(f"/jobs/{result['job']}")
    assert (job["kind"], job["state"], result["files"]) == ("import", "queued", 1)
    assert result["job_url"] == f"/api/v1/jobs/{result['job']}"
    kind = {"content_type": "application/octet-stream"}
    answer = program.ask("POST", "/imports?name=talk.json&if_changed=replace", log, **kind)
    assert answer.status_code == 403  # a key may add; to delete takes a person
    answer = program.ask("POST", "/imports", b"", content_type="application/octet-stream")
    assert "curl" in assert_problem(answer, 422)["detail"]


def test_a_form_may_hold_several_logs(program: Program):
    form = (
        b'--x\r\nContent-Disposition: form-data; name="files"; filename="../a"\r\n\r\n{}\r\n'
        b'--x\r\nContent-Disposition: form-data; name="more"; filename="b"\r\n\r\n{}\r\n--x--\r\n'
    )
    result = program.post("/imports", form, content_type="multipart/form-data; boundary=x")
    assert result["files"] == 2
    broken = program.ask("POST", "/imports", form, content_type="multipart/form-data")
    assert_problem(broken, 400)


@pytest.mark.parametrize(
    ("method", "address"),
    [("HEAD", "/sessions"), ("OPTIONS", "/sessions/x"), ("PATCH", "/sessions/x"),
     ("DELETE", "/sessions/x/messages"), ("GET", "/imports"), ("TRACE", "/openapi.json")],
)  # fmt: skip
def test_a_method_that_an_address_does_not_take(program: Program, method: str, address: str):
    answer = program.ask(method, address)
    if method == "HEAD":
        assert answer.status_code == 405
    else:
        assert answer["Allow"] in assert_problem(answer, 405)["detail"]


@pytest.mark.parametrize("address", ["", "/", "/nothing", "/jobs/1", "/sessions/"])
def test_an_address_with_nothing_at_it(program: Program, address: str):
    answer = assert_problem(program.ask("GET", f"{address or '/'}"), 404)
    assert "URL" in answer["detail"], "it says where to look"


@pytest.mark.fault("K2")
def test_what_fails_on_our_side_tells_nothing(
    talked: Program, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def broken(*_: Any) -> Any:
        raise RuntimeError("the secret content")

    monkeypatch.setattr(sessions_api, "describe_session", broken)
    answer = talked.ask("GET", "/sessions/run")
    assert "secret" not in str(assert_problem(answer, 500))
    from contextlab.operations.logs import OneLine

    lines = "\n".join(map(OneLine().format, caplog.records))
    assert "RuntimeError" in lines
    assert "secret content" not in lines
    assert talked.token not in lines


@pytest.mark.fault("D1")
def test_a_busy_database_asks_for_patience(program: Program):
    def locked(*_: Any) -> Any:
        raise OperationalError("database is locked")

    with connection.execute_wrapper(locked):
        answer = program.ask("GET", "/sessions")
    assert "Idempotency-Key" in assert_problem(answer, 503)["detail"]
    assert int(answer["Retry-After"]) > 0


@pytest.mark.fault("F2")
@pytest.mark.parametrize(
    ("method", "address", "body"),
    [
        ("POST", "/rollouts", {"version": "\ud800"}),
        ("POST", "/simulations", {"draft": "\ud800", "sessions": {"by": "query"}}),
        ("POST", "/reviews", {"session": "\ud800", "run": "\ud800", "revision": 1}),
        ("POST", "/sessions/run/simulations", {"policy": "\ud800"}),
        ("PUT", "/sessions/run/tools", {"tools": [{"\ud800": 1}]}),
        ("PUT", "/policies/own", {"document": {"\ud800": 1}}),
    ],
)
def test_half_a_surrogate_pair_is_refused(
    talked: Program, method: str, address: str, body: dict[str, Any]
):
    answer = talked.ask(method, address, body)
    assert answer.status_code in (403, 404, 422), answer.content
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["detail"]
