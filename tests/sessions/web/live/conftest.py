"""Fixtures that tests of this folder share."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from sessions import live
from sessions.actions.jobs import jobs


@pytest.fixture
async def hinting(settings, monkeypatch) -> AsyncIterator[None]:
    """Hints arrive as in the server, and the database is read often."""
    settings.JOB_KINDS = {"add": "nowhere"}
    settings.LIVE_POLL_SECONDS = 0.05
    monkeypatch.setattr(live, "server_loop", asyncio.get_running_loop())
    monkeypatch.setattr(jobs, "wake", lambda *_: None)
    yield
