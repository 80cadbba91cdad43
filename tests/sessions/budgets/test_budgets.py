"""Budgets as rows: reserved and settled whatever the order, by several at once, across sessions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from compaction.budget.spending import Amount
from sessions.actions.accounts import audit
from sessions.actions.accounts.teams import local_team
from sessions.actions.budgets import approvals, spending
from sessions.actions.budgets.approvals import CannotDecide, admit, decide
from sessions.actions.budgets.budgets import (
    BudgetFields,
    put_budget,
    remove_budget,
)
from sessions.actions.budgets.reserved import release, release_expired
from sessions.actions.budgets.spending import PlannedCall
from sessions.actions.live.deliver import report_call
from sessions.actions.live.live_sessions import Unacceptable
from sessions.actions.live.next_call import check
from sessions.models import Approval, AuditEntry, Budget, Reservation, Session, Use
from tests.sessions.live.test_deliver import live, says, send, user
from tests.sessions.together import at_once

pytestmark = [pytest.mark.django_db, pytest.mark.store]

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
OWNER = audit.COMMAND


def budget(scope: str = "session", limit: int | None = 1_000, **more: Any) -> Budget:
    return put_budget(local_team(), BudgetFields(scope, tokens=limit, **more), OWNER)[0]


def ask(session: Session, call: str, tokens: int | None, now: datetime = NOW) -> dict[str, Any]:
    return check(session, PlannedCall(call, tokens), now)


def report(session: Session, call: str, tokens: int, **more: Any) -> None:
    usage = {"input_tokens": tokens - 10, "output_tokens": 10}
    report_call(session, {"call": call, "usage": usage, **more})


def use(key: str = "run") -> tuple[int, int]:
    """Tokens used and reserved."""
    row = Use.objects.get(key=key)
    return row.used_tokens, row.reserved_tokens


def running(name: str = "run", **fields: Any) -> Session:
    made = live(name, **fields)
    send(made, user("Mend the ferry."))
    return made


# Reserve and settle


def test_what_is_reserved_is_settled_by_the_report_of_that_call():
    budget(mode="hard")
    session = running()
    answer = ask(session, "c1", 600)
    assert (answer["can_proceed"], answer["expires"]) == (True, "2026-11-22T12:10:00+00:00")
    assert use() == (0, 600)
    refused = ask(session, "c2", 401)
    assert not refused["can_proceed"]
    assert refused["reason"].startswith("The session run has 1,000 tokens; this call would")
    assert use() == (0, 600)
    report(session, "c1", 250)
    assert use() == (250, 0)
    assert ask(session, "c2", 401)["can_proceed"]


def test_the_same_call_again_is_answered_the_same_and_reserves_nothing_more():
    budget()
    session = running()
    first = ask(session, "c1", 600)
    assert ask(session, "c1", 700) == first
    assert use() == (0, 600)
    report(session, "c1", 250)
    assert ask(session, "c1", 700) == first
    report(session, "c1", 250)
    assert use() == (250, 0)


def test_a_report_that_is_corrected_counts_the_difference():
    budget()
    session = running()
    report(session, "c1", 250)
    assert use() == (250, 0)
    report(session, "c1", 300)
    assert use() == (300, 0)
    report(session, "c1", 100)
    assert use() == (100, 0)


def test_usage_in_an_append_settles_what_the_session_reserved_first():
    budget()
    session = running()
    ask(session, "mine-1", 300)
    ask(session, "mine-2", 400)
    usage = {"input_tokens": 90, "output_tokens": 10}
    answer = send(session, says("Done."), usage=usage, call="msg_1")
    assert use() == (100, 400)
    (result,) = answer["budgets"]
    assert (result["scope"], result["key"], result["share"]) == ("session", "run", 0.5)
    assert result["used"] == {"tokens": 100, "microusd": 100 * 0 + result["used"]["microusd"]}
    send(session, user("Go on."))
    assert use() == (100, 400)


def test_a_call_is_found_by_the_context_that_it_was_sent_with():
    from sessions.actions.live.managed import catch_up, record_context

    budget()
    session = running()
    ask(session, "other", 100)
    handed = record_context(catch_up(session), "anthropic")
    ask(session, handed.pk, 300)
    report(session, "msg_1", 50, context_id=handed.pk)
    assert use() == (50, 100)


def test_without_an_id_nothing_is_reserved():
    budget(mode="approval")
    session = running()
    answer = ask(session, "", 600)
    assert (answer["can_proceed"], answer["expires"]) == (True, None)
    assert use() == (0, 0)
    over = ask(session, "", 1_001)
    assert (over["require_approval"], over["approval"]) == (True, None)
    assert not Approval.objects.exists()


def test_what_is_not_said_is_estimated_from_the_context_and_the_last_outputs():
    budget()
    session = running()
    used = Session.objects.get().used_tokens or 0
    assert ask(session, "", None)["estimate"]["tokens"] == used + spending.EXPECTED_OUTPUT
    report(session, "c1", 250)
    session.refresh_from_db()
    answer = ask(session, "", None)
    assert (answer["estimate"]["tokens"], answer["estimated"]) == (session.used_tokens + 10, True)


# Time


def test_what_nobody_settles_is_given_back():
    budget(mode="hard")
    session = running()
    ask(session, "c1", 900)
    assert not ask(session, "c2", 200, NOW + timedelta(minutes=9))["can_proceed"]
    assert ask(session, "c2", 200, NOW + timedelta(minutes=10))["can_proceed"]
    assert use() == (0, 200)
    assert ask(session, "c1", 100, NOW + timedelta(minutes=10))["can_proceed"]
    assert use() == (0, 300)
    assert release_expired(None, NOW + timedelta(hours=1)) == 2
    assert use() == (0, 0)
    assert release_expired(None, NOW + timedelta(hours=1)) == 0


def test_what_another_session_did_not_settle_goes_back_to_it_alone():
    budget()
    ask(running("late"), "c1", 900)
    answer = ask(running(), "c1", 100, NOW + timedelta(hours=1))
    assert [one["key"] for one in answer["budgets"]] == ["run"]
    assert (use("late"), use("run")) == ((0, 0), (0, 100))


def test_a_call_that_is_not_made_gives_back_what_it_reserved():
    budget()
    session = running()
    ask(session, "c1", 900)
    assert release(session, "c1", NOW) == 1
    assert release(session, "c1", NOW) == release(session, "never", NOW) == 0
    assert use() == (0, 0)


def test_a_day_begins_anew_at_midnight():
    budget("agent", 1_000, name="fixer", period="day", mode="hard")
    session = running(agent="fixer")
    assert ask(session, "c1", 900)["can_proceed"]
    assert not ask(session, "c2", 200)["can_proceed"]
    tomorrow = NOW + timedelta(days=1)
    assert ask(session, "c2", 200, tomorrow)["can_proceed"]
    terms = Use.objects.order_by("term").values_list("term", "reserved_tokens")
    assert list(terms) == [("2026-11-22", 0), ("2026-11-23", 200)]


# Which budgets count


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


# Approvals


@pytest.fixture
def person() -> audit.Actor:
    return audit.person(User.objects.create_user("ada"))


@pytest.mark.parametrize("scope", ["session", "task", "agent"])
def test_at_every_level_a_person_is_asked_and_a_yes_lets_it_go(scope: str, person: audit.Actor):
    budget(scope, 1_000, mode="approval")
    session = running(task="ferry", agent="fixer")
    before = Session.objects.get().version
    waits = ask(session, "c1", 1_200)
    assert (waits["can_proceed"], waits["require_approval"]) == (False, True)
    assert ask(session, "c1", 1_200)["approval"] == waits["approval"]
    assert Approval.objects.count() == 1
    assert Session.objects.get().version > before, "open pages hear of it"
    decided = decide(Approval.objects.get().pk, person, NOW, granted=True)
    assert (decided.state, decided.decided_by) == ("granted", person.user)
    assert ask(session, "c1", 1_200)["can_proceed"]
    again = ask(session, "c2", 1)
    assert again["require_approval"]
    assert again["approval"] != waits["approval"]
    entry = AuditEntry.objects.get(action="approval.granted")
    assert (entry.actor, entry.detail["tokens"]) == ("ada", 1_200)


def test_a_yes_may_let_more_go(person: audit.Actor):
    budget(mode="approval")
    session = running()
    ask(session, "c1", 1_200)
    decide(Approval.objects.get().pk, person, NOW, granted=True, more=Amount(500))
    assert ask(session, "c1", 1_200)["can_proceed"]
    assert ask(session, "c2", 500)["can_proceed"]
    assert ask(session, "c3", 1)["require_approval"]


def test_a_no_holds_for_the_call_it_was_said_of(person: audit.Actor):
    budget(mode="approval")
    session = running()
    ask(session, "c1", 1_200)
    decide(Approval.objects.get().pk, person, NOW, granted=False)
    refused = ask(session, "c1", 1_200)
    assert (refused["can_proceed"], refused["require_approval"]) == (False, False)
    assert "a person refused" in refused["reason"]
    assert ask(session, "c2", 1_200)["require_approval"]
    with pytest.raises(CannotDecide):
        decide(Approval.objects.get(call="c1").pk, person, NOW, granted=True)


def test_who_waits_in_vain_is_let_go_by_a_higher_limit():
    budget(mode="approval")
    session = running()
    ask(session, "c1", 1_200)
    budget("session", 2_000, mode="approval")
    assert ask(session, "c1", 1_200)["can_proceed"]
    assert not Approval.objects.exists()


# Contexts


def test_a_context_is_not_handed_out_beyond_a_limit_but_to_who_reserved_it():
    session = running()
    assert admit(session, 500, 1, NOW).answer is None
    budget(limit=100 + spending.EXPECTED_OUTPUT, mode="hard")
    assert admit(session, 100, 1, NOW).answer is None, "exactly the limit is within it"
    refused = admit(session, 101, 1, NOW).answer
    assert refused is not None
    assert not refused["can_proceed"]
    assert (refused["estimate"]["tokens"], refused["estimated"]) == (1_101, True)
    ask(session, "c1", 1_000)
    assert admit(session, 101, 1, NOW).answer is None


def test_a_context_that_needs_a_yes_waits_under_its_step(person: audit.Actor):
    budget(mode="approval")
    session = running()
    refused = admit(session, 2_000, 3, NOW).answer
    assert refused is not None
    assert refused["approval"] == str(Approval.objects.get(call="step-3").pk)
    decide(Approval.objects.get().pk, person, NOW, granted=True)
    assert admit(session, 2_000, 3, NOW).answer is None
    assert approvals.approvals_of([local_team()]).count() == 1


# Making them


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


# At once


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
