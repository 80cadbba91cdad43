"""Fixtures that tests of this folder share."""

from __future__ import annotations

import pytest

from sessions.actions.accounts.teams import local_team
from sessions.actions.jobs import jobs
from sessions.models import Team


@pytest.fixture
def team(db: None) -> Team:
    return local_team()


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are asked for, and wait."""
    monkeypatch.setattr(jobs, "wake", lambda *_: None)
