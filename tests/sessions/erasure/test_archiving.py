"""Archiving: a cold session is packed, is whole whenever it stops, and opens as it was."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from compaction.redaction.team_rules import TeamRule
from sessions.actions.accounts.audit import COMMAND
from sessions.actions.archives import packed, unpack
from sessions.actions.erasure import archiving, retention
from sessions.actions.erasure.holds import hold
from sessions.actions.erasure.requests import ErasureRule, scope_of
from sessions.actions.erasure.rows import text_bytes
from sessions.actions.erasure.rules import sessions_of
from sessions.actions.imports.export import export
from sessions.actions.imports.imports import begin_import, run_import
from sessions.actions.imports.team_export import export_team
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import attempt
from sessions.actions.masking import rules
from sessions.actions.record import checks
from sessions.actions.record.erased import Uses
from sessions.actions.search.indexing import index_replacements, index_some
from sessions.models import (
    Archive,
    AuditEntry,
    Blob,
    Block,
    Edit,
    Entry,
    Erasure,
    Hold,
    Job,
    Message,
    ModelCall,
    Pin,
    Retention,
    Retry,
    Run,
    Session,
)
from tests.sessions.erasure.erasing import MARK, SHARED, do_jobs, erased, eraser, stored_bytes
from tests.sessions.erasure.test_keeping import said
from tests.sessions.erasure.test_retention import aged
from tests.sessions.made import count
from tests.sessions.people import shown
from tests.sessions.programs import Program, assert_problem
from tests.sessions.web.world import browser_of

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.store,
    pytest.mark.usefixtures("jobs_wait"),
]

TABLES = (Message, Pin, Retry, Block, Entry, Edit, ModelCall)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several parts per table."""
    for module in (packed, unpack, archiving):
        monkeypatch.setattr(module, "AT_ONCE", 7)


def everything(session: Session) -> tuple[list[str], list[Any], set[str]]:
    """A session as it is exported, its rows with their keys, and the team's contents."""
    session = Session.objects.get(pk=session.pk)
    lines = [json.dumps(line, default=str) for line in export(session, None)]
    rows = [list(model._default_manager.order_by("pk").values_list()) for model in TABLES]
    return lines, rows, set(Blob.objects.values_list("sha", flat=True))


def archive(program: Program, **given: Any) -> int:
    Job.objects.all().delete()
    return archiving.archive(program.team, 30, COMMAND, **given)


def findings() -> list[Any]:
    return [finding for part in checks.parts() for finding in part.findings]


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


def test_what_is_at_work_held_or_new_stays(program: Program) -> None:
    session = aged(program, "old", 100)
    other = aged(program, "other", 100, marked="heron")
    Job.objects.all().delete()
    now = timezone.now()
    sizes = {one.pk: text_bytes([one.pk]) for one in (session, other)}
    whole = archiving.Cold(2, sum(sizes.values()), 0, 0)
    rest = archiving.Cold(1, sizes[other.pk], 1, 0)

    def cold(days: int | None) -> archiving.Cold:
        return archiving.cold(program.team, days, now)

    assert cold(None) == cold(101) == archiving.Cold(0, 0, 0, 0)
    assert cold(30) == whole
    job = Job.objects.create(
        team=program.team, kind="tend", payload={"session": str(session.pk)}, wake_after=now
    )
    Job.objects.create(team=program.team, kind="index", payload={}, wake_after=now)
    assert cold(30) == replace(whole, at_work=1)
    Session.objects.filter(pk=other.pk).update(changed=now)
    assert cold(30) == replace(whole, at_work=2)
    hold(program.team, Hold.Kind.SESSION, str(session.pk), COMMAND, "a lawsuit")
    assert cold(30) == replace(rest, at_work=1)
    Session.objects.update(changed=now - timedelta(hours=1))
    assert cold(30) == rest
    job.delete()
    assert cold(30) == rest
    hold(program.team, Hold.Kind.TEAM, "", COMMAND, "a lawsuit")
    assert cold(30) == archiving.Cold(0, 0, 2, 0)


