"""No process of the server connects to another machine, or asks for the address of one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from contextlab.client import ContextLab
from tests.conftest import ROOT, Server, wait_until
from tests.faults.live_agent import new_token
from tests.faults.store import in_data_dir

# Read by each Python at its start; children inherit the hook.
WATCH = """
import sys
def hook(event, arguments):
    if event == "socket.connect":
        to = arguments[1]
        local = not isinstance(to, tuple) or str(to[0]) in ("127.0.0.1", "::1", "localhost")
    elif event == "socket.getaddrinfo":
        local = arguments[0] in (None, "", "127.0.0.1", "::1", "localhost")
    else:
        return
    with open({log!r}, "a") as file:
        file.write(("local" if local else f"foreign {{event}} {{arguments[:2]}}") + "\\n")
sys.addaudithook(hook)
"""
SAMPLES = ROOT / "tests" / "sessions" / "importers" / "samples"


@pytest.mark.fault("I5")
def test_serving_importing_managing_and_jobs_stay_on_this_machine(
    server_with: Callable[..., Server], tmp_path: Path
) -> None:
    log, watch = tmp_path / "connections", tmp_path / "watch"
    watch.mkdir()
    (watch / "sitecustomize.py").write_text(WATCH.format(log=str(log)))
    paths = f"{watch}{os.pathsep}{ROOT}"
    server = server_with(PYTHONPATH=paths)
    with ContextLab(server.address, new_token(tmp_path, PYTHONPATH=paths)) as lab:
        session = lab.session("s", agent="a", model="claude-sonnet-5", policy="balanced")
        session.append({"role": "user", "content": "What is in https://example.com/a.png?"})
        assert session.context().request["messages"]
    environment = {**os.environ, "PYTHONPATH": paths, "CONTEXTLAB_DATA_DIR": str(tmp_path)}
    environment |= {"DATABASE_URL": "", "REDIS_URL": ""}
    command = [sys.executable, "-m", "contextlab.cli", "import", str(SAMPLES / "claude-code")]
    assert subprocess.run(command, cwd=tmp_path, env=environment).returncode == 0
    store = in_data_dir(tmp_path)
    unfinished = "SELECT count(*) FROM agent_sessions_job WHERE state IN ('queued', 'running')"
    wait_until(lambda: store.rows(unfinished) == [(0,)])
    assert store.rows("SELECT count(*) FROM agent_sessions_assessment")[0][0] > 0
    assert server.stop() == 0
    lines = log.read_text().splitlines() if log.exists() else []
    assert not [line for line in lines if line != "local"]

    probe = (
        "import socket; s = socket.socket(); s.setblocking(False); s.connect_ex(('192.0.2.1', 9))"
    )
    subprocess.run([sys.executable, "-c", probe], env=environment, timeout=60)
    assert "foreign socket.connect" in log.read_text(), "the watch sees what it looks for"
