"""What agents send is counted, what is refused is kept, and both are shown."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from sessions.actions.ingestion import arrivals
from sessions.api.ingestion.inspected import form_of
from sessions.models import AcceptedRequests, AuditEntry, Message, RefusedRequest, Session
from tests.sessions.pages import Page
from tests.sessions.programs import Program, assert_problem
from tests.sessions.web.world import browser_of

pytestmark = [pytest.mark.django_db, pytest.mark.store, pytest.mark.usefixtures("jobs_wait")]

GOOD = {"messages": [{"role": "user", "content": "Mend the ferry."}]}
SECRET = "sk-ant-api03-" + "Ab3dEf9h" * 10
BAD = {"messages": [{"role": "robot", "content": f"my key is {SECRET}"}]}


@pytest.fixture(autouse=True)
def nothing_noted() -> Any:
    arrivals._accepted.clear()
    arrivals._refused.clear()
    yield
    arrivals._accepted.clear()
    arrivals._refused.clear()


def send(program: Program, body: Any = GOOD, name: str = "run") -> int:
    return program.ask("POST", f"/sessions/{name}/messages", body).status_code


def refused(program: Program, body: Any = BAD) -> RefusedRequest:
    assert send(program, body) >= 400
    arrivals.flush()
    return RefusedRequest.objects.get()


def test_accepted_requests_are_counted_by_key_agent_and_format(program: Program):
    program.ask("PUT", "/sessions/run", {"agent": "ferry"})
    program.ask("PUT", "/sessions/other", {"agent": "ferry"})
    for name in ("run", "run", "other"):
        assert send(program, name=name) == 201
    session = Session.objects.get(external_id="run")
    assert send(program, name=str(session.pk)) == 201, "by its UUID, too"
    arrivals.flush()
    arrivals.flush()
    said = program.get("/ingestion")
    by_kind = {row["kind"]: row for row in said["accepted"]}
    assert {kind: row["requests"] for kind, row in by_kind.items()} == {"session": 2, "messages": 4}
    sent = by_kind["messages"]
    assert (sent["messages"], sent["sessions"], sent["format"]) == (4, 2, "text")
    assert (sent["agent"], sent["key"]) == ("ferry", program.key.prefix)
    assert sent["bytes"] == 4 * len(json.dumps(GOOD))


def test_reading_is_not_counted(program: Program):
    send(program)
    arrivals.flush()
    before = AcceptedRequests.objects.count()
    program.get("/sessions/run/messages")
    arrivals.flush()
    assert AcceptedRequests.objects.count() == before == 1


@pytest.mark.parametrize(
    ("message", "form"),
    [
        ({"role": "user", "content": "x"}, "text"),
        ({"role": "tool", "content": "x"}, "openai"),
        ({"role": "assistant", "tool_calls": []}, "openai"),
        ({"role": "user", "content": [{"type": "tool_result"}]}, "anthropic"),
        ({"role": "user", "content": [{"type": "text"}]}, "text"),
        ({"role": "user"}, ""),
        ("x", ""),
    ],
)
def test_the_format(message: Any, form: str):
    assert form_of([message]) == form
    assert form_of([]) == ""


def test_a_refused_request_is_kept_once_with_its_reason_masked(program: Program):
    for _ in range(3):
        assert send(program, BAD) == 422
    arrivals.flush()
    send(program, BAD)
    arrivals.flush()
    row = RefusedRequest.objects.get()
    assert (row.status, row.field, row.times) == (422, "/messages/0/role", 4)
    assert (row.session, row.key, row.kind) == ("run", program.key.prefix, "messages")
    assert program.get("/ingestion")["refused"] == 4
    assert SECRET not in json.dumps(program.get("/ingestion/refused"))
    page = Page(browser_of(program.team).get(f"/settings/ingestion/{row.pk}/").content.decode())
    assert "my key is" in page.text and SECRET not in page.html


@pytest.mark.parametrize("body", [b"{", b"", b"\xff\xfe", b'{"messages": 1}', b"[" * 500])
def test_any_refused_body_is_kept_as_it_was(program: Program, body: bytes):
    row = refused(program, body)
    assert bool(row.body) == bool(body)
    client = browser_of(program.team)
    assert client.get(f"/settings/ingestion/{row.pk}/").status_code == 200
    assert client.get("/settings/ingestion/").status_code == 200


def test_refusals_without_the_body_as_cause_are_not_kept(program: Program, reader: Program):
    assert send(reader) == 403
    assert program.ask("POST", "/sessions/none/calls", {"usage": {}}).status_code in (404, 422)
    program.ask("POST", "/sessions/run/messages", GOOD, authorization="Bearer no")
    arrivals.flush()
    assert not RefusedRequest.objects.filter(status__in=(401, 403, 404)).exists()


def test_once_its_cause_is_fixed_it_is_applied_exactly_once(
    program: Program, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as broken:
        broken.setattr("sessions.api.live.messages.delivery", lambda _: 1 / 0)
        row = refused(program, GOOD)
    assert row.status == 500 and not Message.objects.exists()
    client = browser_of(program.team)
    for _ in range(2):
        client.post(f"/settings/ingestion/{row.pk}/apply/")
    assert Message.objects.count() == 1
    row.refresh_from_db()
    assert row.applied is not None and not row.body, "the body is not needed any more"
    assert_problem(program.ask("POST", f"/ingestion/refused/{row.pk}/apply", {}), 409)
    assert AuditEntry.objects.filter(action="refused_request.applied").count() == 1
    arrivals.flush()
    assert not AcceptedRequests.objects.exists(), "it was noted when it came"


def test_what_an_interrupted_attempt_applied_is_not_applied_again(
    program: Program, monkeypatch: pytest.MonkeyPatch
):
    from sessions.api.ingestion import again

    with monkeypatch.context() as broken:
        broken.setattr("sessions.api.live.messages.delivery", lambda _: 1 / 0)
        row = refused(program, GOOD)
    with monkeypatch.context() as dying:
        dying.setattr(again, "_conclude", lambda *_: 1 / 0)
        assert program.ask("POST", f"/ingestion/refused/{row.pk}/apply", {}).status_code == 500
    assert program.post(f"/ingestion/refused/{row.pk}/apply", {})["applied"]
    assert Message.objects.count() == 1


def test_one_that_is_still_wrong_says_why(program: Program):
    row = refused(program)
    said = program.post(f"/ingestion/refused/{row.pk}/apply", {})
    assert (said["applied"], said["status"], said["applicable"]) == (None, 422, True)
    arrivals.flush()
    assert RefusedRequest.objects.get().times == 1


def test_what_it_says_then_is_masked_and_storable(
    program: Program, monkeypatch: pytest.MonkeyPatch
):
    from django.http import JsonResponse

    from sessions.api.ingestion import again

    said = {
        "title": "Bad\x00",
        "detail": f"{SECRET} is no role",
        "errors": [{"pointer": "/\x00role"}],
    }
    answer = JsonResponse(said, status=422)
    monkeypatch.setattr(again, "_send", lambda *_: (422, answer.content))
    row = refused(program)
    program.post(f"/ingestion/refused/{row.pk}/apply", {})
    row.refresh_from_db()
    assert SECRET not in row.detail and row.detail.endswith("is no role")
    assert (row.problem, row.field) == ("Bad", "/role")


def test_it_is_applied_in_its_own_team_though_the_person_is_in_another_with_that_session(
    program: Program, stranger: Program, monkeypatch: pytest.MonkeyPatch
):
    send(stranger)
    with monkeypatch.context() as broken:
        broken.setattr("sessions.api.live.messages.delivery", lambda _: 1 / 0)
        send(program)
    arrivals.flush()
    row = RefusedRequest.objects.get()
    client = browser_of(program.team)
    from django.contrib.auth.models import User

    from sessions.models import Membership

    Membership.objects.create(
        user=User.objects.get(username=f"owner of {program.team}"), team=stranger.team, role="owner"
    )
    client.post(f"/settings/ingestion/{row.pk}/apply/?team={stranger.team.slug}")
    client.post(f"/settings/ingestion/{row.pk}/apply/")
    counts = Session.objects.values_list("team__slug", "message_count")
    assert dict(counts) == {"ours": 1, "theirs": 1}


def test_erased_is_gone(program: Program):
    row = refused(program)
    program.ask("DELETE", f"/ingestion/refused/{row.pk}")
    assert not RefusedRequest.objects.exists()
    assert AuditEntry.objects.filter(action="refused_request.erased").exists()


def test_bounds(program: Program, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(arrivals, "BODY_BYTES", 200)
    monkeypatch.setattr(arrivals, "TEAM_ROWS", 2)
    large = refused(program, {"messages": [{"role": "robot", "content": "x" * 300}]})
    assert (large.kept[:18], bytes(large.body)) == ("It was larger than", b"")
    for number in range(3):
        send(program, {"messages": [{"role": f"robot{number}", "content": ""}]})
    arrivals.flush()
    assert RefusedRequest.objects.count() == 2
    monkeypatch.setattr(arrivals, "TEAM_BYTES", 1)
    send(program, {"messages": [{"role": "robot", "content": "other"}]})
    arrivals.flush()
    assert [bytes(row.body) for row in RefusedRequest.objects.all()] == [b"", b""]
    monkeypatch.setattr(arrivals, "WAITING_ROWS", 1)
    for number in range(3):
        send(program, {"messages": [{"role": f"robot{number}", "content": ""}]})
    assert len(arrivals._refused) == 1


def test_what_a_team_sent_that_was_deleted_since_is_left_out(program: Program):
    send(program, BAD)
    ((which, one),) = arrivals._refused.items()
    arrivals._refused.clear()
    arrivals._refused.update({which._replace(team=uuid4()): one, which: one})
    arrivals.flush()
    assert RefusedRequest.objects.get().team == program.team


def test_old_rows_are_deleted(program: Program):
    send(program)
    refused(program)
    long_ago = timezone.now() - timedelta(days=15)
    AcceptedRequests.objects.update(last=long_ago)
    RefusedRequest.objects.update(last=long_ago)
    arrivals.forget_old()
    assert not AcceptedRequests.objects.exists() and not RefusedRequest.objects.exists()


def test_nothing_of_it_is_logged(program: Program, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.DEBUG):
        refused(program)
    assert "my key is" not in caplog.text and SECRET not in caplog.text


def test_the_page(program: Program):
    client = browser_of(program.team)
    empty = Page(client.get("/settings/ingestion/").content.decode())
    assert "Nothing was refused." in empty.text and "Nothing came in today" in empty.text
    send(program)
    refused(program)
    page = Page(client.get("/settings/ingestion/").content.decode())
    assert "1 accepted" in page.text and "1 refused" in page.text
    assert "422 Not acceptable /messages/0/role" in page.text
    viewer = Page(browser_of(program.team, "viewer").get("/settings/ingestion/").content.decode())
    assert "Apply again" in page.text and "Apply again" not in viewer.text


def test_a_session_says_how_many_of_its_calls_were_not_stored(program: Program):
    send(program)
    session = Session.objects.get(external_id="run")
    address, client = f"/sessions/{session.pk}/", browser_of(program.team)
    for body, name in ((BAD, "run"), (BAD, "run"), ({"messages": 1}, str(session.pk))):
        assert send(program, body, name) == 422
    send(program, BAD, "other")
    assert program.ask("POST", "/sessions/run/steps", {"messages": 1}).status_code == 422
    arrivals.flush()
    page = Page(client.get(address).content.decode())
    said = " ".join(page.text.split())
    assert "2 model calls were not stored: 422" in said
    [newest] = RefusedRequest.objects.filter(session=str(session.pk))
    assert f"/settings/ingestion/{newest.pk}/" in page.html and newest.detail in page.text
    newest.delete()
    assert "1 model call was not stored: 422" in " ".join(
        Page(client.get(address).content.decode()).text.split()
    )
    RefusedRequest.objects.update(applied=timezone.now())
    assert "not stored" not in client.get(address).content.decode()


@pytest.mark.parametrize("field", ["after", "recorded_revision"])
def test_the_rest_of_a_history_that_others_changed_is_not_kept(program: Program, field: str):
    send(program)
    assert send(program, {**GOOD, field: 7}) == 422
    arrivals.flush()
    assert not RefusedRequest.objects.exists()
