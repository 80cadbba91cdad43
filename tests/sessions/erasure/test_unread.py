"""Uploads that no import reads any more: an erasure and retention take them, a hold keeps them."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from sessions.actions.accounts.audit import COMMAND
from sessions.actions.erasure import retention
from sessions.actions.erasure.holds import hold
from sessions.actions.imports.uploads import BodyFile, begin_upload
from sessions.actions.operations import objects as places
from sessions.models import Erasure, Hold, Import, ImportFile, Job
from sessions.models.record import objects
from tests.sessions.erasure.erasing import MARK, do_jobs, erased, eraser, stored_bytes, talk
from tests.sessions.programs import Program

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.store,
    pytest.mark.usefixtures("jobs_wait"),
]


def uploaded(program: Program, state: str, tmp_path: Path, name: str = MARK) -> Path:
    """The file of an upload whose job is in a state."""
    made = begin_upload(program.team, [BodyFile(f"{name}.jsonl", MARK.encode())])
    Job.objects.filter(pk=made.job_id).update(state=state)
    return tmp_path / made.files.get().stored


def test_an_erasure_takes_those_whose_import_ended(program: Program, tmp_path: Path):
    talk(program, "run")
    gone = [uploaded(program, state, tmp_path) for state in ("failed", "cancelled")]
    kept = [uploaded(program, state, tmp_path, "kept") for state in ("queued", "running")]
    counted = eraser(program).ask("DELETE", "/sessions/run?dry_run=true").json()
    made = eraser(program).ask("DELETE", "/sessions/run").json()
    receipt = json.loads(erased(made["id"]).receipt)
    assert counted["rows"]["upload"] == receipt["rows"]["upload"] == 2
    assert [one.exists() for one in (*gone, *kept)] == [False, False, True, True]
    assert ImportFile.objects.count() == 2
    assert MARK.encode() not in stored_bytes()


def test_a_hold_keeps_them(program: Program, tmp_path: Path):
    talk(program, "run")
    talk(program, "other", marked="heron")
    hold(program.team, Hold.Kind.SESSION, "other", COMMAND, "a lawsuit")
    upload = uploaded(program, Job.State.FAILED, tmp_path)
    made = eraser(program).ask("DELETE", "/sessions/run").json()
    assert "upload" not in json.loads(erased(made["id"]).receipt)["rows"]
    assert upload.exists()


def test_retention_takes_old_ones(program: Program, tmp_path: Path):
    old, new = (uploaded(program, Job.State.FAILED, tmp_path) for _ in range(2))
    first = Import.objects.order_by("created").first()
    assert first is not None
    Import.objects.filter(pk=first.pk).update(created=timezone.now() - timedelta(days=9))
    retention.change(program.team, None, 7, COMMAND)
    retention.sweep(timezone.now())
    do_jobs()
    assert [old.exists(), new.exists()] == [False, True]
    assert Erasure.objects.get().counts["upload"] == 1


def test_what_a_killed_writer_left_goes_after_a_day(program: Program, tmp_path: Path):
    waiting = uploaded(program, Job.State.QUEUED, tmp_path)
    objects.put({"uploads/lost": b"lost"})
    lost = tmp_path / "uploads" / "lost"
    day = timedelta(days=1, seconds=1)
    assert places.sweep(timezone.now()) == 0 and lost.exists()
    assert places.sweep(timezone.now() + day) == 1
    assert [waiting.exists(), lost.exists()] == [True, False]
