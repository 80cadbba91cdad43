"""Concurrent changes of one session, each in its own process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from django.db import connection

from sessions.actions.live import advance, folds, tend
from sessions.actions.live.requests import on_request, pins
from sessions.actions.live.requests.on_request import CannotUndo, undo_revision
from sessions.actions.live.requests.pins import pin
from sessions.models import Run, Session
from tests.faults.script import begin, compacted, kept, record_context, send, tended
from tests.faults.test_write_fails import audit

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

Act = Callable[[Session], object]
STEPS = 6


@pytest.fixture(autouse=True)
def no_folds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # A few steps are too little for tend, and have to contend with it here.
    monkeypatch.setattr(tend, "_lags", lambda *_: True)
    folds.forget_all()
    yield
    folds.forget_all()


@pytest.fixture
def session() -> Session:
    """A session with revisions, and an answer not yet processed."""
    made = begin("contested")
    for step in range(STEPS):
        send(made, step)
        record_context(made)
    send(made, STEPS)
    return made


def append(session: Session) -> None:
    send(session, session.messages.order_by("-born").values_list("born", flat=True)[0] + 1)


def undo_the_last(session: Session) -> None:
    run = Run.objects.get(session=session, origin=Run.Origin.MANAGED)
    with suppress(CannotUndo):  # another process did, or built on it
        undo_revision(session, run.head)


def pin_the_oldest(session: Session) -> None:
    pin(session, 4)


ACTS: list[Act] = [append, undo_the_last, pin_the_oldest, compacted, tended, record_context]


class Meanwhile:
    """Run an action, as in another process, just before another one writes."""

    def __init__(self, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
        self.act, self.done = act, False
        store = advance.store

        def interrupted(*given: Any) -> None:
            if not self.done:
                self.done = True
                ours, folds._folds = folds._folds, OrderedDict()
                try:
                    act()
                finally:
                    folds._folds = ours
            store(*given)

        for module in (advance, on_request, pins):
            monkeypatch.setattr(module, "store", interrupted)


@pytest.mark.fault("B9", "B10", "B11")
@pytest.mark.parametrize("act", [tended, record_context, compacted, undo_the_last, pin_the_oldest])
@pytest.mark.parametrize("other", ACTS)
def test_both_happen_whole(
    session: Session, act: Act, other: Act, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile = Meanwhile(lambda: other(session), monkeypatch)
    act(session)
    assert meanwhile.done
    append(session)
    tended(session)
    plan = record_context(session)
    audit()
    in_order(session)
    warm = kept(session)
    folds.forget_all()
    assert record_context(session).revision == plan.revision
    assert kept(session) == warm


def in_order(session: Session) -> None:
    """Every original is in context, or replaced by an edit."""
    run = Run.objects.get(session=session, origin=Run.Origin.MANAGED)
    assert run.taken == session.blocks.count()
    ended = run.entries.filter(to_step__isnull=False, closed_by=None)
    assert not ended.exists()


@pytest.mark.fault("D3")
def test_sixteen_appends_at_once_are_sixteen_batches(session: Session) -> None:
    """From threads with their own connections."""
    from concurrent.futures import ThreadPoolExecutor

    def one(step: int) -> None:
        try:
            send(session, step)
        finally:
            connection.close()

    before = session.messages.count()
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(one, range(100, 116)))
    assert session.messages.count() == before + 32
    tended(session)
    record_context(session)
    audit()
    in_order(session)
