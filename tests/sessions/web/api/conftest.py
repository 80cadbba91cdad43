"""Fixtures that tests of this folder share."""

from __future__ import annotations

import pytest

from tests.sessions.programs import Program
from tests.sessions.web.api.talks import TALK


@pytest.fixture
def talked(program: Program) -> Program:
    program.ask("PUT", "/sessions/run", {"agent": "tester", "model": "claude-sonnet-4-5"})
    program.post("/sessions/run/messages", {"messages": TALK})
    return program