@pytest.mark.parametrize("timed", [True, False])
def test_age_is_of_the_last_step_for_archiving_and_retention(program: Program, timed: bool) -> None:
    """Old logs that were just imported: both count them at once, and do it once they rest."""
    session = aged(program, "old", 100)
    Job.objects.all().delete()
    now = timezone.now()
    if not timed:
        Session.objects.update(ended_at=None)
    Session.objects.update(changed=now)
    assert (counted := archiving.cold(program.team, 99, now)).at_work == counted.sessions == 1
    due = retention.due(program.team, None, 99, now)
    assert (due.sessions, due.at_work) == ([session.pk], {session.pk})
    assert archiving.cold(program.team, 101, now).sessions == 0
    assert not retention.due(program.team, None, 101, now).sessions
    assert archiving.archive(program.team, 99, COMMAND) == 0
    Session.objects.update(changed=now - timedelta(hours=1))
    assert archiving.cold(program.team, 99, now) == replace(counted, at_work=0)
    assert archiving.archive(program.team, 99, COMMAND) == 1


def test_the_dry_run_reads_no_ids(program: Program) -> None:
    for number in range(3):
        Session.objects.create(team=program.team, external_id=str(number), block_count=1)
    Session.objects.update(changed=timezone.now() - timedelta(days=9), ended_at=1)
    with CaptureQueriesContext(connection) as few:
        assert archiving.cold(program.team, 3, timezone.now()).sessions == 3
    asked = [one["sql"] for one in few if "block_count" in one["sql"]]
    assert len(asked) == 3 and all("COUNT(" in sql or "SUM(" in sql for sql in asked)


