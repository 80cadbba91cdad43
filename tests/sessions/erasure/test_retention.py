"""Retention: old content and old sessions go, figures stay, and every page says so."""

from __future__ import annotations

import zlib
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.utils import timezone

from sessions.actions.accounts.audit import COMMAND
from sessions.actions.erasure import receipts, retention
from sessions.actions.erasure.holds import hold
from sessions.actions.record import checks
from sessions.models import (
    Answer,
    AuditEntry,
    Board,
    Erasure,
    Hold,
    RefusedRequest,
    Retention,
    Session,
)
from tests.faults.services import IN_FULL
from tests.sessions.erasure.erasing import MARK, do_jobs, stored_bytes, talk
from tests.sessions.people import shown
from tests.sessions.programs import Program, assert_problem
from tests.sessions.web.world import browser_of

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.store,
    pytest.mark.usefixtures("jobs_wait"),
]


def aged(program: Program, name: str, days: int, **given: Any) -> Session:
    """A session that happened so many days ago."""
    session = talk(program, name, calls="call", **given)
    at = timezone.now() - timedelta(days=days)
    Session.objects.filter(pk=session.pk).update(
        ended_at=int(at.timestamp() * 1000), changed=at, created=at
    )
    session.refresh_from_db()
    return session


def all_texts() -> str:
    """Every value of every row, decompressed."""
    found = []
    for model in apps.get_app_config("agent_sessions").get_models():
        for row in model._default_manager.values_list():
            for value in row:
                if isinstance(value, bytes | memoryview):
                    data = bytes(value)
                    with suppress(zlib.error):
                        data = zlib.decompress(data)
                    found.append(data.decode("utf-8", "replace"))
                else:
                    found.append(str(value))
    return "\n".join(found).lower()


def sweep(program: Program, content: int | None, sessions: int | None) -> None:
    retention.change(program.team, content, sessions, COMMAND)
    retention.sweep(timezone.now())
    do_jobs()


def test_old_content_goes_and_figures_stay(program: Program):
    session = aged(program, "old", 100)
    new = aged(program, "new", 10, marked="heron")
    kept = {name: getattr(session, name) for name in ("step_count", "message_count", "peak_tokens")}
    assert MARK in all_texts()
    sweep(program, 90, None)
    assert MARK not in all_texts()
    assert MARK.encode() not in stored_bytes()
    session.refresh_from_db()
    assert {name: getattr(session, name) for name in kept} == kept
    assert session.blocks.count() == session.block_count > 0
    made = Erasure.objects.get()
    assert (made.kind, made.content_only, made.reason) == ("retention", True, "older than 90 days")
    assert receipts.verify(receipts.parse(made.receipt)).holds
    new.refresh_from_db()
    assert new.content_erased is None
    assert "heron" in str(program.get("/sessions/new/messages"))
    assert not [finding for part in checks.parts() for finding in part.findings]


def test_no_answer_folder_or_project_board_repeats_it(program: Program):
    session = aged(program, "old", 100)
    other = aged(program, "new", 10, marked="heron")
    for one in (session, other):
        told = {"summary": f"of {one.external_id}"}
        program.post(f"/sessions/{one.pk}/shares", told, Idempotency_Key=one.external_id)
        board = Board.objects.create(
            team=program.team, kind="project", name=f"/home/{one.external_id}"
        )
        board.notes.create(
            key="a", kind="knowledge", text="a", by="code", evidence={str(one.pk): 1}
        )
    now = timezone.now()
    RefusedRequest.objects.create(
        team=program.team, session="old", status=422, first=now, last=now, body=MARK.encode()
    )
    meta = {"cwd": "/home/old", "branch": MARK, "user": "4711"}
    Session.objects.filter(pk=session.pk).update(meta=meta)
    Session.objects.filter(pk=other.pk).update(meta={"cwd": "/home/new"})
    sweep(program, 90, None)
    session.refresh_from_db()
    assert session.meta == {"user": "4711"}
    assert set(Answer.objects.exclude(session=None).values_list("session", flat=True)) == {other.pk}
    assert not RefusedRequest.objects.exists()
    assert [one.name for one in Board.objects.filter(kind="project")] == ["/home/new"]
    again = {"summary": "of old"}
    repeated = program.ask("POST", "/sessions/old/shares", again, Idempotency_Key="old")
    assert_problem(repeated, 410)


