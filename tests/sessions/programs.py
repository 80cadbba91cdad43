"""Programs that ask the API with a key, and the problems that it answers."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpResponse

from sessions.actions.accounts.keys import create_key
from sessions.models import Team
from tests.sessions.answers import ApiClient

API = "/api/v1"


class Program:
    """A program with an API key."""

    def __init__(self, team: Team, scopes: tuple[str, ...] = ("read", "write")) -> None:
        self.team = team
        self.key, self.token = create_key(team, scopes=scopes)
        self.client = ApiClient(SERVER_NAME="127.0.0.1", raise_request_exception=False)

    def ask(self, method: str, address: str, body: Any = None, **headers: str) -> HttpResponse:
        """Send a request below /api/v1; `body` is sent as JSON, or unchanged if it is bytes."""
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


def assert_problem(response: HttpResponse, status: int) -> dict[str, Any]:
    """The problem of an answer that must be one."""
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert (body["status"], bool(body["title"])) == (status, True)
    assert body["detail"].endswith("."), "a sentence that says what to do"
    return body
