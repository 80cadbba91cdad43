"""The files of a PostgreSQL of this machine, as bytes: after a rewrite, nothing is in them."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from sessions.actions.erasure import remnants
from sessions.models import Blob, Session
from tests.sessions.erasure.erasing import erased, eraser, talk
from tests.sessions.programs import Program

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.store,
    pytest.mark.usefixtures("jobs_wait"),
]


def folder() -> Path:
    """The data directory of the server; skips where it cannot be read."""
    if connection.vendor != "postgresql":
        pytest.skip("SQLite's files are read by the other tests")
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('data_directory'), oid FROM pg_database")
        found = Path(cursor.fetchone()[0])
    try:
        next((found / "pg_wal").iterdir())
    except OSError as error:
        pytest.skip(f"{found}: {error.strerror}")
    return found


def holding(needles: list[bytes]) -> list[str]:
    """The files of this database and of the log that hold one of some bytes."""
    root = folder()
    with connection.cursor() as cursor:
        cursor.execute("CHECKPOINT")
        cursor.execute("SELECT oid FROM pg_database WHERE datname = current_database()")
        mine = root / "base" / str(cursor.fetchone()[0])
    files = [*mine.iterdir(), *(root / "pg_wal").glob("0*")]
    said = ((one, one.read_bytes().lower()) for one in files)
    return [str(one.relative_to(root)) for one, data in said if any(n in data for n in needles)]


def test_no_byte_is_in_the_files_after_a_rewrite(program: Program):
    folder()
    talk(program, "other", marked="heron")
    # The log is of the whole server: others that run at the same time write texts of their own.
    mark = f"finch{uuid4().hex}"
    session = talk(program, "run", marked=mark)
    elsewhere = Session.objects.get(external_id="other").blocks.values("sha")
    mine = session.blocks.exclude(sha__in=elsewhere).values("sha")
    stored = Blob.objects.filter(sha__in=mine).values_list("data", flat=True)
    needles = [mark.encode(), *(bytes(data)[4:60].lower() for data in stored)]
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")  # as autovacuum does: its samples are in a table of the catalog
        cursor.execute("SELECT pg_relation_filepath('pg_statistic')")
        statistics = cursor.fetchone()[0]
    held = holding(needles)
    assert len(held) > 5
    assert statistics in held
    made = eraser(program).ask("DELETE", "/sessions/run").json()
    erased(made["id"])
    call_command("erase", "--rewrite")
    assert holding(needles) == []
    assert holding([b"heron"])


def test_a_rewrite_waits_for_a_transaction_that_may_read_what_was_erased(
    program: Program, monkeypatch: pytest.MonkeyPatch
):
    folder()
    monkeypatch.setattr(remnants, "PATIENCE", 0)
    mark = f"finch{uuid4().hex}"
    talk(program, "run", marked=mark)
    reader = connection.copy("reader")
    try:
        with reader.cursor() as cursor:
            cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SELECT 1")
            made = eraser(program).ask("DELETE", "/sessions/run").json()
            erased(made["id"])
            with pytest.raises(CommandError, match="still reads what was erased"):
                call_command("erase", "--rewrite")
    finally:
        reader.close()
    monkeypatch.undo()
    call_command("erase", "--rewrite")
    assert holding([mark.encode()]) == []
