"""Wake-ups: sent without blocking requests, and dropped while Redis is down."""

from __future__ import annotations

import threading
import uuid

import pytest

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

    def slow(job_id: uuid.UUID) -> bool:
        answers.wait()
        sent.append(job_id)
        return True

    monkeypatch.setattr(wakes, "send", slow)
    wakes.wake(ONE)
    wakes.wake(TWO)
    assert sent == []
    answers.set()
    wait_until(lambda: sent == [ONE, TWO])


@pytest.mark.fault("C5")
@pytest.mark.parametrize("raises", [False, True])
def test_after_one_that_failed_the_sweeper_has_the_next(sent, monkeypatch, settings, raises):
    def fails(job_id: uuid.UUID) -> bool:
        sent.append(job_id)
        if raises:
            raise RuntimeError("what a library raises")
        return False

    settings.SWEEP_SECONDS = 3600
    monkeypatch.setattr(wakes, "send", fails)
    wakes.wake(ONE)
    wait_until(lambda: sent == [ONE])
    wakes.wake(TWO)
    wait_until(wakes.sender()._waiting.empty)
    assert sent == [ONE]
