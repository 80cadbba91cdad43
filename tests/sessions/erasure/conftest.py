"""Every test of erasure begins with files that hold nothing of the one before."""

from __future__ import annotations

import pytest
from django.db import connection

from sessions.actions.erasure import remnants
from sessions.models.search.text_index import TABLE


@pytest.fixture(autouse=True)
def nothing_before(transactional_db: None) -> None:
    """Django empties its own tables between tests, but not the index."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"INSERT INTO {TABLE} ({TABLE}) VALUES ('delete-all')")
        else:
            cursor.execute(f"DELETE FROM {TABLE}")
    remnants.remove([], lambda: None)
