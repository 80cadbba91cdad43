"""When commits wait for the disk."""

from __future__ import annotations

import pytest
from django.db import connection, transaction

from sessions.models.web.synced import synced_later

SHOWN = {"sqlite": "PRAGMA synchronous", "postgresql": "SHOW synchronous_commit"}


def waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(SHOWN[connection.vendor])
        return cursor.fetchone()[0] in (2, "on")


@pytest.mark.store
@pytest.mark.django_db(transaction=True)
def test_commits_wait_again_after_those_that_did_not() -> None:
    with pytest.raises(ZeroDivisionError), synced_later():
        assert not waits()
        raise ZeroDivisionError
    assert waits()
    with transaction.atomic(), synced_later():
        assert waits(), "the outer transaction decides"
    assert waits()
