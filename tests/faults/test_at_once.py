"""Several that change one session at the same moment, each in a process of its own."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from django.db import connection

from sessions.actions import folds
from sessions.actions.pins import pin
from sessions.actions.undo import CannotUndo, undo_revision
from sessions.models import Run, Session
from tests.faults.script import begin, compacted, hand_out, kept, send, tended
from tests.faults.test_write_fails import audit

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

Act = Callable[[Session], object]
STEPS = 6


@pytest.fixture(autouse=True)
def no_folds() -> Iterator[None]:
    folds.forget_all()
    yield
    folds.forget_all()


@pytest.fixture
def session() -> Session:
    """A session with revisions, and an answer that nobody has taken in yet."""
    made = begin("contested")
    for step in range(STEPS):
        send(made, step)
        hand_out(made)
    send(made, STEPS)
    return made


def append(session: Session) -> None:
    send(session, session.messages.order_by("-born").values_list("born", flat=True)[0] + 1)


def undo(session: Session) -> None:
    run = Run.objects.get(session=session, origin=Run.Origin.SERVED)
    with suppress(CannotUndo):  # somebody else did, or built on it
        undo_revision(session, run.head)


def pin_the_oldest(session: Session) -> None:
    pin(session, 4)


ACTS: list[Act] = [append, undo, pin_the_oldest, compacted, tended, hand_out]


class Meanwhile:
    """Lets an act happen, as in another process, at the moment another is about to write."""

    def __init__(self, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
        self.act, self.done = act, False
        store = folds.Fold.store

        def interrupted(fold: folds.Fold, *given: object) -> None:
            if not self.done:
                self.done = True
                ours, folds._folds = folds._folds, OrderedDict()
                try:
                    act()
                finally:
                    folds._folds = ours
            store(fold, *given)  # type: ignore[arg-type]

        monkeypatch.setattr(folds.Fold, "store", interrupted)


@pytest.mark.parametrize("act", [tended, hand_out, compacted, undo, pin_the_oldest])
@pytest.mark.parametrize("other", ACTS)
def test_both_happen_whole(
    session: Session, act: Act, other: Act, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile = Meanwhile(lambda: other(session), monkeypatch)
    act(session)
    assert meanwhile.done
    append(session)
    tended(session)
    plan = hand_out(session)
    audit()
    in_order(session)
    warm = kept(session)
    folds.forget_all()
    assert hand_out(session).revision == plan.revision
    assert kept(session) == warm


def in_order(session: Session) -> None:
    """Every original stands, or an edit that stands for it says so."""
    run = Run.objects.get(session=session, origin=Run.Origin.SERVED)
    assert run.taken == session.blocks.count()
    ended = run.entries.filter(to_step__isnull=False, closed_by=None)
    assert not ended.exists()


def test_sixteen_appends_at_once_are_sixteen_batches(session: Session) -> None:
    """The same session, from threads with connections of their own."""
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
    hand_out(session)
    audit()
    in_order(session)
