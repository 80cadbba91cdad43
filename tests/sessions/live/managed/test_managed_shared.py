"""Managed runs in memory: shared by requests, overtaken by other processes, evicted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compaction import tokens
from compaction.policies.policy import to_dict
from sessions.actions.accounts.teams import local_team
from sessions.actions.live import folds
from sessions.actions.live.advance import store
from sessions.actions.live.folds import serving
from sessions.actions.live.managed import catch_up
from sessions.actions.policies.policies import version_of
from sessions.actions.record.append import append
from sessions.models import Entry, Run, Session
from tests.sessions.live.managed.test_managed import BOTH, grown, send, talk
from tests.sessions.made import session, user

pytestmark = [pytest.mark.django_db, pytest.mark.store]


@pytest.fixture(autouse=True)
def no_folds() -> Iterator[None]:
    folds.forget_all()
    yield
    folds.forget_all()


def other_process(stored: Session) -> folds.Fold:
    """The fold of another process with its own memory."""
    run = serving(stored)
    assert run is not None
    fold = folds.Fold(run.pk)
    fold.refresh(stored)
    return fold


def test_a_process_takes_over_what_another_wrote():
    stored = grown(10)
    ours = other_process(stored)
    stored = grown(24)
    run = serving(stored)
    assert run is not None and run.head > ours.stamp.head > 0
    ours.refresh(stored)
    assert tuple(ours.state.standing.values()) == catch_up(stored).blocks


def test_of_two_that_write_at_once_one_begins_again():
    stored = grown(10)
    ours = other_process(stored)
    catch_up(send(*talk(11)[-1]))
    rows = Entry.objects.count()
    with pytest.raises(folds.Raced):
        store(ours, stored, [])
    assert Entry.objects.count() == rows

    def late(fold: folds.Fold) -> int:
        tries.append(1)
        if len(tries) == 1:
            store(other_process(stored), stored, [])
        store(fold, stored, [])
        return fold.stamp.writes

    tries: list[int] = []
    before = Run.objects.get(origin=Run.Origin.MANAGED).fold["writes"]
    assert folds.with_fold(stored, Run.objects.get(origin=Run.Origin.MANAGED), late) == before + 2
    assert len(tries) == 2


def test_folds_let_go_of_those_that_were_not_used_for_longest(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(folds, "MOST_BYTES", 30_000)
    for name in ("x", "y", "z"):
        made = session(user(f"{name} " * 5_000, key="k"), external_id=name)
        stored = append(local_team(), made, tokens.counted, source="test").session
        stored.policy_version = version_of(stored.team, "both", to_dict(BOTH), preset=False)
        stored.save()
        catch_up(stored)
    kept = {fold.run.session.external_id for fold in folds._folds.values() if fold.run}
    assert kept == {"y", "z"}


def test_who_lost_often_holds_the_row_while_it_works():
    stored = grown(3)

    def unlucky(fold: folds.Fold) -> int:
        tries.append(1)
        if len(tries) <= folds.PATIENCE:
            store(other_process(stored), stored, [])
        store(fold, stored, [])
        return len(tries)

    tries: list[int] = []
    run = Run.objects.get(origin=Run.Origin.MANAGED)
    assert folds.with_fold(stored, run, unlucky) == folds.PATIENCE + 1
