"""Every operation and page fails with content in the error: neither shown nor logged."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.db import connection

from contextlab.operations.logs import OneLine
from tests.sessions.conftest import jobs_wait, program, world
from tests.sessions.programs import Program
from tests.sessions.web.addresses import PRIVATE
from tests.sessions.web.world import browser_of, by_browser, by_program, each

__all__ = ["jobs_wait", "program", "world"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]

CANARY = "9f2c-content-of-a-user-e71b"


@pytest.mark.fault("K1", "K2")
def test_no_failure_shows_or_logs_content(
    world: dict[str, Any], program: Program, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    owner = browser_of(program.team)

    def broken(*_: Any) -> Any:
        raise RuntimeError(CANARY)

    failed = 0
    for address in each(PRIVATE):
        with connection.execute_wrapper(broken):
            if address.is_api:
                answer = by_program(program, address, world)
            else:
                answer = by_browser(owner, address, world)
        failed += answer.status_code == 500
        if not answer.streaming:
            assert CANARY not in answer.content.decode(), (address.method, address.route)
    assert failed > 100
    lines = "\n".join(map(OneLine().format, caplog.records))
    assert "RuntimeError" in lines
    assert CANARY not in lines
    assert program.token not in lines
