"""Processes forked from one warm process: they end when asked, with it, and with its owner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sessions.actions.web import forks
from tests.conftest import ROOT, wait_until

HERE = "tests.sessions.web.apart.forked"


@pytest.fixture(autouse=True)
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A fork server of this test."""
    monkeypatch.setattr(forks, "_current", None)
    yield
    if forks._current is not None:
        forks._current.end()


def is_gone(pid: int) -> bool:
    """Whether a process is dead, including zombies."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def said(process: forks.Forked) -> list[int]:
    """The numbers in its next line."""
    return [int(number) for number in os.read(process.output, 100).split()]


def test_processes_have_one_parent_and_a_group_each():
    first, second = (forks.Forked(f"{HERE}.answer") for _ in range(2))
    (pid, parent, group, _), (other, same, _, _) = said(first), said(second)
    assert (pid, other, group) == (first.pid, second.pid, first.pid)
    assert parent == same != os.getpid()
    assert [one.end() for one in (first, second)] == [-signal.SIGKILL] * 2
    assert is_gone(pid)


def test_one_that_was_asked_to_read_nothing_more_ends_by_itself(capfd: pytest.CaptureFixture[str]):
    process = forks.Forked(f"{HERE}.leave")
    assert os.read(process.output, 100) == b""
    assert process.end() == 7
    assert "content" not in "".join(capfd.readouterr())


def test_an_unknown_function_is_an_exit_code():
    process = forks.Forked(f"{HERE}.missing")
    assert os.read(process.output, 100) == b""
    assert process.end() == 1


def test_children_end_with_their_process():
    process = forks.Forked(f"{HERE}.parent")
    (child,) = said(process)
    process.end()
    wait_until(lambda: is_gone(child))
    another = forks.Forked(f"{HERE}.parent")
    (child,) = said(another)
    os.kill(another.pid, signal.SIGTERM)
    wait_until(lambda: is_gone(child))
    assert another.end() == -signal.SIGTERM


def test_another_environment_has_another_server(monkeypatch: pytest.MonkeyPatch):
    first = forks.Forked(f"{HERE}.answer")
    _, parent, *_ = said(first)
    monkeypatch.setenv("CONTEXTLAB_JOB_MB", "3000")
    assert not forks.fits(first)
    second = forks.Forked(f"{HERE}.answer")
    assert said(second)[1] != parent
    assert is_gone(parent)
    assert first.end() is None
    second.end()


def test_a_stop_of_all_processes_is_an_exit_code():
    process = forks.Forked(f"{HERE}.answer")
    pid, parent, *_ = said(process)
    for one in (parent, pid):
        os.kill(one, signal.SIGTERM)
    assert os.read(process.output, 100) == b""
    assert process.end() == -signal.SIGTERM


def test_who_dies_with_the_server_has_no_exit_code_and_the_next_has_a_server():
    process = forks.Forked(f"{HERE}.answer")
    pid, parent, *_ = said(process)
    os.kill(parent, signal.SIGKILL)
    assert os.read(process.output, 100) == b""
    assert process.end() is None
    wait_until(lambda: is_gone(pid))
    process = forks.Forked(f"{HERE}.answer")
    assert said(process)[1] != parent
    process.end()


@pytest.mark.parametrize("how", ["begin", "started"])
def test_all_end_with_the_owner_and_share_what_it_had_loaded(how: str):
    """Forked from the owner, processes have what it loaded; started, the server loads itself."""
    script = (
        "import os, sys\n"
        "from contextlab.processes import job\n"
        "job.load()\n"
        "from sessions.actions.web import forks\n"
        f"import {HERE}\n"
        "if sys.argv[1] == 'begin': forks.begin()\n"
        f"process = forks.Forked('{HERE}.answer')\n"
        "os.write(1, b'%d ' % os.getpid() + os.read(process.output, 100))\n"
        "os.read(0, 1)\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", script, how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert owner.stdout is not None
    own, pid, parent, _, loaded = map(int, owner.stdout.readline().split())
    assert (loaded == own) == (how == "begin")
    owner.kill()
    owner.communicate()
    wait_until(lambda: is_gone(parent) and is_gone(pid))