def test_a_hold_that_comes_meanwhile_keeps_the_rest(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two", "three"):
        aged(program, name, 100)
    Job.objects.all().delete()
    monkeypatch.setattr(archiving, "SESSIONS", 1)

    def heard() -> None:
        if Archive.objects.count() == 2 and not Hold.objects.exists():
            hold(program.team, Hold.Kind.TEAM, "", COMMAND, "a lawsuit")

    assert archiving.archive(program.team, 30, COMMAND, heard) == 2
    assert Session.objects.filter(archived=None).count() == 1


def test_content_that_another_session_uses_stays(program: Program) -> None:
    aged(program, "old", 100)
    aged(program, "new", 10, marked="heron")
    archive(program)
    assert SHARED in str(program.get("/sessions/new/messages"))
    assert findings() == []


def test_content_of_what_is_unpacked_meanwhile_is_in_use(program: Program) -> None:
    """Unpacked rows have the keys that they had before, and look old."""
    session = aged(program, "old", 100)
    archive(program)
    uses = Uses(program.team)
    unpack.unpack(session)
    shas = list(Block.objects.values_list("sha", flat=True))
    assert uses.erase_some(shas) == []
    assert findings() == []


def test_a_run_that_was_deleted_meanwhile_stays_so(program: Program) -> None:
    session = aged(program, "old", 100)
    archive(program)
    Run.objects.filter(session=session, origin="managed").delete()
    unpack.unpack(session)
    assert session.blocks.count() == session.block_count and findings() == []


def test_an_archived_session_is_erased_with_its_archive(program: Program) -> None:
    session = aged(program, "old", 100)
    archive(program)
    key = eraser(program)
    assert sessions_of(program.team, ErasureRule(Erasure.Kind.TEXT, MARK)) == [session.pk]
    assert sessions_of(program.team, ErasureRule(Erasure.Kind.TEXT, "pelican")) == []
    asked = key.ask("DELETE", "/sessions/old").json()
    assert Session.objects.filter(archived__isnull=False).exists(), "only its erasure opens it"
    made = json.loads(erased(asked["id"]).receipt)
    assert made["rows"]["message"] == session.message_count
    assert made["rows"]["block"] == session.block_count
    assert not Archive.objects.exists() and MARK.encode() not in stored_bytes()


def test_content_of_an_archived_session_can_be_erased_alone(program: Program) -> None:
    session = aged(program, "old", 100)
    archive(program)
    retention.change(program.team, 90, None, COMMAND)
    retention.sweep(timezone.now())
    do_jobs()
    session.refresh_from_db()
    assert session.content_erased is not None and session.archived is None
    assert session.blocks.count() == session.block_count
    assert MARK.encode() not in stored_bytes()


def test_a_team_is_exported_with_archived_sessions(program: Program, tmp_path: Path) -> None:
    aged(program, "old", 100)
    assert export_team(program.team, tmp_path / "before.zip", COMMAND) == 1
    archive(program)
    assert export_team(program.team, tmp_path / "after.zip", COMMAND) == 1
    assert (tmp_path / "after.zip").read_bytes() == (tmp_path / "before.zip").read_bytes()
    assert Session.objects.filter(archived__isnull=False).exists(), "it is still archived"
    assert findings() == []


def test_importing_it_again_finds_it(program: Program, tmp_path: Path) -> None:
    session = aged(program, "old", 100)
    file = tmp_path / "old.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in export(session, None)))
    archive(program)
    made = begin_import(program.team, [(file.name, str(file), 0)], job=None)
    run_import(made, count, lambda *_: None)
    assert made.files.get().state == "known"
    assert Session.objects.count() == 1 and findings() == []


def test_the_rule_runs_once_a_day_and_is_audited(program: Program) -> None:
    session = aged(program, "old", 100)
    now = timezone.now()
    assert archiving.sweep(now) == 0
    archiving.change(program.team, 30, COMMAND)
    Job.objects.all().delete()
    assert archiving.sweep(now) == 1
    assert archiving.sweep(now + timedelta(hours=23)) == 0
    claimed = jobs.claim(Job.objects.get(kind="archive").pk)
    assert claimed is not None and claimed.token is not None
    attempt(claimed.pk, claimed.token)
    assert not Job.objects.filter(kind="archive").exists()
    assert Session.objects.filter(pk=session.pk, archived__isnull=False).exists()
    noted = AuditEntry.objects.filter(action__in=("archiving.changed", "sessions.archived"))
    assert noted.count() == 2
    assert archiving.sweep(now + timedelta(hours=25)) == 1


def test_it_is_counted_then_set(program: Program) -> None:
    aged(program, "old", 100)
    Job.objects.all().delete()
    assert_problem(program.ask("PUT", "/archiving", {"days": 30}), 403)
    key = eraser(program)
    counted = key.ask("PUT", "/archiving", {"days": 30, "dry_run": True}).json()
    assert (counted["sessions"], counted["held"], counted["at_work"]) == (1, 0, 0)
    assert counted["bytes"] > 0
    nothing = {"sessions": 0, "bytes": 0, "text_bytes": 0}
    assert key.get("/archiving") == {"days": None} | nothing
    assert key.ask("PUT", "/archiving", {"days": 30}).json() == {"days": 30} | nothing
    browser = browser_of(program.team)
    seen = str(shown(browser.post("/settings/data/archiving/", {"days": "30"})).text)
    assert "1 session whose last step (without times, import) is older than 30 days" in " ".join(
        seen.split()
    )
    assert browser.post("/settings/data/archiving/", {"days": "60", "sure": "y"}).status_code == 302
    assert Retention.objects.get().archive_days == 60
    assert browser.post("/settings/data/archiving/", {"days": "0"}).status_code == 422
    assert not Archive.objects.exists()


def test_on_the_command_line(program: Program) -> None:
    session = aged(program, "old", 100)
    Job.objects.all().delete()
    assert said("archive").startswith("Archived: 0 sessions")
    counted = said("archive", "--days", "30")
    assert "older than 30 days, and not unpacked since: 1 sessions" in counted
    Session.objects.update(changed=timezone.now())
    assert "1 of them still at work" in said("archive", "--days", "30")
    Session.objects.update(changed=session.changed)
    assert not Archive.objects.exists()
    assert "Archived 1 sessions" in said("archive", "--days", "30", "--now")
    assert Archive.objects.get().session_id == session.pk
    assert "Every day: after 90 days." in said("archive", "--days", "90", "--every-day")
    assert said("archive", "--open", "old") == "Unpacked.\n"
    assert said("archive", "--days", "forever", "--every-day").endswith("Every day: never.\n")
    assert not Archive.objects.exists()


def test_a_damaged_archive_is_named(program: Program) -> None:
    aged(program, "old", 100)
    archive(program)
    sha = Archive.objects.get().sha
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM agent_sessions_blob WHERE sha = %s", [sha])
    assert [finding.rule for finding in findings()] == ["an archive has its bytes"]
    assert program.ask("GET", "/sessions/old/messages").status_code == 500
    assert Session.objects.filter(archived__isnull=False).exists()
