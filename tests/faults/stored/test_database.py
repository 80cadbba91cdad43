"""The database is locked, full, read-only or slow: requests say so, and go on once it is back."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from django.db import connection
from django.http import HttpResponse

from sessions.models import Message
from tests.conftest import database_url
from tests.sessions.conftest import jobs_wait, program
from tests.sessions.programs import Program, assert_problem

__all__ = ["jobs_wait", "program"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("jobs_wait")]
sqlite_alone = pytest.mark.skipif(connection.vendor != "sqlite", reason="of SQLite alone")


def append(program: Program, text: str, session: str = "run") -> HttpResponse:
    """Append one message."""
    body = {"messages": [{"role": "user", "content": text}]}
    return program.ask("POST", f"/sessions/{session}/messages", body)


def elsewhere() -> sqlite3.Connection:
    """A connection of another program to the same file."""
    return sqlite3.connect(
        connection.settings_dict["NAME"], isolation_level=None, check_same_thread=False
    )


@contextmanager
def pragma(name: str, value: int) -> Iterator[None]:
    """A setting of this test's connection."""
    connection.ensure_connection()
    cursor = connection.connection
    ((before,),) = cursor.execute(f"PRAGMA {name}").fetchall()
    cursor.execute(f"PRAGMA {name}={value}").fetchall()
    yield
    cursor.execute(f"PRAGMA {name}={before}").fetchall()


@sqlite_alone
@pytest.mark.fault("D1")
def test_a_short_lock_is_waited_for_and_a_long_one_is_503(program: Program) -> None:
    assert append(program, "first").status_code == 201
    with closing(elsewhere()) as other:
        other.execute("BEGIN IMMEDIATE")
        ending = threading.Timer(0.3, lambda: other.execute("ROLLBACK"))
        ending.start()
        assert append(program, "waits").status_code == 201
        ending.join()
        other.execute("BEGIN IMMEDIATE")
        with pragma("busy_timeout", 50):
            answer = append(program, "gives up")
            assert_problem(answer, 503)
            assert int(answer["Retry-After"]) > 0
            assert program.get("/sessions/run/messages")["messages"], "reads work"
        other.execute("ROLLBACK")
    assert append(program, "again").status_code == 201
    assert Message.objects.count() == 3


@sqlite_alone
@pytest.mark.fault("D7")
def test_a_read_only_database(program: Program) -> None:
    assert append(program, "first").status_code == 201
    with pragma("query_only", 1):
        answer = append(program, "refused")
        assert_problem(answer, 503)
        assert int(answer["Retry-After"]) > 0
        assert len(program.get("/sessions/run/messages")["messages"]) == 1
    assert append(program, "again").status_code == 201
    assert Message.objects.count() == 2


@sqlite_alone
@pytest.mark.fault("D2")
def test_a_reader_that_stays_open(program: Program) -> None:
    log = Path(f"{connection.settings_dict['NAME']}-wal")

    def load() -> None:
        for _ in range(9):
            assert append(program, os.urandom(250_000).hex()).status_code == 201

    assert append(program, "first").status_code == 201
    with pragma("journal_size_limit", 1_000_000), pragma("wal_autocheckpoint", 200):
        with closing(elsewhere()) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM agent_sessions_message").fetchall()
            load()
            held = log.stat().st_size
            assert held > 2_500_000, "what it may still read is kept"
        for text in ("checkpoint", "and begin anew"):
            assert append(program, text).status_code == 201
        assert log.stat().st_size <= 1_100_000
        load()
        assert log.stat().st_size < held, "it is used again"


@pytest.mark.fault("D5")
@pytest.mark.store
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite locks no rows")
def test_a_row_that_stays_locked(program: Program) -> None:
    import psycopg

    for session in ("locked", "free"):
        assert append(program, "first", session).status_code == 201
    with psycopg.connect(database_url()) as other:
        other.execute(
            "SELECT 1 FROM agent_sessions_session WHERE external_id = 'locked' FOR UPDATE"
        )
        assert append(program, "goes on", "free").status_code == 201
        assert program.get("/sessions/locked/messages")["messages"]
        with connection.cursor() as cursor:
            cursor.execute("SHOW lock_timeout")
            assert cursor.fetchone() == ("20s",)
            cursor.execute("SET lock_timeout = '100ms'")
        answer = append(program, "gives up", "locked")
        assert_problem(answer, 503)
        assert int(answer["Retry-After"]) > 0
    assert append(program, "again", "locked").status_code == 201
    connection.close()
