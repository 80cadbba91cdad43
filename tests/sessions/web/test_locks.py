"""Locks on a team: they do not wait for what is stored in it, nor make that wait."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions.actions.accounts.teams import local_team
from sessions.actions.jobs import jobs
from sessions.actions.live.live_sessions import put_session, session_fields
from sessions.actions.memory.shares import share
from sessions.models import Share

SOURCES = Path(__file__).parents[3] / "sessions"


def test_no_lock_on_a_team_excludes_rows_that_refer_to_it() -> None:
    # A row that refers to a team holds its key, so FOR UPDATE would wait for an append that holds
    # the session's row, which the holder of the team's lock may want next.
    locks = [
        (path.name, bool(no_key))
        for path in SOURCES.rglob("*.py")
        for no_key in re.findall(
            r"Team\.objects\.select_for_update\((no_key=True)?", path.read_text("utf-8")
        )
    ]
    assert len(locks) > 5
    assert [name for name, no_key in locks if not no_key] == []


@pytest.mark.store
@pytest.mark.django_db
def test_a_share_locks_its_team_without_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "wake", lambda *_: None)
    session = put_session(local_team(), "one", session_fields({}))[0]
    with CaptureQueriesContext(connection) as asked:
        share(session, "done", Share.Cause.TASK_DONE)
    of_team = [one["sql"] for one in asked if 'FROM "agent_sessions_team"' in one["sql"]]
    locks = [sql for sql in of_team if sql.endswith("UPDATE")]
    assert len(locks) == (connection.vendor == "postgresql")
    assert all(sql.endswith("FOR NO KEY UPDATE") for sql in locks)
