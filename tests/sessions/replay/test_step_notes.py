"""Notes on steps: who leaves, sees and deletes them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from sessions.actions.accounts.teams import local_team, local_user
from sessions.actions.record.append import append
from sessions.actions.replay import step_notes
from sessions.models import AuditEntry, Session
from tests.sessions.made import count, reading
from tests.sessions.web.world import browser_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def stored() -> Session:
    return append(local_team(), reading(3), count, source="test").session


def ask(client: Client, method: str, session: Session, *args: Any, **body: Any) -> Any:
    name = "api:step_note" if args else "api:step_notes"
    address = reverse(name, args=[session.pk, *args])
    return client.generic(method, address, json.dumps(body), "application/json")


def notes(client: Client, session: Session) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ask(client, "GET", session).json()["notes"]
    return found


def test_a_note_has_author_and_time_and_is_audited_without_its_text(stored: Session):
    author = browser_of(stored.team, "editor")
    made = ask(author, "POST", stored, step=2, text=" <b>guessed</b> the port ")
    assert made.status_code == 201
    [note] = notes(author, stored)
    assert (note["step"], note["text"]) == (2, "<b>guessed</b> the port")
    assert note["author"].startswith("editor of") and note["created"] and note["deletable"]
    entry = AuditEntry.objects.filter(action="note.added").get()
    assert entry.detail == {"step": 2, "note": note["id"]}


@pytest.mark.parametrize(("role", "status"), [("viewer", 403), ("reviewer", 201)])
def test_who_reviews_may_leave_one(stored: Session, role: str, status: int):
    client = browser_of(stored.team, role)
    assert ask(client, "POST", stored, step=1, text="a").status_code == status
    page = client.get(f"/sessions/{stored.pk}/").content.decode()
    may = '"may_note": true' in page
    assert may == (status == 201)


def test_author_and_admin_delete_and_others_do_not(stored: Session):
    author = browser_of(stored.team, "editor")
    ask(author, "POST", stored, step=1, text="a")
    ask(author, "POST", stored, step=1, text="b")
    first, second = (note["id"] for note in notes(author, stored))
    viewer = browser_of(stored.team, "viewer")
    assert [note["deletable"] for note in notes(viewer, stored)] == [False, False]
    assert ask(viewer, "DELETE", stored, first).status_code == 403
    assert ask(author, "DELETE", stored, first).status_code == 200
    owner = Client(SERVER_NAME="127.0.0.1")
    owner.force_login(local_user())
    assert ask(owner, "DELETE", stored, second).json() == {"notes": []}
    assert ask(owner, "DELETE", stored, second).status_code == 404
    assert AuditEntry.objects.filter(action="note.deleted").count() == 2


@pytest.mark.parametrize(
    "body",
    [{"step": 0, "text": "a"}, {"step": 9, "text": "a"}, {"step": 1, "text": "  "},
     {"step": 1, "text": "a" * 2_001}],
)  # fmt: skip
def test_what_cannot_be_a_note_is_refused(stored: Session, body: dict[str, Any]):
    author = browser_of(stored.team, "editor")
    assert ask(author, "POST", stored, **body).status_code == 422
    assert notes(author, stored) == []


def test_a_session_has_a_limit(stored: Session, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(step_notes, "MOST_NOTES", 1)
    author = browser_of(stored.team, "editor")
    assert ask(author, "POST", stored, step=1, text="a").status_code == 201
    refused = ask(author, "POST", stored, step=1, text="b")
    assert refused.status_code == 422 and "1 notes" in refused.json()["detail"]
