"""Sessions of a lab, and simulations of them."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

from compaction import tokens
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import attempt
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.importers import records
from sessions.models import Job, Session, Team
from tests.sessions.made import reads, result, session, user

DRAFTED = {"steps": [{"strategy": "offload", "parameters": {"age": 1, "batch": 1}}]}


def log(name: str, steps: int, model: str = "claude-sonnet-4-5") -> records.Session:
    """A session that reads files of some size, and needs facts from the first ones at its end."""
    made: list[records.Record] = [user("Find the port in the settings.", key="k", at=0)]
    for step in range(1, steps + 1):
        made.append(reads(f"c{step}", f"t{step}", f"src/part_{step}.py", key=f"a{step}"))
        lines = (f"def handler_{step}_{line}(): return {line}\n" for line in range(40))
        body = f"# {name}\n" + "".join(lines)
        made.append(result(f"t{step}", body, key=f"b{step}"))
        made.append(records.Call(f"c{step}", model=model, at=step * 20_000))
    for part in range(1, 13):
        made.append(reads("last", f"l{part}", f"handler_{part}_7", key=f"z{part}"))
    found = session(*made, external_id=name)
    found.model = model
    return found


def store(team: Team, *logs: records.Session) -> list[Session]:
    stored = [append(team, one, tokens.counted, source="test").session for one in logs]
    for one in stored:
        measure(one)
    return stored


def done(job: Job) -> Job:
    """The job after an attempt in this process."""
    claimed = jobs.claim(job.pk)
    assert claimed is not None and claimed.token is not None
    attempt(claimed.pk, claimed.token)
    job.refresh_from_db()
    return job


def post(client: Client, address: str, body: Any) -> Any:
    return client.post(f"/api/v1/{address}", json.dumps(body), "application/json")
