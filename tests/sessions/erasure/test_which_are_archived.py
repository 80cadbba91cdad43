"""Which sessions are archived and when: by age, not at work, not held, by rule or by command."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sessions.actions.accounts.audit import COMMAND
from sessions.actions.erasure import archiving, retention
from sessions.actions.erasure.holds import hold
from sessions.actions.erasure.rows import text_bytes
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import attempt
from sessions.models import (
    Archive,
    AuditEntry,
    Hold,
    Job,
    Retention,
    Session,
)
from tests.sessions.erasure.archived import small_parts
from tests.sessions.erasure.erasing import eraser
from tests.sessions.erasure.test_keeping import said
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
