"""Sessions in the list, and who looks at it."""

from __future__ import annotations

import pytest
from django.test import Client

from sessions.actions.accounts.teams import local_team
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.importers import records
from sessions.models import Session
from tests.sessions.made import count, says, session, user
from tests.sessions.pages import signed_in


@pytest.fixture
def client() -> Client:
    return signed_in()


def stored(made: records.Session, **columns: object) -> Session:
    found = append(local_team(), made, count, source="test").session
    measure(found)
    Session.objects.filter(pk=found.pk).update(**columns)
    found.refresh_from_db()
    return found


def named(name: str, **columns: object) -> Session:
    """A session whose first words are its name."""
    return stored(session(user(f"say {name}"), says("c1", "yes"), external_id=name), **columns)


def many(number: int) -> None:
    """Sessions with equal and unknown values, in which a cursor could get lost."""
    team = local_team()
    Session.objects.bulk_create(
        Session(
            team=team,
            external_id=f"n{index}",
            title=f"n{index}",
            ended_at=None if index % 3 == 0 else index // 4,
            cost_microusd=None if index % 2 else index % 5,
            window=None if index % 7 == 0 else 1000,
            peak_tokens=index % 10,
            step_count=index % 4,
        )
        for index in range(number)
    )
