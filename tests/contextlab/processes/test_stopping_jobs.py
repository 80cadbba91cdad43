"""SIGTERM with jobs under way: the server ends in time, and after a restart each job is done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.conftest import ROOT, Server, wait_until
from tests.contextlab.door.test_stopping import end, stored, uploading, watching
from tests.faults.store import in_data_dir

STEPS, LARGE_STEPS, SESSIONS = 80, 1000, 5
LINES = [f"def handler_{number}(): return {number * 7919}" for number in range(60)]
ALL_AT_ONCE = {"CONTEXTLAB_JOB_THREADS": "4"}


def log(name: str, steps: int) -> bytes:
    """A session in which each step reads a file."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Repair {name}."}]
    for step in range(steps):
        path = json.dumps({"path": f"src/{name}_{step}.py"})
        function = {"name": "read", "arguments": path}
        call = {"id": f"c{step}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        text = "\n".join([f"# {name} {step}", *LINES])
        messages.append({"role": "tool", "tool_call_id": f"c{step}", "content": text})
    return json.dumps({"messages": messages}).encode()


class Asking(httpx2.Client):
    """A client that asks for jobs, and what their rows say."""

    def __init__(self, server: Server, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        super().__init__(base_url=f"{server.address}/api/v1/", headers=headers, timeout=120)
        self.store = in_data_dir(server.data_dir)

    def ask(self, address: str, **given: Any) -> str:
        """Ask for a job and return its id as the database has it."""
        answer = self.post(address, **given)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["job"]).replace("-", "")

    def states(self, *jobs: str) -> list[tuple[str, int, int]]:
        """State, attempts and losses of each."""
        sql = "SELECT state, attempts, losses FROM agent_sessions_job WHERE id = '%s'"
        return [self.store.rows(sql % job)[0] for job in jobs]


def several(prefix: str) -> dict[str, bytes]:
    """Logs by file name."""
    names = [f"{prefix}{number}" for number in range(SESSIONS)]
    return {f"{name}.json": log(name, STEPS) for name in names}


@contextmanager
def importing(folder: Path, data_dir: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`contextlab import` of a folder that is made for it."""
    folder.mkdir()
    for name, data in several("c").items():
        (folder / name).write_bytes(data)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "CONTEXTLAB_DATA_DIR": str(data_dir)}
    env |= {"DATABASE_URL": "", "REDIS_URL": ""}
    command = [sys.executable, "-m", "contextlab.cli", "import", str(folder)]
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL) as process:
        yield process


def test_imports_a_simulation_and_a_search_go_on_after_the_restart(
    server_with: Callable[..., Server], tmp_path: Path
) -> None:
    server = server_with(**ALL_AT_ONCE)
    token = server.new_key()
    with (
        Asking(server, token) as asking,
        importing(tmp_path / "logs", tmp_path) as command,
        watching(server),
        uploading(server, token),
    ):
        files = [("files", (name, data)) for name, data in several("a").items()]
        first = asking.ask("imports", files=files)
        wait_until(lambda: asking.states(first) == [("done", 1, 0)])
        chosen = {"sessions": {"by": "query"}}
        # The longest first, so that all run at the signal.
        jobs = [
            asking.ask("tunings", json={**chosen, "base": "balanced", "trials": 12}),
            asking.ask("imports", content=log("large", LARGE_STEPS)),
            asking.ask("simulations", json={**chosen, "draft": "balanced"}),
        ]
        wait_until(lambda: "queued" not in {state for state, _, _ in asking.states(*jobs)})
        assert end(server) == 0
        # On a busy machine the shorter ones are done before the last one begins.
        left = set(asking.states(*jobs))
        assert ("queued", 0, 0) in left <= {("queued", 0, 0), ("done", 1, 0)}
        again = server_with(**ALL_AT_ONCE)
        wait_until(lambda: asking.states(*jobs) == [("done", 1, 0)] * len(jobs))
        assert command.wait(120) == 0, "another process goes on meanwhile"
    assert again.stop() == 0
    assert "Traceback" not in server.log
    kept = sorted(stored(tmp_path).values())
    assert kept == [1 + 2 * STEPS] * 2 * SESSIONS + [1 + 2 * LARGE_STEPS]
    in_data_dir(tmp_path).audit()
