"""Warm workers: kept between requests, one request per page, replaced when they end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest

from sessions.actions.lab import warm
from sessions.actions.web import forks
from sessions.actions.web.apart import FailedApart, NotInTime
from tests.conftest import wait_until
from tests.sessions.web.apart.test_apart import is_gone

TEAM, OTHERS, THIRD = uuid4(), uuid4(), uuid4()


@pytest.fixture(autouse=True)
def workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[warm.WarmWorkers]:
    """Two workers that answer what tests want."""
    made = warm.WarmWorkers(2, "tests.sessions.lab.warm_work.work")
    monkeypatch.setattr(warm, "_workers", made)
    yield made
    made.end()


def asked(page: str = "page", team: Any = TEAM, **wanted: Any) -> list[str]:
    """The lines of an answer."""
    return [line.decode().strip() for line in warm.stream(team, page, wanted) if line.strip()]


def pid(**of: Any) -> int:
    [line] = asked(say=["it is"], **of)
    return int(line.split()[-1])


def test_a_worker_stays_for_the_next_request_of_its_team():
    first = pid()
    assert pid() == first == pid(page="another")
    assert pid(team=OTHERS) != first
    assert pid() == first


def test_a_third_team_takes_the_place_of_an_idle_worker():
    first, second = pid(), pid(team=OTHERS)
    third = pid(team=THIRD)
    assert third not in (first, second)
    wait_until(lambda: is_gone(first))
    assert pid(team=OTHERS) == second


def test_a_worker_that_was_killed_is_replaced():
    first = pid()
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: is_gone(first))
    assert pid() != first


def test_a_worker_that_ends_twice_is_a_problem_and_the_next_request_works():
    [line] = asked(die=True)
    assert "The simulation stopped" in line
    assert asked(say=["well"])


def test_a_newer_request_of_a_page_ends_the_older_one():
    older = warm.stream(TEAM, "page", {"go_on": True})
    assert next(older) == b"begun\n"
    worker = warm._workers._workers[0]
    assert worker.busy
    worker.cancel()  # what `take` does for the newer one, whose thread would wait here
    assert [line for line in older if line.strip()] == []
    assert not worker.busy
    assert len(asked(say=["newer"])) == 1


def test_closing_a_stream_cancels_and_keeps_the_worker():
    first = pid()
    with closing(warm.stream(TEAM, "page", {"go_on": True})) as stream:
        assert next(stream) == b"begun\n"
    assert pid() == first


def test_a_worker_that_does_not_stop_is_killed(monkeypatch):
    monkeypatch.setattr(warm, "STOP_SECONDS", 0.05)
    first = pid()
    with closing(warm.stream(TEAM, "page", {"hang": True})) as stream:
        assert next(stream) == b"begun\n"
    assert pid() != first


def test_a_request_that_finds_no_worker_says_so(monkeypatch):
    monkeypatch.setattr(warm, "WAIT_SECONDS", 0.05)
    with (
        closing(warm.stream(TEAM, "one", {"go_on": True})) as one,
        closing(warm.stream(OTHERS, "two", {"go_on": True})) as two,
    ):
        assert next(one) == next(two) == b"begun\n"
        [line] = asked(page="three", team=THIRD, say=["late"])
        assert "The simulation worker is busy" in line
    assert asked(page="three", team=THIRD, say=["now"])


def test_a_worker_starts_before_its_first_request_if_a_place_is_free():
    forks._server()
    warm.prepare(TEAM)
    [worker] = warm._workers._workers
    assert worker.alive and not worker.busy
    started = worker._process.pid
    warm.prepare(TEAM)
    assert pid() == started
    warm.prepare(OTHERS)
    warm.prepare(THIRD)
    assert [one.team for one in warm._workers._workers] == [TEAM, OTHERS], "no team loses its own"


def test_a_team_gives_its_second_worker_to_a_team_without_one(monkeypatch):
    with (
        closing(warm.stream(TEAM, "one", {"go_on": True})) as one,
        closing(warm.stream(TEAM, "two", {"go_on": True})) as two,
    ):
        assert next(one) == next(two) == b"begun\n"
        rest: list[bytes] = []
        page = threading.Thread(target=lambda: rest.extend(two))
        page.start()
        assert len(asked(team=OTHERS, say=["mine"])) == 1
        page.join(20)
        assert b"Another team needed its worker" in rest[-1]
        monkeypatch.setattr(warm, "WAIT_SECONDS", 0.05)
        with closing(warm.stream(OTHERS, "three", {"go_on": True})) as three:
            assert next(three) == b"begun\n"
            [line] = asked(page="two", say=["late"])
            assert "busy" in line, "each team has one now"
            [line] = asked(page="four", team=THIRD, say=["late"])
            assert "busy" in line, "no team has more than its share"


def test_a_waiting_request_of_a_busy_team_comes_after_a_team_without_a_worker(monkeypatch):
    monkeypatch.setattr(warm, "WAIT_SECONDS", 0.05)
    with closing(warm.stream(TEAM, "one", {"go_on": True})) as one:
        assert next(one) == b"begun\n"
        warm._workers._waiting.append(OTHERS)
        [line] = asked(page="two", say=["late"])
        assert "busy" in line
        warm._workers._waiting.remove(OTHERS)
        assert asked(page="two", say=["now"])[0].startswith("now")


def test_a_request_for_one_line_returns_it():
    line = {"kind": "kept", "rows": [1]}
    assert warm.answer(TEAM, {"line": line}, 20) == line
    with pytest.raises(FailedApart, match="KeyError"):
        warm.answer(TEAM, {"line": {"kind": "failed", "error": "KeyError"}}, 20)
    with pytest.raises(FailedApart, match="ended"):
        warm.answer(TEAM, {"die": True}, 20)
    first = pid()
    with pytest.raises(NotInTime) as late:
        warm.answer(TEAM, {"wait": True}, 0.05)
    assert not late.value.busy
    assert pid() == first, "it was cancelled, and stays"


def test_one_such_request_at_a_time_leaves_a_worker_to_the_lab(monkeypatch):
    monkeypatch.setattr(warm, "WAIT_SECONDS", 0.05)
    line = {"kind": "kept"}
    with warm._one, pytest.raises(NotInTime) as refused:
        warm.answer(TEAM, {"line": line}, 20)
    assert refused.value.busy
    assert warm.answer(TEAM, {"line": line}, 20) == line
    with (
        closing(warm.stream(TEAM, "one", {"go_on": True})) as one,
        closing(warm.stream(OTHERS, "two", {"go_on": True})) as two,
    ):
        assert next(one) == next(two) == b"begun\n"
        with pytest.raises(NotInTime) as refused:
            warm.answer(THIRD, {"line": line}, 20)
    assert refused.value.busy
