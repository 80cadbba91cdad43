"""Content of archived sessions: used, erased, exported and imported as that of others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone

from sessions.actions.accounts.audit import COMMAND
from sessions.actions.archives import unpack
from sessions.actions.erasure import retention
from sessions.actions.erasure.requests import ErasureRule
from sessions.actions.erasure.rules import sessions_of
from sessions.actions.imports.export import export
from sessions.actions.imports.imports import begin_import, run_import
from sessions.actions.imports.team_export import export_team
from sessions.actions.record.erased import Uses
from sessions.models import (
    Archive,
    Block,
    Erasure,
    Run,
    Session,
)
from tests.sessions.erasure.archived import archive, findings, small_parts
from tests.sessions.erasure.erasing import MARK, SHARED, do_jobs, erased, eraser, stored_bytes
from tests.sessions.erasure.test_retention import aged
from tests.sessions.made import count
from tests.sessions.programs import Program

__all__ = ["small_parts"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.store,
    pytest.mark.usefixtures("jobs_wait"),
]


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


def test_a_damaged_archive_is_named(program: Program) -> None:
    aged(program, "old", 100)
    archive(program)
    sha = Archive.objects.get().sha
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM agent_sessions_blob WHERE sha = %s", [sha])
    assert [finding.rule for finding in findings()] == ["an archive has its bytes"]
    assert program.ask("GET", "/sessions/old/messages").status_code == 500
    assert Session.objects.filter(archived__isnull=False).exists()
