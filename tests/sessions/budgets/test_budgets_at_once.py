"""Concurrent calls never exceed a hard limit and add up."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from sessions.actions.accounts import audit
from sessions.actions.budgets.approvals import CannotDecide, decide
from sessions.actions.budgets.reserved import release_expired
from sessions.models import Approval, AuditEntry, Reservation, Session
from tests.sessions.budgets.spending import NOW, ask, budget, report, running, use
from tests.sessions.together import at_once

pytestmark = [pytest.mark.django_db, pytest.mark.store]


@pytest.mark.django_db(transaction=True)
def test_agents_at_once_do_not_go_beyond_a_hard_limit():
    budget("task", 1_000, mode="hard")
    fleet = [running(f"agent-{number}", task="ferry") for number in range(8)]

    def work(session: Session) -> Any:
        return lambda: [ask(session, f"c{n}", 90)["can_proceed"] for n in range(4)]

    came = at_once(Exception, *(work(session) for session in fleet))
    assert all(isinstance(one, list) for one in came), came
    assert sum(sum(one) for one in came) == 11
    assert use("ferry") == (0, 990)
    open_ones = Reservation.objects.filter(state=Reservation.State.OPEN)
    assert sum(one.tokens for one in open_ones) == 990


@pytest.mark.django_db(transaction=True)
def test_checks_reports_and_expiry_at_once_add_up():
    budget("task", 100_000)
    budget("agent", 100_000, name="fixer")
    fleet = [running(f"agent-{number}", task="ferry", agent="fixer") for number in range(4)]

    def work(session: Session) -> Any:
        def run() -> None:
            for number in range(4):
                ask(session, f"c{number}", 100)
                report(session, f"c{number}", 50)
                ask(session, f"lost-{number}", 30)

        return run

    def expire() -> None:
        for _ in range(10):
            release_expired(None, NOW + timedelta(hours=1))

    came = at_once(Exception, *(work(session) for session in fleet), expire)
    assert came == [None] * 5, came
    release_expired(None, NOW + timedelta(hours=1))
    assert use("ferry") == use("fixer") == (4 * 4 * 50, 0)


@pytest.mark.django_db(transaction=True)
def test_the_same_call_asked_for_at_once_is_reserved_once():
    budget()
    session = running()
    came = at_once(Exception, *[lambda: ask(session, "c1", 100)] * 4)
    assert all(one == came[0] for one in came), came
    assert use() == (0, 100)


@pytest.mark.django_db(transaction=True)
def test_of_two_who_decide_at_once_one_does():
    budget(mode="approval")
    session = running()
    ask(session, "c1", 1_200)
    row, ada = Approval.objects.get().pk, audit.person(User.objects.create_user("ada"))

    def say(*, granted: bool) -> Any:
        return lambda: decide(row, ada, NOW, granted=granted)

    came = at_once(CannotDecide, say(granted=True), say(granted=False))
    assert sum(isinstance(one, CannotDecide) for one in came) == 1
    assert AuditEntry.objects.filter(action__startswith="approval.").count() == 1