def test_every_page_and_operation_says_so(program: Program):
    session = aged(program, "old", 100)
    other = aged(program, "new", 10, marked="heron")
    sweep(program, 90, None)
    browser = browser_of(program.team)
    base = f"/sessions/{session.pk}/"
    assert "Content erased on" in str(shown(browser.get(base)).text)
    pages = ("steps/1/", "diff/1..2/", "why/?text=heron", "export/", "memory/", "policy/", "tools/")
    for page in (*pages, f"compare/{other.pk}/", "revisions/1/?run=managed"):
        answer = browser.get(base + page)
        assert answer.status_code in (200, 302, 404, 409, 410), (page, answer.status_code)
    for page in ("/sessions/", "/dashboard/", "/search/?q=heron", "/lab/", "/review/", "/cache/"):
        assert browser.get(page).status_code in (200, 302), page
    api = f"/sessions/{session.pk}"
    erased = ("/messages", "/messages/1", "/context", "/texts?at=0,1", "/entries/1")
    for address in erased:
        answer = program.ask("GET", api + address)
        assert answer.status_code in (404, 410), (address, answer.status_code, answer.content)
    for address in ("", "/manifest", "/policy", "/budget", "/revisions"):
        assert program.ask("GET", api + address).status_code in (200, 404), address
    for form in ("jsonl", "html"):
        said = program.ask("GET", f"{api}/export?format={form}")
        assert said.status_code < 500, (form, said.content)
    more = {"messages": [{"role": "user", "content": "more"}]}
    said = assert_problem(program.ask("POST", f"{api}/messages", more), 410)
    assert "erased" in said["detail"]


def test_content_that_is_shared_is_not_shown_for_it(program: Program):
    """The bytes are there for the other session, and must not come back in this one."""
    session = aged(program, "old", 100)
    aged(program, "new", 10, marked="heron")
    sweep(program, 90, None)
    assert_problem(program.ask("GET", f"/sessions/{session.pk}/texts?at=0,1,2"), 410)


def test_old_sessions_go(program: Program):
    aged(program, "old", 100)
    aged(program, "new", 10, marked="heron")
    sweep(program, None, 90)
    assert list(Session.objects.values_list("external_id", flat=True)) == ["new"]
    assert MARK not in all_texts()


def test_a_hold_keeps_it(program: Program):
    session = aged(program, "old", 100)
    hold(program.team, Hold.Kind.SESSION, str(session.pk), COMMAND, "a lawsuit")
    due = retention.due(program.team, 1, 90, timezone.now())
    assert (due.sessions, due.content, due.held) == ([], [], 1)
    sweep(program, 1, 90)
    assert Session.objects.filter(pk=session.pk, content_erased=None).exists()


def test_what_was_just_imported_is_counted_and_goes_once_it_rests(program: Program):
    session = aged(program, "old", 100)
    Session.objects.update(changed=timezone.now())
    given = {"content_days": "", "session_days": "30"}
    page = browser_of(program.team).post("/settings/data/retention/", given)
    said = " ".join(str(shown(page).text).split())
    assert "This erases 1 session older than 30 days" in said
    assert "1 of them is still at work" in said and "erased later" in said
    sweep(program, None, 30)
    assert Session.objects.filter(pk=session.pk, erasing=None).exists()
    Session.objects.update(changed=session.changed)
    sweep(program, None, 30)
    assert not Session.objects.exists()


def test_it_runs_once_a_day(program: Program):
    retention.change(program.team, 90, None, COMMAND)
    now = timezone.now()
    retention.sweep(now)
    aged(program, "old", 100)
    assert retention.sweep(now + timedelta(hours=23)) == 0
    assert retention.sweep(now + timedelta(hours=25)) == 1
    assert AuditEntry.objects.filter(action="retention.changed").count() == 1


def test_the_page_counts_before_it_saves(program: Program):
    aged(program, "old", 100)
    owner = browser_of(program.team)
    given = {"content_days": "90", "session_days": ""}
    said = str(shown(owner.post("/settings/data/retention/", given)).text)
    assert "content of 1 session older than 90 days" in " ".join(said.split())
    assert not Retention.objects.exists()
    assert owner.post("/settings/data/retention/", given | {"sure": "yes"}).status_code == 302
    row = Retention.objects.get()
    assert (row.content_days, row.session_days) == (90, None)
    wrong = owner.post("/settings/data/retention/", {"content_days": "0"})
    assert wrong.status_code == 422


class Transactions:
    """Rows written by each transaction, by its statements."""

    def __init__(self) -> None:
        self.largest = self.rows = 0

    def __call__(self, execute: Any, sql: str, *given: Any) -> Any:
        answer = execute(sql, *given)
        if sql.startswith(("SAVEPOINT", "RELEASE")):
            return answer
        if not connection.in_atomic_block:
            self.rows = 0
        if sql.startswith(("INSERT", "UPDATE", "DELETE")):
            self.rows += max(given[-1]["cursor"].cursor.rowcount, 0)
            self.largest = max(self.largest, self.rows)
        return answer


@pytest.mark.fault("K10")
def test_retention_of_many_sessions_writes_little_at_a_time(program: Program):
    many = 10_000 if IN_FULL else 500
    old = timezone.now() - timedelta(days=90)
    rows = [
        Session(team=program.team, external_id=f"old-{number}", ended_at=1, title="A talk")
        for number in range(many)
    ]
    Session.objects.bulk_create(rows)
    Session.objects.update(changed=old, created=old)
    written = Transactions()
    retention.change(program.team, None, 30, COMMAND)
    assert retention.sweep(timezone.now()) == -(-many // retention.SESSIONS)
    with connection.execute_wrapper(written):
        do_jobs()
    assert not Session.objects.exists()
    assert Erasure.objects.exclude(finished=None).count() == -(-many // retention.SESSIONS)
    assert 0 < written.largest <= 50
