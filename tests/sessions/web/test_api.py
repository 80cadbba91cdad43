"""An agent's use of the API, from first to last message."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import OperationalError, connection

from sessions.api.record import sessions as sessions_api
from sessions.models import Answer, Job, Message, Session
from tests.sessions.programs import Program, assert_problem

pytestmark = [pytest.mark.store, pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]

TALK = [
    {"role": "user", "content": "What is in a.py?"},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "a.py"}},
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x = 1"}]},
]


@pytest.fixture
def talked(program: Program) -> Program:
    program.ask("PUT", "/sessions/run", {"agent": "tester", "model": "claude-sonnet-4-5"})
    program.post("/sessions/run/messages", {"messages": TALK})
    return program


def test_the_simplest_use(program: Program):
    made = program.ask("PUT", "/sessions/my-run", {"agent": "a", "model": "claude-sonnet-4-5"})
    assert made.status_code == 201
    program.post("/sessions/my-run/messages", {"messages": [{"role": "user", "content": "Hi"}]})
    given = program.get("/sessions/my-run/context?format=anthropic")
    assert given["messages"][0]["role"] == "user"
    assert given["messages"][0]["content"][0]["text"] == "Hi"
    assert (given["system"], [tool["name"] for tool in given["tools"]]) == ([], ["read_back"])
    assert given["context_id"].startswith("ctx_")


@pytest.mark.parametrize(("model", "kind"), [("deepseek-v4-pro", "text"), ("claude-x", "image")])
def test_a_model_that_reads_text_alone_gets_no_image(program: Program, model: str, kind: str):
    program.ask("PUT", "/sessions/pictures", {"agent": "a", "model": model})
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    content = [{"type": "text", "text": "See"}, {"type": "image", "source": source}]
    program.post(
        "/sessions/pictures/messages", {"messages": [{"role": "user", "content": content}]}
    )
    given = program.get("/sessions/pictures/context?format=anthropic")
    assert given["messages"][0]["content"][1]["type"] == kind
    blocks = program.get("/sessions/pictures/context?format=blocks")["blocks"]
    assert blocks[1]["block"]["type"] == "image", "who renders blocks alone gets what there is"


def test_a_put_makes_and_then_changes(program: Program):
    assert program.ask("PUT", "/sessions/run", {"agent": "a", "color": "red"}).status_code == 201
    again = program.ask("PUT", "/sessions/run", {"title": "Mine", "outcome": "succeeded"})
    assert again.status_code == 200
    result = again.json()
    assert result["notes"] == []
    assert (result["agent"], result["title"], result["outcome"]) == ("a", "Mine", "succeeded")
    assert result["url"] == f"http://127.0.0.1/sessions/{result['id']}/"
    assert Session.objects.get().meta["color"] == "red"
    by_uuid = program.ask("PUT", f"/sessions/{result['id']}", {"task": "t"}).json()
    assert (by_uuid["external_id"], by_uuid["task"]) == ("run", "t")
    assert program.ask("PUT", "/sessions/bare").status_code == 201, "a body is not needed"
    notes = program.ask("PUT", "/sessions/run", {str(n): n for n in range(12)}).json()["notes"]
    assert notes[0] == '"0" is not a session field and was added to metadata'
    assert notes[10:] == ["2 more unknown fields were added to metadata"]


A_UUID = "5f2b6f0e-9c39-4c6d-8a51-2f7d1f3c9a10"


@pytest.mark.parametrize("name", ["team/repo#1", "läuft", "a b", "x" * 300, A_UUID])
def test_ids_are_the_agents_own(program: Program, name: str):
    from urllib.parse import quote

    address = f"/sessions/{quote(name, safe='')}"
    assert program.ask("PUT", address, {}).json()["external_id"] == name
    assert program.get(address)["external_id"] == name
    program.post(f"{address}/messages", {"messages": TALK[:1]})
    assert program.get(f"{address}/messages")["messages"][0]["seq"] == 1


@pytest.mark.parametrize("name", ["x" * 301, "a%00b", "a%09b"])
def test_ids_that_no_column_takes(program: Program, name: str):
    assert assert_problem(program.ask("PUT", f"/sessions/{name}", {}), 422)["errors"]
    assert not Session.objects.exists()


def test_a_session_that_was_not_announced(program: Program):
    result = program.post("/sessions/new/messages", {"messages": TALK[:1]})
    assert (result["appended"], result["first_seq"]) == (1, 1)
    assert result["notes"] == ["The session did not exist and was created."]
    empty = {"messages": [{"role": "user", "content": []}]}
    assert program.post("/sessions/new/messages", empty)["notes"] == [
        "Message 2 from the user is empty."
    ]
    assert Session.objects.get().external_id == "new"
    assert Job.objects.get().kind == "tend"


def test_a_refused_first_batch_leaves_nothing(program: Program):
    assert_problem(program.ask("POST", "/sessions/new/messages", {"messages": [{"role": 1}]}), 422)
    assert not Session.objects.exists()


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


def test_an_answer_is_given_again_for_the_same_key(talked: Program):
    body = {"messages": [{"role": "user", "content": "more"}]}
    first = talked.ask("POST", "/sessions/run/messages", body, idempotency_key="k1")
    again = talked.ask("POST", "/sessions/run/messages", body, idempotency_key="k1")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    assert (first.get("Idempotent-Replay"), again["Idempotent-Replay"]) == (None, "true")
    assert Message.objects.count() == 4
    other = talked.ask("POST", "/sessions/run/messages", {"messages": TALK}, idempotency_key="k1")
    assert "different request" in assert_problem(other, 422)["detail"]


def test_what_is_refused_may_be_sent_right_with_the_same_key(talked: Program):
    wrong = {"messages": [{"role": "user"}]}
    assert_problem(talked.ask("POST", "/sessions/run/messages", wrong, idempotency_key="k"), 422)
    right = {"messages": [{"role": "user", "content": "now"}]}
    assert talked.post("/sessions/run/messages", right, idempotency_key="k")["appended"] == 1


@pytest.mark.parametrize("key", ["", "x" * 256, "schlüssel", "a\tb"])
def test_a_key_that_is_none(talked: Program, key: str):
    body = {"messages": TALK[:1]}
    answer = talked.ask("POST", "/sessions/run/messages", body, idempotency_key=key)
    assert assert_problem(answer, 422)["errors"][0]["pointer"] == "header Idempotency-Key"


def test_a_simulation_is_asked_for_once(talked: Program):
    wish = {"policy": "offload-first"}
    first = talked.post("/sessions/run/simulations", wish, idempotency_key="s")
    Job.objects.filter(kind="simulate").update(state="done")
    assert talked.post("/sessions/run/simulations", wish, idempotency_key="s") == first
    assert talked.post("/sessions/run/simulations", wish)["job"] != first["job"]


def test_two_teams_may_use_the_same_key_and_the_same_id(program: Program, stranger: Program):
    body = {"messages": TALK[:1]}
    for one in (program, stranger):
        result = one.post("/sessions/run/messages", body, idempotency_key="k")
        assert (result["appended"], result["last_seq"]) == (1, 1)
    assert Session.objects.count() == 2
    assert Answer.objects.count() == 2


def test_usage_is_normalised_and_counted_once(talked: Program):
    usage = {"input_tokens": 100, "cache_read_input_tokens": 900, "output_tokens": 7}
    result = talked.post("/sessions/run/calls", {"step": 1, "usage": usage}, idempotency_key="u")
    assert result["step"] == 1
    assert result["usage"]["total"] == 1000
    assert (
        talked.post("/sessions/run/calls", {"step": 1, "usage": usage})["usage"] == result["usage"]
    )


def test_pins_are_set_and_taken_off(talked: Program):
    assert talked.post("/sessions/run/pins", {"seq": 1}) == {"pins": [1]}
    assert talked.get("/sessions/run/pins") == {"pins": [1]}
    assert talked.ask("DELETE", "/sessions/run/pins/1").json() == {"pins": []}
    assert_problem(talked.ask("DELETE", "/sessions/run/pins/1"), 404)
    assert assert_problem(talked.ask("POST", "/sessions/run/pins", {"seq": 9}), 422)["errors"]


def test_the_list_has_pages_that_do_not_shift(program: Program):
    for number in range(5):
        program.ask("PUT", f"/sessions/run-{number}", {"title": f"Number {number}"})
    first = program.get("/sessions?limit=2")
    program.ask("PUT", "/sessions/newer", {})
    seen = [row["external_id"] for row in first["sessions"]]
    cursor = first["next"]
    while cursor:
        page = program.get(f"/sessions?limit=2&cursor={cursor}")
        seen += [row["external_id"] for row in page["sessions"]]
        cursor = page["next"]
    assert seen == [f"run-{number}" for number in (4, 3, 2, 1, 0)]
    assert [row["title"] for row in program.get("/sessions?q=ber 3")["sessions"]] == ["Number 3"]
    assert program.get("/sessions?q=%00")["sessions"] == []


@pytest.mark.parametrize("cursor", ["x", "%00", "bnVsbA", "WzEsMl0", "eyJhIjoxfQ", "ä"])
def test_an_unknown_cursor(program: Program, cursor: str):
    answer = program.ask("GET", f"/sessions?cursor={cursor}")
    assert assert_problem(answer, 422)["errors"][0]["pointer"] == "?cursor"


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


def test_a_context_can_be_had_as_actions_and_observations(talked: Program):
    found = talked.get("/sessions/run/context?format=pairs")
    said = found["messages"][-1]
    assert (found["format"], said["role"]) == ("pairs", "user")
    assert "<action>" in said["content"]
    assert "<observation>\nx = 1\n</observation>" in said["content"]


def test_reading_back_and_the_tool_that_does(talked: Program):
    found = talked.get("/sessions/run/content/3")
    assert (found["text"], found["total_lines"], found["truncated"]) == ("x = 1", 1, False)
    assert talked.get("/sessions/run/content/3?grep=y")["lines"] == [0, 0]
    assert_problem(talked.ask("GET", "/sessions/run/content/99"), 404)
    assert assert_problem(talked.ask("GET", "/sessions/run/content/3?grep=("), 422)["errors"]
    assert assert_problem(talked.ask("GET", "/sessions/run/content/3?head=1&tail=1"), 422)["errors"]
    assert talked.get("/sessions/run/content-tool")["input_schema"]["required"] == ["ref"]
    assert talked.get("/sessions/run/content-tool?format=openai")["type"] == "function"


def test_a_read_only_key_sees_the_context_but_is_handed_none(talked: Program, reader: Program):
    seen = reader.get("/sessions/run/context")
    assert seen["context_id"] is None
    assert seen["messages"] == talked.get("/sessions/run/context")["messages"]


def test_a_context_stays_what_it_was(talked: Program):
    first = talked.get("/sessions/run/context")
    talked.post("/sessions/run/messages", {"messages": [{"role": "user", "content": "and?"}]})
    again = talked.get(f"/sessions/run/context?context_id={first['context_id']}")
    assert again["messages"] == first["messages"]
    assert len(talked.get("/sessions/run/context")["messages"][-1]["content"]) == 2
    assert_problem(talked.ask("GET", "/sessions/run/context?context_id=ctx_nothing"), 404)
    assert assert_problem(talked.ask("GET", "/sessions/run/context?at=99"), 422)["errors"]


@pytest.mark.parametrize(
    ("policy", "hours", "asked"),
    [
        ("balanced", True, ["1h", None]),
        ("balanced", False, [None] * 2),
        ("passthrough", True, ["1h"] * 2),
        ("passthrough", False, [None] * 2),
    ],
)
def test_a_context_asks_for_the_ttls_of_its_policy_and_for_none_longer_than_the_client(
    program: Program, policy: str, hours: bool, asked: list[str | None]
):
    program.ask("PUT", "/sessions/run", {"model": "claude-sonnet-4-5", "policy": policy})
    program.post("/sessions/run/messages", {"system": "Be brief.", "messages": TALK})
    if hours:
        written = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 900}
        usage = {"input_tokens": 9, "output_tokens": 9, "cache_creation": written}
        usage |= {"cache_creation_input_tokens": 900, "cache_read_input_tokens": 0}
        program.post("/sessions/run/calls", {"step": 1, "usage": usage})
    first = program.get("/sessions/run/context")
    for query in ("", f"?context_id={first['context_id']}", f"?at={first['step']}"):
        given = program.get(f"/sessions/run/context{query}")
        parts = [*given["system"], *(one for m in given["messages"] for one in m["content"])]
        marks = [part["cache_control"] for part in parts if "cache_control" in part]
        assert [mark.get("ttl") for mark in marks] == asked


def test_an_import_is_a_job(program: Program):
    log = json.dumps({"messages": [{"role": "user", "content": "hello"}]}).encode()
    result = program.post("/imports?name=talk.json", log, content_type="application/octet-stream")
    job = program.get(f"/jobs/{result['job']}")
    assert (job["kind"], job["state"], result["files"]) == ("import", "queued", 1)
    assert result["job_url"] == f"/api/v1/jobs/{result['job']}"
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


def test_what_fails_on_our_side_tells_nothing(
    talked: Program, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def broken(*_: Any) -> Any:
        raise RuntimeError("the secret content")

    monkeypatch.setattr(sessions_api, "describe_session", broken)
    answer = talked.ask("GET", "/sessions/run")
    assert "secret" not in str(assert_problem(answer, 500))
    from contextlab.logs import OneLine

    lines = "\n".join(map(OneLine().format, caplog.records))
    assert "RuntimeError" in lines
    assert "secret content" not in lines
    assert talked.token not in lines


def test_a_busy_database_asks_for_patience(program: Program):
    def locked(*_: Any) -> Any:
        raise OperationalError("database is locked")

    with connection.execute_wrapper(locked):
        answer = program.ask("GET", "/sessions")
    assert "Idempotency-Key" in assert_problem(answer, 503)["detail"]
    assert int(answer["Retry-After"]) > 0
