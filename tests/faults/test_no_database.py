"""Without a database every URL returns 503 with Retry-After."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import InterfaceError, OperationalError, connection
from django.test import Client

from sessions.actions.accounts.teams import local_user
from tests.sessions.conftest import jobs_wait, program
from tests.sessions.programs import Program

__all__ = ["jobs_wait", "program"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]

PAGES = ["/sessions/", "/live/", "/settings/keys/", "/start/"]
DATA = ["/api/v1/sessions", "/api/v1/sessions/run/manifest", "/api/v1/sessions/run/context"]


@pytest.fixture
def client() -> Client:
    signed_in = Client(SERVER_NAME="127.0.0.1", raise_request_exception=False)
    signed_in.force_login(local_user())
    return signed_in


@pytest.mark.fault("D4")
@pytest.mark.parametrize("kind", [OperationalError, InterfaceError])
@pytest.mark.parametrize("address", [*PAGES, *DATA])
def test_a_browser_gets_a_page(client: Client, address: str, kind: type[Exception]) -> None:
    def away(*_: Any) -> None:
        raise kind("server closed the connection: secret of the user")

    with connection.execute_wrapper(away):
        answer = client.get(address)
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    assert b"secret" not in answer.content
    is_problem = answer["Content-Type"] == "application/problem+json"
    assert is_problem == address.startswith("/api/")


@pytest.mark.fault("D4")
@pytest.mark.parametrize("address", DATA)
def test_a_program_gets_a_problem(program: Program, address: str) -> None:
    def away(*_: Any) -> None:
        raise OperationalError("the database system is starting up")

    with connection.execute_wrapper(away):
        answer = program.ask("GET", address.removeprefix("/api/v1"))
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    assert answer["Content-Type"] == "application/problem+json"
