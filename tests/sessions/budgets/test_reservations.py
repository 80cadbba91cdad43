"""Calls reserve what they may spend, and reports settle it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sessions.actions.budgets import spending
from sessions.actions.budgets.reserved import release, release_expired
from sessions.models import Approval, Session, Use
from tests.sessions.budgets.spending import NOW, ask, budget, report, running, use
from tests.sessions.live.appends import says, send, user

pytestmark = [pytest.mark.django_db, pytest.mark.store]


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


def test_what_is_never_settled_is_given_back():
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


def test_a_day_resets_at_midnight():
    budget("agent", 1_000, name="fixer", period="day", mode="hard")
    session = running(agent="fixer")
    assert ask(session, "c1", 900)["can_proceed"]
    assert not ask(session, "c2", 200)["can_proceed"]
    tomorrow = NOW + timedelta(days=1)
    assert ask(session, "c2", 200, tomorrow)["can_proceed"]
    # The session's own append is counted on the day on which the test runs.
    terms = dict(Use.objects.values_list("term", "reserved_tokens"))
    assert (terms["2026-11-22"], terms["2026-11-23"]) == (0, 200)
