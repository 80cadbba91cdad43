"""Slow work and waiting happen before a transaction begins, because SQLite allows only one
writer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Self

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils.module_loading import import_string

from compaction.tokens import Counted
from sessions import demo
from sessions.actions.accounts.audit import COMMAND
from sessions.actions.accounts.invitations import invite
from sessions.actions.accounts.teams import local_team
from sessions.actions.demo.demo import load_demo
from sessions.actions.live import folds
from sessions.actions.live.folds import serving
from sessions.actions.live.managed import catch_up
from sessions.models import Session
from tests.sessions.live.managed.test_managed import grown
from tests.sessions.people import browser
from tests.sessions.programs import Program

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("jobs_wait")]


@pytest.fixture(autouse=True)
def no_folds() -> Iterator[None]:
    folds.forget_all()
    yield
    folds.forget_all()


class Noted:
    """A lock that records whether its users have a transaction open."""

    def __init__(self) -> None:
        self.lock, self.depth, self.seen = threading.RLock(), 0, list[bool]()

    def __enter__(self) -> Self:
        self.lock.acquire()
        if not self.depth:
            self.seen.append(connection.in_atomic_block)
        self.depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.depth -= 1
        self.lock.release()


def locked(stored: Session) -> Noted:
    """The lock of a session's fold from now on."""
    run = serving(stored)
    assert run is not None
    noted = folds._folds[run.pk].lock = Noted()  # type: ignore[assignment]
    return noted


def test_what_changes_a_managed_run_waits_for_its_fold_before_it_locks_the_database() -> None:
    stored = grown(24)
    program = Program(stored.team)
    number = catch_up(stored).revision
    address = f"/sessions/{stored.external_id}"
    noted = locked(stored)
    for method, path, body in (
        ("POST", f"/revisions/{number}/undo", None),
        ("POST", "/pins", {"seq": 1}),
        ("DELETE", "/pins/1", None),
    ):
        answer = program.ask(method, address + path, body, Idempotency_Key=f"{method}{path}")
        assert answer.status_code in (200, 201), answer.content
    assert noted.seen == [False] * 3


def test_who_lost_often_waits_for_the_fold_before_it_locks_the_row() -> None:
    stored = grown(3)
    catch_up(stored)
    noted, inside = locked(stored), list[bool]()

    def unlucky(fold: folds.Fold) -> None:
        inside.append(connection.in_atomic_block)
        if len(inside) <= folds.PATIENCE:
            raise folds.Raced

    run = serving(stored)
    assert run is not None
    folds.with_fold(stored, run, unlucky)
    assert inside == [False] * folds.PATIENCE + [True]
    assert not any(noted.seen)


def test_a_fold_that_is_had_is_not_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folds, "MOST_BYTES", 0)
    stored = grown(3)
    run = serving(stored)
    assert run is not None
    with folds.holding(run) as fold:
        folds._trim(keep=Session().pk)
        assert folds._folds[run.pk] is fold
    folds._trim(keep=Session().pk)
    assert run.pk not in folds._folds


def test_a_password_is_hashed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    _, token = invite(local_team(), "viewer", COMMAND)
    seen, hashed = list[bool](), User.set_password

    def noted(user: User, password: Any) -> None:
        seen.append(connection.in_atomic_block)
        hashed(user, password)

    monkeypatch.setattr(User, "set_password", noted)
    form = {"name": "jo", "email": "", "password": "a long enough phrase"}
    form["again"] = form["password"]
    assert browser().post(f"/invitations/{token}/", form).status_code == 302
    assert seen == [False]


def only(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Restrict the demo to one session."""
    parts = tuple(part for part in demo.PARTS if part.name == name)
    monkeypatch.setattr(demo, "PARTS", parts)
    monkeypatch.setattr(demo, "EXTERNAL_IDS", tuple(part.external_id for part in parts))


def count(text: str) -> Counted:
    return Counted(len(text) // 4)


def test_the_demo_is_prepared_before_and_measured_after(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "codex")
    seen: list[bool] = []
    for work in (
        "sessions.actions.record.append.Preparation",
        "sessions.actions.demo.demo.measure",
    ):
        real = import_string(work)

        def noted(*given: Any, real: Any = real, **named: Any) -> Any:
            seen.append(connection.in_atomic_block)
            return real(*given, **named)

        monkeypatch.setattr(work, noted)
    assert load_demo(local_team(), count, 1_795_000_000_000)
    assert seen == [False, False]


def test_a_demo_that_was_cut_off_before_it_was_measured_is_finished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    only(monkeypatch, "codex")

    def killed(session: Session) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("sessions.actions.demo.demo.measure", killed)
        with pytest.raises(KeyboardInterrupt):
            load_demo(local_team(), count, 1_795_000_000_000)
    assert Session.objects.get().demo
    load_demo(local_team(), count, 1_795_000_000_000)
    assert Session.objects.get().measured
    assert load_demo(local_team(), count, 1_795_000_000_000) == []
