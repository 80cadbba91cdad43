"""What tests of erasure share: sessions with a marked text, jobs done here, bytes looked at."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from django.db import connection

from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import attempt
from sessions.actions.search.indexing import index_replacements, index_some
from sessions.models import Erasure, Job, Session
from tests.conftest import database_url
from tests.sessions.programs import Program
from tests.sessions.web.world import reading

MARK = "zebrafinch"
"""A word that only erased sessions have; the files must not contain it, in any case of letters."""

SHARED = "Both sessions say this sentence about the harbor."


def eraser(program: Program) -> Program:
    """A program of the same team that may also erase."""
    return Program(program.team, ("read", "write", "erase"))


def talk(
    program: Program, name: str, *, marked: str = MARK, calls: str = "", **about: Any
) -> Session:
    """A managed session with compactions, a note, a pin, a share and idempotent answers; `calls`
    begins the names of its tool calls and files, if these are not marked."""
    fields = {"model": "claude-sonnet-4-5", "window": 40_000, "policy": "offload-first"}
    answer = program.ask("PUT", f"/sessions/{name}", fields | {"title": f"The {marked}"} | about)
    assert answer.status_code in (200, 201), answer.content
    said = [{"role": "user", "content": f"Feed the {marked}."}, {"role": "user", "content": SHARED}]
    program.post(f"/sessions/{name}/messages", {"messages": said}, Idempotency_Key=f"first {name}")
    for number in range(9):
        program.get(f"/sessions/{name}/context")
        program.post(
            f"/sessions/{name}/messages", {"messages": reading(f"{calls or marked}{number}")}
        )
    program.get(f"/sessions/{name}/context")
    program.post(f"/sessions/{name}/notes", {"kind": "knowledge", "text": f"a {marked} sings"})
    program.post(f"/sessions/{name}/step-notes", {"step": 1, "text": f"why the {marked}?"})
    program.post(f"/sessions/{name}/shares", {"summary": f"the {marked} is fed"})
    program.post(f"/sessions/{name}/pins", {"seq": 1})
    while index_some(program.team) + index_replacements(program.team):
        pass
    return Session.objects.get(team=program.team, external_id=name)


def do_jobs() -> None:
    """Do the queued erasures here."""
    for job in Job.objects.filter(kind="erase", state=Job.State.QUEUED):
        claimed = jobs.claim(job.pk)
        assert claimed is not None and claimed.token is not None
        attempt(claimed.pk, claimed.token)
        claimed.refresh_from_db()
        assert claimed.state == Job.State.DONE, claimed.problem


def erased(erasure_id: str) -> Erasure:
    """A finished erasure."""
    do_jobs()
    made = Erasure.objects.get(pk=erasure_id)
    assert made.finished is not None
    return made


def stored_bytes() -> bytes:
    """All that is on the disk, in lower case: the files of SQLite, or a dump of PostgreSQL."""
    where = connection.settings_dict["NAME"]
    if connection.vendor == "sqlite":
        files = sorted(Path(where).parent.glob(f"{Path(where).name}*"))
        # By another process: closing such a file here would free the locks of SQLite (`conftest`).
        return subprocess.run(["cat", *files], check=True, capture_output=True).stdout.lower()
    dump = ["pg_dump", "--dbname", database_url().replace(":@", "@")]
    return subprocess.run(dump, check=True, capture_output=True).stdout.lower()
