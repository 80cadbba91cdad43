"""Archiving: a cold session is packed, is whole whenever it stops, and opens as it was."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from compaction.redaction.team_rules import TeamRule
from sessions.actions.accounts.audit import COMMAND
from sessions.actions.archives import packed, unpack
from sessions.actions.erasure.requests import ErasureRule, scope_of
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import attempt
from sessions.actions.masking import rules
from sessions.actions.search.indexing import index_replacements, index_some
from sessions.models import (
    Archive,
    Blob,
    Erasure,
    Job,
    Message,
    ModelCall,
    Session,
)
from tests.sessions.erasure.archived import archive, everything, findings, small_parts
from tests.sessions.erasure.erasing import MARK
from tests.sessions.erasure.test_retention import aged
from tests.sessions.people import shown
from tests.sessions.programs import Program, assert_problem
from tests.sessions.web.world import browser_of

__all__ = ["small_parts"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.store,
    pytest.mark.usefixtures("jobs_wait"),
]


def with_usage(session: Session) -> None:
    """Calls as providers report them."""
    for call in session.calls.all():
        ModelCall.objects.filter(pk=call.pk).update(usage_raw=json.dumps({"n": call.step}))


def test_who_sees_masks_unpacks_what_was_stored(program: Program) -> None:
    session = aged(program, "old", 100)
    before = everything(session)
    assert MARK in "".join(before[0])
    rules.add(program.team, TeamRule("MARK", "words", MARK, "[MARK]"), COMMAND)
    rules.show_masked(program.team, True, COMMAND)
    assert archive(program) == 1
    found = browser_of(program.team, "viewer").get("/api/v1/sessions/old/texts?at=0,1,2")
    assert "[MARK]" in found.content.decode() and MARK not in found.content.decode()
    assert everything(session) == before


def test_it_is_packed_and_opens_as_it_was(program: Program) -> None:
    session = aged(program, "old", 100)
    with_usage(session)
    aged(program, "new", 10, marked="heron")
    before = everything(session)
    rule = ErasureRule(Erasure.Kind.SESSION)
    counted = scope_of(program.team, rule, [session.pk])
    figures = program.get("/sessions")["sessions"]
    assert archive(program) == 1
    session.refresh_from_db()
    assert session.archived is not None
    row = Archive.objects.get()
    assert not row.loose and row.rows["block"] == session.block_count > packed.AT_ONCE
    assert not session.messages.exists() and not session.blocks.exists()
    assert not session.calls.exclude(usage_raw="").exists() and session.calls.exists()
    now = set(Blob.objects.values_list("sha", flat=True))
    assert before[2] - now and now - before[2] == {row.sha}
    assert findings() == []
    assert scope_of(program.team, rule, [session.pk]).bytes == counted.bytes
    assert program.get("/sessions")["sessions"] == figures
    assert program.get("/sessions/old") == next(
        row for row in figures if row["external_id"] == "old"
    )
    assert Archive.objects.exists(), "its figures are read without its content"
    assert program.get(f"/search?q={MARK}")["archived"] == 1
    assert program.get(f"/search?q={MARK}")["hits"] == []
    browser = browser_of(program.team)
    assert "archived" in str(shown(browser.get("/sessions/")).text)
    assert "1 archived session is found" in " ".join(
        str(shown(browser.get(f"/search/?q={MARK}")).text).split()
    )
    assert MARK in str(program.get("/sessions/old/messages"))
    assert everything(session) == before
    assert findings() == [] and not Archive.objects.exists()
    while index_some(program.team) + index_replacements(program.team):
        pass
    assert program.get(f"/search?q={MARK}")["hits"]
    assert archive(program) == 0, "it was opened a moment ago"


class Stopped(BaseException):
    """As when the process is killed."""


def stopping(after: int) -> Any:
    """Called between parts; stops the work at the call with this number."""
    left = iter(range(after))

    def heard() -> None:
        if next(left, None) is None:
            raise Stopped

    return heard


def test_stopped_anywhere_it_is_whole(program: Program) -> None:
    session = aged(program, "old", 100)
    before = everything(session)
    stops = 0
    while True:
        try:
            archive(program, heard=stopping(stops // 3))
            break
        except Stopped:
            stops += 1
            assert findings() == []
    assert stops > 5
    assert not Archive.objects.filter(loose=True).exists() and not Message.objects.exists()
    opened = 0
    while True:
        try:
            unpack.unpack(session, stopping(opened))
            break
        except Stopped:
            opened += 1
            assert Session.objects.filter(pk=session.pk, archived__isnull=False).exists()
    assert opened > 5
    assert everything(session) == before and findings() == []


@pytest.mark.parametrize("done", [1, 3, 9])
def test_opening_wins_over_archiving(program: Program, done: int) -> None:
    session = aged(program, "old", 100)
    before = everything(session)
    with pytest.raises(Stopped):
        archive(program, heard=stopping(done))
    with pytest.raises(Stopped):
        unpack.unpack(session, stopping(1))
    assert archive(program) == 0, "it stays as it is while it is being opened"
    assert MARK in str(program.get("/sessions/old/messages"))
    assert everything(session) == before and findings() == []


def test_an_unpacking_that_was_given_up_is_tidied(program: Program) -> None:
    session = aged(program, "old", 100)
    before = everything(session)
    archive(program)
    with pytest.raises(Stopped):
        unpack.unpack(session, stopping(2))
    assert Message.objects.exists()
    Archive.objects.update(opening=timezone.now() - timedelta(hours=2))
    archive(program)
    assert not Message.objects.exists()
    unpack.unpack(session)
    assert everything(session) == before


def test_an_append_unpacks_it_first(program: Program) -> None:
    session = aged(program, "old", 100)
    many = session.message_count
    archive(program)
    program.post("/sessions/old/messages", {"messages": [{"role": "user", "content": "more"}]})
    session.refresh_from_db()
    assert (session.archived, session.message_count) == (None, many + 1)
    assert session.messages.count() == many + 1 and findings() == []


def test_a_large_one_is_unpacked_by_a_job(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = aged(program, "old", 100)
    before = everything(session)
    archive(program)
    monkeypatch.setattr(unpack, "AT_ONCE_BLOCKS", 1)
    wait = program.ask("GET", "/sessions/old/messages")
    assert "is being unpacked" in assert_problem(wait, 503)["detail"]
    assert int(wait.headers["Retry-After"]) >= 1
    browser = browser_of(program.team)
    page = browser.get(f"/sessions/{session.pk}/")
    assert (page.status_code, page.headers["Refresh"]) == (503, "2")
    assert "That takes about 1 s" in str(shown(page, 503).text)
    (job,) = Job.objects.filter(kind="unpack")
    claimed = jobs.claim(job.pk)
    assert claimed is not None and claimed.token is not None
    attempt(claimed.pk, claimed.token)
    assert everything(session) == before
    assert browser.get(f"/sessions/{session.pk}/").status_code == 200
