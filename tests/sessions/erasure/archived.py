"""Archived sessions, as tests compare them with what they were."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sessions.actions.accounts.audit import COMMAND
from sessions.actions.archives import packed, unpack
from sessions.actions.erasure import archiving
from sessions.actions.imports.export import export
from sessions.actions.record import checks
from sessions.models import (
    Blob,
    Block,
    Edit,
    Entry,
    Job,
    Message,
    ModelCall,
    Pin,
    Retry,
    Session,
)
from tests.sessions.programs import Program

TABLES = (Message, Pin, Retry, Block, Entry, Edit, ModelCall)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several parts per table."""
    for module in (packed, unpack, archiving):
        monkeypatch.setattr(module, "AT_ONCE", 7)


def everything(session: Session) -> tuple[list[str], list[Any], set[str]]:
    """A session as it is exported, its rows with their keys, and the team's contents."""
    session = Session.objects.get(pk=session.pk)
    lines = [json.dumps(line, default=str) for line in export(session, None)]
    rows = [list(model._default_manager.order_by("pk").values_list()) for model in TABLES]
    return lines, rows, set(Blob.objects.values_list("sha", flat=True))


def archive(program: Program, **given: Any) -> int:
    Job.objects.all().delete()
    return archiving.archive(program.team, 30, COMMAND, **given)


def findings() -> list[Any]:
    return [finding for part in checks.parts() for finding in part.findings]
