"""Which answers are compressed: what browsers read, but nothing that holds a secret."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from django.test import Client

from sessions.actions.accounts.keys import create_key
from sessions.actions.accounts.teams import local_team, local_user
from tests.sessions.people import browser

pytestmark = pytest.mark.django_db

GZIP = {"accept-encoding": "gzip, deflate"}


@pytest.mark.parametrize(
    ("path", "packed"),
    [
        ("/live/", True),
        ("/policies/", True),
        ("/api/v1/openapi.json", True),
        ("/settings/keys/", False),
        ("/settings/members/", False),
        ("/account/", False),
    ],
)
def test_pages(path: str, packed: bool):
    person = browser(local_user())
    answer: Any = person.get(path, headers=GZIP)
    assert answer.status_code == 200
    assert (answer.get("Content-Encoding") == "gzip") is packed
    plain = gzip.decompress(answer.content) if packed else answer.content
    assert plain[:1] in (b"<", b"\n", b"{")
    if packed:
        assert "Accept-Encoding" in answer["Vary"]
        assert "Content-Encoding" not in person.get(path)


def test_two_answers_of_one_page_differ_in_size():
    """Their random padding, without which sizes could be compared."""
    person = browser(local_user())
    assert len({len(person.get("/policies/", headers=GZIP).content) for _ in range(20)}) > 1


def test_nothing_for_programs():
    _, token = create_key(local_team(), "test", ["read"])
    who = {"authorization": f"Bearer {token}", **GZIP}
    answer = Client(SERVER_NAME="127.0.0.1").get("/api/v1/sessions", headers=who)
    assert answer.status_code == 200
    assert "Content-Encoding" not in answer
