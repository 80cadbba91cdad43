"""Wake-ups: sent without blocking requests, and dropped while Redis is down."""

from __future__ import annotations

import threading
import uuid

import pytest
from celery import current_app

from sessions import live
from sessions.actions.jobs import wakes
from tests.conftest import wait_until

ONE, TWO = uuid.UUID(int=1), uuid.UUID(int=2)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch, settings) -> list[uuid.UUID]:
    """Wake-ups sent by a server with Redis."""
    settings.REDIS_URL = "redis://nowhere"
    monkeypatch.setattr(live, "server_loop", object())
    mine = wakes.Sender()
    monkeypatch.setattr(wakes, "sender", lambda: mine)
    return []


@pytest.mark.fault("C5")
def test_no_request_waits_for_redis(sent, monkeypatch):
    answers = threading.Event()

    def slow(job_id: uuid.UUID, _: str) -> bool:
        answers.wait()
        sent.append(job_id)
        return True

    monkeypatch.setattr(wakes, "send", slow)
    wakes.wake(ONE, "tend")
    wakes.wake(TWO, "tend")
    assert sent == []
    answers.set()
    wait_until(lambda: sent == [ONE, TWO])


def test_the_broker_gets_the_queue_of_a_job_without_a_look_at_it(monkeypatch, settings):
    settings.LIVE_JOBS = ["tend"]
    given: list[tuple[list[str], str]] = []

    def send_task(_: str, args: list[str], queue: str) -> None:
        given.append((args, queue))

    monkeypatch.setattr(current_app, "send_task", send_task)
    # No database: this test may not use one.
    assert wakes.send(ONE, "tend") and wakes.send(TWO, "export")
    assert given == [([str(ONE)], "live"), ([str(TWO)], "batch")]


@pytest.mark.fault("C5")
@pytest.mark.parametrize("raises", [False, True])
def test_after_one_that_failed_the_sweeper_has_the_next(sent, monkeypatch, settings, raises):
    def fails(job_id: uuid.UUID, _: str) -> bool:
        sent.append(job_id)
        if raises:
            raise RuntimeError("what a library raises")
        return False

    settings.SWEEP_SECONDS = 3600
    monkeypatch.setattr(wakes, "send", fails)
    wakes.wake(ONE, "tend")
    wait_until(lambda: sent == [ONE])
    wakes.wake(TWO, "tend")
    wait_until(wakes.sender()._waiting.empty)
    assert sent == [ONE]
