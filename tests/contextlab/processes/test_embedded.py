"""The server and its workers together: jobs asked for elsewhere are done, and outlive a crash."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from contextlab import environment
from tests import preloaded
from tests.conftest import Server, wait_until

Start = Callable[..., Server]
KINDS = {
    "DJANGO_SETTINGS_MODULE": "tests.sessions.job_settings",
    "CONTEXTLAB_SWEEP_SECONDS": "0.1",
}
ASK = """
import django, sys; django.setup()
from sessions.actions.accounts import teams
from sessions.actions.jobs import jobs
for n in range(4):
    jobs.enqueue(teams.local_team(), sys.argv[1], {"numbers": [n], "note": sys.argv[2]})
"""


def surroundings(data_dir: Path, redis_url: str = "") -> dict[str, str]:
    return {
        **os.environ,
        **KINDS,
        "PYTHONPATH": str(environment.ROOT),
        "CONTEXTLAB_DATA_DIR": str(data_dir),
        "DATABASE_URL": "",
        "REDIS_URL": redis_url,
    }


def ask(data_dir: Path, kind: str, redis_url: str = "") -> None:
    """Asks for four jobs in another process, as a command does."""
    asked = preloaded.run(
        ["-c", ASK, kind, data_dir / "note"], env=surroundings(data_dir, redis_url)
    )
    assert asked.returncode == 0, asked.stderr


def states(data_dir: Path) -> list[tuple[str, int]]:
    """State and attempts of every job."""
    database = sqlite3.connect(data_dir / "contextlab.sqlite3", timeout=20)
    try:
        return database.execute("SELECT state, attempts FROM agent_sessions_job").fetchall()
    finally:
        database.close()


def test_jobs_asked_for_by_a_command_are_done_by_the_server(server_with: Start, tmp_path):
    server = server_with(**KINDS)
    ask(tmp_path, "add")
    wait_until(lambda: states(tmp_path) == [("done", 1)] * 4)
    assert server.stop() == 0
    assert server.log == ""


def test_a_server_that_is_ended_gives_its_jobs_back(server_with: Start, tmp_path):
    server = server_with(**KINDS)
    ask(tmp_path, "forever")
    wait_until((tmp_path / "note").exists)
    assert server.stop() == 0
    # An attempt interrupted by shutdown does not count.
    assert states(tmp_path) == [("queued", 0)] * 4


def test_a_server_that_was_killed_finds_its_jobs_again(server_with: Start, tmp_path):
    server = server_with(**KINDS)
    ask(tmp_path, "forever")
    wait_until((tmp_path / "note").exists)
    server.kill()
    (tmp_path / "note").unlink()
    again = server_with(**KINDS)
    wait_until((tmp_path / "note").exists)
    assert again.stop() == 0


@contextmanager
def working(data_dir: Path, redis_url: str, *command: str) -> Iterator[None]:
    """A worker, which must end well."""
    worker = preloaded.start(["-m", *command], cwd=data_dir, env=surroundings(data_dir, redis_url))
    try:
        yield
    finally:
        worker.terminate()
        assert worker.wait(60) == 0


CELERY = ("celery", "-A", "contextlab")


@pytest.mark.parametrize(
    "command", [("contextlab.cli", "worker"), (*CELERY, "worker", "-n", "one@%h", "-l", "ERROR")]
)
def test_with_redis_a_worker_of_its_own_does_them(server_with: Start, tmp_path, redis_url, command):
    server = server_with(**KINDS, REDIS_URL=redis_url)
    ask(tmp_path, "add", redis_url)
    assert states(tmp_path) == [("queued", 0)] * 4
    with working(tmp_path, redis_url, *command):
        wait_until(lambda: states(tmp_path) == [("done", 1)] * 4)
        ask(tmp_path, "half", redis_url)
        wait_until(lambda: states(tmp_path) == [("done", 1)] * 4 + [("partial", 1)] * 4)
        if command[0] == "celery":
            pinged = subprocess.run(
                [sys.executable, "-m", *CELERY, "inspect", "ping"],
                cwd=tmp_path,
                env=surroundings(tmp_path, redis_url),
                capture_output=True,
                text=True,
            )
            assert (pinged.returncode, "one@" in pinged.stdout) == (0, True), pinged
    assert server.stop() == 0


def test_a_worker_works_for_its_queues_alone(server_with: Start, tmp_path, redis_url):
    server = server_with(**KINDS, REDIS_URL=redis_url)
    with working(tmp_path, redis_url, "contextlab.cli", "worker", "--queues", "live"):
        ask(tmp_path, "add", redis_url)
        with working(tmp_path, redis_url, "contextlab.cli", "worker", "--queues", "batch"):
            wait_until(lambda: states(tmp_path) == [("done", 1)] * 4)
    assert server.stop() == 0
    asked = subprocess.run(
        [sys.executable, "-m", "contextlab.cli", "worker", "--queues", "other"],
        env=surroundings(tmp_path, redis_url),
        capture_output=True,
        text=True,
    )
    assert asked.returncode == 2
    assert asked.stderr == "There is no queue 'other'. Use live or batch.\n"
