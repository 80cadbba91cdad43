"""Which budgets count, their warnings, limits and changes."""

from __future__ import annotations

from typing import Any

import pytest

from sessions.actions.accounts.teams import local_team
from sessions.actions.budgets.budgets import BudgetFields, put_budget, remove_budget
from sessions.actions.live.deliver import report_call
from sessions.actions.live.live_sessions import Unacceptable
from sessions.models import AuditEntry, Budget, Reservation, Session, Use
from tests.sessions.budgets.spending import OWNER, ask, budget, report, running, use
from tests.sessions.live.appends import live, says, send, user

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def test_a_new_budget_counts_what_was_spent_before():
    session = running(task="ferry", agent="fixer")
    report(session, "c1", 250)
    other = running("other", task="ferry")
    report(other, "c1", 100)
    budget("task", 300, mode="hard")
    budget("agent", 1_000)
    answer = ask(session, "c2", 1)
    assert {one["key"]: one["used"]["tokens"] for one in answer["budgets"]} == {
        "ferry": 350,
        "fixer": 250,
    }
    assert not answer["can_proceed"]
    report(other, "c2", 50)
    assert use("ferry") == (400, 0)


def test_a_report_that_comes_first_is_counted_once():
    session = running()
    report(session, "c1", 250)
    budget()
    report(session, "c2", 50)
    assert use() == (300, 0)


def test_a_named_budget_stands_in_for_the_nameless_and_both_are_counted():
    budget("session", 100, mode="hard")
    mine = budget("session", 1_000, name="run", mode="hard")
    session, other = running(), running("other")
    assert ask(session, "c1", 500)["can_proceed"]
    assert not ask(other, "c1", 500)["can_proceed"]
    report(session, "c1", 400)
    put_budget(local_team(), BudgetFields("session", "run", tokens=1_000, active=False), OWNER)
    refused = ask(session, "c2", 1)
    assert not refused["can_proceed"]
    assert refused["budgets"][0]["used"]["tokens"] == 400
    remove_budget(mine, OWNER)
    assert not ask(session, "c2", 1)["can_proceed"]


def test_money_is_counted_by_price():
    put_budget(local_team(), BudgetFields("session", microusd=10_000, mode="hard"), OWNER)
    session = live("run", model="claude-sonnet-4-5")
    send(session, user("Mend the ferry."))
    usage = {"input_tokens": 1_000, "output_tokens": 100}
    report_call(session, {"call": "c1", "usage": usage})
    row = Use.objects.get()
    assert (row.used_tokens, row.used_microusd) == (1_100, 1_000 * 3 + 100 * 15)
    answer = ask(session, "c2", 1_100)
    assert (answer["can_proceed"], answer["estimate"]["microusd"]) == (True, 4_500)
    assert not ask(session, "c3", 1_100)["can_proceed"]


def test_another_team_s_budgets_and_imported_sessions_are_left_alone():
    from sessions.models import Team

    other = Team.objects.create(slug="theirs", name="Theirs")
    put_budget(other, BudgetFields("session", tokens=0, mode="hard"), OWNER)
    session = running()
    answer = ask(session, "c1", 10)
    assert (answer["can_proceed"], answer["budgets"]) == (True, [])
    assert not Reservation.objects.exists()
    budget("session", 0, mode="hard")
    Session.objects.update(source="claude-code")
    session.refresh_from_db()
    assert ask(session, "c2", 10)["can_proceed"]


# Warnings


def test_a_warning_comes_once_per_threshold():
    budget("session", 1_000, mode="soft")
    session = running()
    usage = {"input_tokens": 840, "output_tokens": 10}
    answer = send(session, says("a"), usage=usage, call="m1")
    assert answer["warnings"] == ["The session run passed 80 %: 85 %."]
    assert (answer["advice"]["delay_ms"], answer["advice"]["retry_after"]) == (300, 0.3)
    assert answer["budgets"][0]["state"] == "warn"
    assert send(session, user("b"))["warnings"] == []
    over = ask(session, "c2", 400)
    assert over["can_proceed"]
    assert over["warnings"] == ["The session run passed 100 %: 125 %."]
    assert ask(session, "c3", 1)["warnings"] == []
    assert ask(session, "", 1)["budgets"][0]["state"] == "over"


def test_nothing_is_refused_to_be_stored():
    budget("session", 0, mode="hard")
    session = running()
    assert send(session, user("more"))["appended"] == 1


# Changes


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"scope": "team"}, "/scope"),
        ({"period": "week"}, "/period"),
        ({"mode": "stern"}, "/mode"),
        ({"tokens": None}, "/tokens"),
        ({"tokens": -1}, "/tokens"),
        ({"microusd": 10**16}, "/microusd"),
        ({"warn": 0}, "/warn"),
        ({"name": "a\x00b"}, "/name"),
        ({"name": "x" * 301}, "/name"),
    ],
)
def test_what_no_budget_can_be(fields: dict[str, Any], pointer: str):
    given = {"scope": "session", "tokens": 1} | fields
    with pytest.raises(Unacceptable) as error:
        put_budget(local_team(), BudgetFields(**given), OWNER)
    assert error.value.pointer == pointer


def test_changes_are_written_down_and_the_same_again_is_none():
    made = budget()
    assert budget() == made
    budget(limit=2_000)
    remove_budget(Budget.objects.get(), OWNER)
    acts = AuditEntry.objects.order_by("pk").values_list("action", "detail")
    assert [action for action, _ in acts] == ["budget.made", "budget.changed", "budget.removed"]
    assert acts[1][1] == {"tokens": 2_000}
