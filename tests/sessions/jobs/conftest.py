"""Fixtures that tests of jobs share."""

from collections.abc import Iterator

import pytest

from sessions import tasks
from sessions.actions.accounts.teams import local_team
from sessions.models import Team
from tests.conftest import database_url
from tests.sessions import job_settings


@pytest.fixture
def team() -> Team:
    return local_team()


@pytest.fixture
def surroundings(settings, monkeypatch) -> Iterator[None]:
    """Job processes see this test's database and kinds; nothing is waited for in between."""
    settings.JOB_KINDS = job_settings.JOB_KINDS
    settings.JOB_RETRY_SECONDS = 0
    monkeypatch.setattr(tasks, "LOOK_SECONDS", 0.02)
    monkeypatch.setenv("DATABASE_URL", database_url())
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.sessions.job_settings")
    yield
    tasks.end_idle(0)
