"""Fixtures that every subject's tests of the API may ask for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from sessions.actions.jobs import jobs
from sessions.api.replay import exports
from sessions.models import Key, Team
from tests.sessions.programs import Program
from tests.sessions.web.world import missing_like, one_of_everything


@pytest.fixture(autouse=True)
def exports_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Write exports in this process: another one does not see the test's transaction. Close those
    that a test does not read."""
    files: list[IO[bytes]] = []
    monkeypatch.setattr(exports, "_written", exports.write)
    make = exports._file

    def kept(*given: Any, **named: Any) -> IO[bytes]:
        files.append(make(*given, **named))
        return files[-1]

    monkeypatch.setattr(exports, "_file", kept)
    yield
    for file in files:
        file.close()


@pytest.fixture
def jobs_wait(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> None:
    """Queue jobs without running them; uploads are deleted after the test."""
    monkeypatch.setattr(jobs, "wake", lambda *_: None)
    settings.DATA_DIR = tmp_path


@pytest.fixture
def program(db: None) -> Program:
    """One that may write."""
    return Program(Team.objects.create(slug="ours", name="Ours"))


@pytest.fixture
def stranger(db: None) -> Program:
    """One of another team, which has an equally named session."""
    return Program(Team.objects.create(slug="theirs", name="Theirs"))


@pytest.fixture
def revoked(program: Program) -> Program:
    """One whose key has ended."""
    other = Program(program.team)
    Key.objects.filter(pk=other.key.pk).update(revoked="2026-01-01T00:00Z")
    return other


@pytest.fixture
def reader(program: Program) -> Program:
    """One that may only read."""
    return Program(program.team, ("read",))


@pytest.fixture
def world(program: Program) -> dict[str, Any]:
    """One object of every kind in the team of `program`, by path parameter."""
    return one_of_everything(program)


@pytest.fixture
def elsewhere(world: dict[str, Any]) -> dict[str, Any]:
    """Names of objects that do not exist."""
    return missing_like(world)
