"""What an append costs in a long session, in steps of SQLite's machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

from sessions.models import Session
from tests.sessions.live.appends import Json, live, reads, result, says, send, user

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="counts the steps of SQLite"),
]


@contextmanager
def counted() -> Iterator[list[int]]:
    """Its list has the number of steps, when it ends."""
    steps = [0]

    def count() -> int:
        steps[0] += 1
        return 0

    connection.ensure_connection()
    connection.connection.set_progress_handler(count, 1)
    try:
        yield steps
    finally:
        connection.connection.set_progress_handler(None, 0)


def pair(number: int) -> list[Json]:
    return [reads(f"t{number}", f"f{number}.py"), result(f"t{number}", "text")]


def work(session: Session, number: int) -> list[int]:
    """The steps of a call, of its result, and of a text."""
    found = []
    for message in (*pair(number), says(f"Read {number}.")):
        with counted() as steps:
            send(session, message)
        found += steps
    return found


def test_the_thousandth_message_costs_what_the_first_did():
    session = live()
    send(session, user("Read all."))
    work(session, 1)
    early = work(session, 2)
    for start in range(10, 510, 50):
        send(session, *(one for number in range(start, start + 50) for one in pair(number)))
    late = work(session, 3)
    assert all(b <= a * 1.2 for a, b in zip(early, late, strict=True)), (early, late)
