"""People with accounts, and browsers in which they are signed in."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from sessions.models import AuditEntry, Membership, Team
from tests.sessions.pages import Page

PASSWORD = "lantern-ferry-42"
QUICK = ["django.contrib.auth.hashers.MD5PasswordHasher"]
"""For tests that hash many passwords and are not about that."""


def person(name: str, email: str = "") -> User:
    """An account with PASSWORD, in no team."""
    return User.objects.create_user(name, email, PASSWORD)


def member(team: Team, name: str, role: str = "owner") -> User:
    """A new person in a team."""
    user = person(name)
    Membership.objects.create(user=user, team=team, role=role)
    return user


def browser(user: User | None = None) -> Client:
    """A browser, signed in or not."""
    client = Client(SERVER_NAME="127.0.0.1")
    if user is not None:
        client.force_login(user)
    return client


def sign_in(client: Client, name: str, password: str = PASSWORD, **more: Any) -> HttpResponse:
    """Submit the sign-in form."""
    return client.post("/login/", {"login": name, "password": password, **more})


def shown(response: HttpResponse, status: int = 200) -> Page:
    """The page of an answer of that status."""
    assert response.status_code == status, response.content[:500]
    return Page(response.content.decode())


def acts(team: Team) -> list[tuple[str, str, str]]:
    """Entries of a team's audit log: action, actor, object; oldest first."""
    rows = AuditEntry.objects.filter(team=team).order_by("pk")
    return list(rows.values_list("action", "actor", "named"))
