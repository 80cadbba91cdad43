"""Work on long content in processes that can be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import RequestFactory

from compaction.context.hints import one_line
from sessions.actions.web import apart
from sessions.api.web import problems
from tests.conftest import ROOT, wait_until
from tests.sessions.web.apart import apart_calls

LONG = 60.0
US, OTHERS = "a team", "another team"


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Functions of tests may be called, in one process, which ends with the test."""
    monkeypatch.setattr(apart, "PACKAGES", ("compaction.", "tests."))
    pool = apart.Pool(1)
    monkeypatch.setattr(apart, "_pool", pool)
    yield
    pool.end()


def is_gone(pid: int) -> bool:
    """Whether a process is dead, including zombies."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def pid_in(note: Path) -> int:
    """The process id in a file, as soon as it is complete."""
    wait_until(lambda: note.exists() and note.read_text().endswith("\n"))
    return int(note.read_text())


def test_a_process_answers_again_and_again():
    assert apart.call_apart(US, LONG, one_line, "a\n b  c") == "a b c"
    first, second = (apart.call_apart(US, LONG, apart_calls.add, 1, other=n) for n in (2, 3))
    assert [first[0], second[0]] == [3, 4]
    assert first[1] == second[1] != os.getpid()
    text = "字" * 5_000_000
    assert apart.call_apart(US, LONG, apart_calls.echo, text) == text


@pytest.mark.fault("F10")
def test_what_holds_the_interpreter_is_killed(tmp_path):
    note = tmp_path / "pid"
    apart.call_apart(US, LONG, apart_calls.echo, "warm")
    with pytest.raises(apart.NotInTime) as stopped:
        apart.call_apart(US, 1.0, apart_calls.hang, str(note))
    assert not stopped.value.busy
    assert is_gone(pid_in(note))
    assert apart.call_apart(US, LONG, apart_calls.echo, "the next one") == "the next one"


def test_a_process_that_ended_while_idle_is_replaced():
    _, pid = apart.call_apart(US, LONG, apart_calls.add, 1, other=1)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: is_gone(pid))
    total, other = apart.call_apart(US, LONG, apart_calls.add, 1, other=2)
    assert (total, other != pid) == (3, True)


def test_a_caller_that_finds_none_free_is_refused(tmp_path):
    note = tmp_path / "pid"
    stopped: list[Exception] = []

    def hang() -> None:
        try:
            apart.call_apart(US, 3.0, apart_calls.hang, str(note))
        except apart.NotInTime as error:
            stopped.append(error)

    hanging = threading.Thread(target=hang)
    hanging.start()
    pid_in(note)
    with pytest.raises(apart.NotInTime) as refused:
        apart.call_apart(US, 0.05, apart_calls.echo, "too many")
    assert refused.value.busy
    hanging.join(60)
    assert len(stopped) == 1


@pytest.mark.fault("E13")
def test_a_team_leaves_a_process_to_others_and_few_wait(tmp_path, monkeypatch):
    pool = apart.Pool(2)
    monkeypatch.setattr(apart, "_pool", pool)
    monkeypatch.setattr(apart, "WAITING_OF_ONE", 1)
    note = tmp_path / "ours"
    stopped: list[bool] = []

    def hang(owner: str, note: Path) -> None:
        with pytest.raises(apart.NotInTime) as error:
            apart.call_apart(owner, 4.0, apart_calls.hang, str(note))
        stopped.append(error.value.busy)

    hanging = threading.Thread(target=hang, args=(US, note))
    hanging.start()
    pid_in(note)
    assert apart.call_apart(OTHERS, LONG, apart_calls.echo, "theirs") == "theirs"
    monkeypatch.setattr(apart, "WAIT_SECONDS", 0.05)
    with pytest.raises(apart.NotInTime) as refused:
        apart.call_apart(US, LONG, apart_calls.echo, "one process is idle, but not for us")
    assert refused.value.busy
    monkeypatch.setattr(apart, "WAIT_SECONDS", LONG)
    waiting = threading.Thread(target=apart.call_apart, args=(US, LONG, apart_calls.echo, "next"))
    waiting.start()
    wait_until(lambda: pool._waiting[US] == 1)
    with pytest.raises(apart.NotInTime):  # at once: a second one of us would wait
        apart.call_apart(US, LONG, apart_calls.echo, "too many")
    assert not stopped, "nobody waited for the one that hangs"
    for thread in (hanging, waiting):
        thread.join(60)
    assert stopped == [False]
    pool.end()


def test_errors_name_a_class_and_no_content():
    with pytest.raises(apart.FailedApart) as failed:
        apart.call_apart(US, LONG, apart_calls.fail, "secret of the user")
    assert str(failed.value) == "ValueError"
    with pytest.raises(apart.FailedApart, match="ended"):
        apart.call_apart(US, LONG, apart_calls.leave)
    assert apart.call_apart(US, LONG, apart_calls.echo, "the next one") == "the next one"
    with pytest.raises(ValueError, match="not part of"):
        apart.call_apart(US, LONG, os.getpid)


def test_the_api_says_what_to_do():
    for busy, says in ((True, "Retry the request."), (False, "send shorter messages")):
        error = apart.NotInTime(2.5, busy=busy)
        answer = problems.not_in_time(RequestFactory().get("/"), error)
        assert (answer.status_code, answer["Retry-After"]) == (503, "3")
        assert answer["Content-Type"] == "application/problem+json"
        assert says in json.loads(answer.content)["detail"]
    assert problems._HANDLERS[apart.NotInTime] is problems.not_in_time


def test_it_ends_with_its_server(tmp_path):
    note = tmp_path / "pid"
    script = (
        "import sys\n"
        "from sessions.actions.web import apart\n"
        "from tests.sessions.web.apart import apart_calls\n"
        "apart.PACKAGES = ('tests.',)\n"
        "apart.call_apart(1, 600, apart_calls.hang, sys.argv[1])\n"
    )
    server = subprocess.Popen(
        [sys.executable, "-c", script, str(note)], env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    pid = pid_in(note)
    assert not is_gone(pid), "it outlives its start"
    server.kill()
    server.wait()
    wait_until(lambda: is_gone(pid))
    assert is_gone(pid)
