"""Any write to the database may fail: everything or nothing is stored, and work continues."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import OperationalError, connection

from sessions.actions.live import folds
from sessions.models import Session
from tests.faults.script import begin, kept, record_context, send, tended
from tests.faults.store import NOTHING

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

STEPS = 7
WRITES = ("INSERT", "UPDATE", "DELETE", "SAVEPOINT", "RELEASE")


@pytest.fixture(autouse=True)
def no_folds() -> Iterator[None]:
    folds.forget_all()
    yield
    folds.forget_all()


@contextmanager
def failing_at(limit: int) -> Iterator[None]:
    """Make the write with that number fail, counted from 1."""
    seen = 0

    def fails(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        nonlocal seen
        if sql.startswith(WRITES):
            seen += 1
            if seen == limit:
                raise OperationalError("the disk is full")
        return execute(sql, *rest)

    with connection.execute_wrapper(fails):
        yield


def audit() -> None:
    with connection.cursor() as cursor:
        for what, sql in NOTHING.items():
            cursor.execute(sql)
            assert cursor.fetchall() == [], what


def insist(act: Callable[[], object], after_failure: Callable[[int], object]) -> int:
    """Make each write of an action fail in turn until none is left; return their number."""
    for limit in range(1, 1000):
        try:
            with failing_at(limit):
                act()
        except OperationalError:
            after_failure(limit)
            audit()
            continue
        return limit - 1
    raise AssertionError("it never ended")


def undisturbed() -> Session:
    session = begin("undisturbed")
    for step in range(STEPS + 1):
        send(session, step)
        tended(session)
        record_context(session)
    return session


@pytest.mark.fault("A5")
def test_every_write_that_fails_leaves_whole_acts() -> None:
    """After every other failure as a process that has just started."""
    expected = kept(undisturbed())
    assert {row[3] for row in expected["revisions"]} == {"batch", "window"}
    session = begin("disturbed")
    failures: list[int] = []

    def restart(limit: int) -> None:
        if limit % 2:
            folds.forget_all()

    def nothing_new(limit: int) -> None:
        assert kept(session) == before
        restart(limit)

    for step in range(STEPS + 1):
        before = kept(session)
        failures.append(insist(lambda step=step: send(session, step), nothing_new))
        failures.append(insist(lambda: tended(session), restart))
        failures.append(insist(lambda: record_context(session), restart))
    assert sum(failures) > 15 * STEPS
    assert kept(session) == expected
