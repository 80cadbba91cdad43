"""Askers of the API: programs with a key, each of a team of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from sessions.actions import jobs
from sessions.actions.keys import create_key
from sessions.models import Key, Team
from tests.sessions.api.world import missing_like, one_of_everything

API = "/api/v1"


class Program:
    """A program with a key, as one writes it in a few lines."""

    def __init__(self, team: Team, scopes: tuple[str, ...] = ("read", "write")) -> None:
        self.team = team
        self.key, self.token = create_key(team, scopes=scopes)
        self.client = Client(SERVER_NAME="127.0.0.1", raise_request_exception=False)

    def ask(self, method: str, address: str, body: Any = None, **headers: str) -> HttpResponse:
        """Any request below /api/v1; `body` goes as JSON, or as it is where it is bytes."""
        if body is None:
            data, kind = b"", ""
        elif isinstance(body, bytes):
            data, kind = body, "application/json"
        else:
            data, kind = json.dumps(body).encode(), "application/json"
        kind = headers.pop("content_type", kind)
        given = {"authorization": f"Bearer {self.token}"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        return self.client.generic(method, f"{API}{address}", data, kind, headers=given)

    def get(self, address: str, **headers: str) -> Any:
        """The JSON of an answer that must be good."""
        response = self.ask("GET", address, **headers)
        assert response.status_code == 200, response.content
        return response.json()

    def post(self, address: str, body: Any, **headers: str) -> Any:
        """The JSON of an answer that must be good."""
        response = self.ask("POST", address, body, **headers)
        assert response.status_code in (200, 201, 202), response.content
        return response.json()


@pytest.fixture(autouse=True)
def nobody_works(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> None:
    """Jobs are asked for, and wait; what is uploaded for them goes with the test."""
    monkeypatch.setattr(jobs, "wake", lambda _: None)
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
    """One of everything in the team of `program`, by the names that addresses give it."""
    return one_of_everything(program)


@pytest.fixture
def elsewhere(world: dict[str, Any]) -> dict[str, Any]:
    """The names of what nobody has."""
    return missing_like(world)


Problem = Callable[[HttpResponse], dict[str, Any]]


def problem(response: HttpResponse, status: int) -> dict[str, Any]:
    """The problem of an answer that must be one."""
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert (body["status"], bool(body["title"])) == (status, True)
    assert body["detail"].endswith("."), "a sentence that says what to do"
    return body
