"""Everything named in the settings exists."""

import pytest
from django.db import connection
from django.utils.module_loading import import_string

from contextlab import settings


def test_every_kind_of_job_names_a_function():
    assert settings.JOB_KINDS
    for path in settings.JOB_KINDS.values():
        assert callable(import_string(path))


def test_nothing_is_open_by_default():
    assert not settings.DEBUG
    assert "*" not in settings.ALLOWED_HOSTS
    assert settings.HOST == "127.0.0.1"


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "sqlite", reason="how SQLite alone is opened")
@pytest.mark.parametrize(
    ("pragma", "value"), [("journal_mode", "wal"), ("synchronous", 2), ("mmap_size", 0)]
)
def test_what_was_answered_survives(pragma: str, value: object) -> None:
    """Mapping widens the race that loses committed rows (docs/decisions.md, 40 and 45)."""
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA {pragma}")
        assert cursor.fetchone() == (value,)
