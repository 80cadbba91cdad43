"""A process dies at the worst moment: nothing acknowledged is lost, nothing is there in part."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, Server, unavailable, wait_until
from tests.empty_store import with_tables
from tests.faults.live_agent import new_token
from tests.faults.store import in_data_dir

Start = Callable[..., Server]
APPENDS = 100


def append(server: Server, token: str, text: str) -> dict[str, Any]:
    """Append a message with its text as key; the answer."""
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": text}
    headers |= {"Content-Type": "application/json"}
    body = json.dumps({"messages": [{"role": "user", "content": text}]})
    try:
        line.request("POST", "/api/v1/sessions/fragile/messages", body, headers)
        answer = line.getresponse()
        assert answer.status == 201
        said: dict[str, Any] = json.load(answer)
        return said | {"replayed": answer.headers.get("Idempotent-Replay")}
    finally:
        line.close()


@pytest.mark.fault("A2", "A3")
def test_a_server_that_dies_beside_the_commit(server_with: Start, tmp_path: Path) -> None:
    dying = {"DJANGO_SETTINGS_MODULE": "tests.faults.dying_settings"}
    server = server_with(**dying)
    token, store = new_token(tmp_path), in_data_dir(tmp_path)
    append(server, token, "undisturbed")
    for seq, when, stored, replayed in ((2, "after", 2, "true"), (3, "before", 2, None)):
        (tmp_path / "die").write_text(when)
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            append(server, token, when)
        assert server.process.wait(60) == 137
        assert store.rows("SELECT count(*) FROM agent_sessions_message") == [(stored,)]
        server = server_with(PORT=str(server.port), **dying)
        again = append(server, token, when)
        assert (again["last_seq"], again["replayed"]) == (seq, replayed)
    assert store.rows("SELECT seq FROM agent_sessions_message ORDER BY seq") == [(1,), (2,), (3,)]
    store.audit()
    unused = "SELECT count(*) FROM agent_sessions_blob WHERE sha NOT IN (SELECT sha FROM"
    assert store.rows(f"{unused} agent_sessions_block)") == [(0,)]
    assert server.stop() == 0


@pytest.mark.fault("A6")
def test_every_append_is_synced_before_its_answer(served: Server, tmp_path: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        unavailable("strace is not installed")
    token = served.new_key()
    append(served, token, "open")
    trace = tmp_path / "trace"
    command = [str(strace), "-f", "-qq", "-p", str(served.process.pid), "-o", str(trace)]
    command += ["-e", "trace=fsync,fdatasync"]
    watching = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        synced = 0
        for number in range(APPENDS):
            append(served, token, f"message {number}")
            if not number:
                wait_until(lambda: watching.poll() is not None or trace.exists())
                if watching.poll() is not None:
                    unavailable(f"strace may not watch: {watching.communicate()[1].strip()}")
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=60)
        synced = len(re.findall(r"f(?:data)?sync\(.*= 0", trace.read_text()))
    finally:
        watching.kill()
    assert synced >= APPENDS


SWEEP = """
import os, sys
import django
django.setup()
from django.db import connection
from sessions.actions.jobs import jobs
from sessions.actions.live import tend
from sessions.actions.live.requests import on_request
from tests.faults import script

tend._lags = lambda *_: True  # a few steps are too little for it

def child(act, limit=0):
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    seen = 0
    def dies(execute, sql, *rest):
        nonlocal seen
        if sql.startswith(("INSERT", "UPDATE", "DELETE", "SAVEPOINT", "RELEASE")):
            seen += 1
            if seen == limit:
                os._exit(137)
        return execute(sql, *rest)
    with connection.execute_wrapper(dies):
        act()
    os._exit(0)

def session(name):
    from sessions.models import Session
    return Session.objects.get(external_id=name)

def fill(name):
    made = script.begin(name)
    for step in range(9):
        script.send(made, step)
        if step == 0:
            script.record_context(made)

assert child(lambda: fill("undisturbed")) == 0
assert child(lambda: fill("disturbed")) == 0
def compacted(one):
    payload = {"session": str(one.pk), "instructions": ""}
    job = jobs.enqueue(one.team, "compact", payload, dedupe=f"compact:{one.pk}")
    attempt = script.running(job)
    jobs.finish(job.pk, attempt.token, on_request.compact(attempt).result)

def before():
    from sessions.models import Revision
    assert not Revision.objects.exists()

assert child(before) == 0
deaths = 0
for act in (script.tended, compacted):
    assert child(lambda: act(session("undisturbed"))) == 0
    limit = 1
    while (code := child(lambda: act(session("disturbed")), limit)) == 137:
        limit += 1
        deaths += 1
    assert code == 0, code
kept = script.kept(session("disturbed"))
same = kept == script.kept(session("undisturbed"))
print(deaths, same, *sorted(row[3] for row in kept["revisions"]))
"""
"""Lets a compaction die at each of its writes; prints how often, and whether the end is the same.
Each attempt is a process of its own, forked before there is a connection."""


@pytest.mark.fault("A7")
def test_a_compaction_that_dies_at_each_write(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "CONTEXTLAB_DATA_DIR": str(with_tables(tmp_path)),
        "DATABASE_URL": "",
        "REDIS_URL": "",
        "DJANGO_SETTINGS_MODULE": "contextlab.settings",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, "-c", SWEEP], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    deaths, same, *triggers = done.stdout.split()
    assert (same, triggers) == ("True", ["batch", "request"])
    assert int(deaths) > 20
    in_data_dir(tmp_path).audit()
