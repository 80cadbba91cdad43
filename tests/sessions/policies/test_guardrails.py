"""The guardrail: limits, figures, and pausing exactly once."""

from __future__ import annotations

from typing import Any

import pytest

from sessions.actions.accounts.teams import local_team
from sessions.actions.live.live_sessions import put_session, session_fields
from sessions.actions.policies import guardrails, rollouts
from sessions.actions.policies.bounds import BOUNDS, InvalidBound, defaults, guardrail_of
from sessions.actions.policies.guardrail_findings import Figure
from sessions.actions.policies.guardrails import check, findings_of, judged
from sessions.models import (
    Assessment,
    AuditEntry,
    FactLedger,
    Review,
    ReviewItem,
    Rollout,
    Run,
    Session,
)
from tests.sessions.policies.rolling_out import ids, person, running, version
from tests.sessions.together import at_once

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def with_bounds(**given: Any) -> Rollout:
    """A rollout that is running with these bounds alone."""
    off = dict.fromkeys(BOUNDS)
    made = rollouts.propose(version(), "", guardrail_of(off | given), person("editor"))
    return rollouts.accept(made, person("owner"))


def side(rollout: Rollout, *, new: bool, count: int, **columns: Any) -> list[Session]:
    """That many sessions that began on one side, with these columns."""
    known = Session.objects.count()
    names = ids(rollout, inside=new, count=known + count)[known:]
    made = [put_session(local_team(), name, session_fields({}))[0] for name in names]
    Session.objects.filter(pk__in=[one.pk for one in made]).update(**columns)
    return made


def state(rollout: Rollout, name: str) -> str:
    return next(one.state for one in findings_of(rollout).bounds if one.name == name)


# The bounds


def test_what_is_left_out_takes_the_default():
    assert guardrail_of({}) == defaults()
    assert guardrail_of({"cost": None, "recall": 90}) == defaults() | {"cost": None, "recall": 90}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"cost": -1}, "cost"),
        ({"cost": 1001}, "cost"),
        ({"recall": 101}, "recall"),
        ({"recall": "80"}, "recall"),
        ({"recall": 0.8}, "recall"),
        ({"reviews": True}, "reviews"),
        ({"sessions": 0}, "sessions"),
        ({"sessions": None}, "sessions"),
        ({"price": 1}, "price"),
    ],
)
def test_what_cannot_be_a_bound_is_named(given: dict[str, Any], field: str):
    with pytest.raises(InvalidBound) as refused:
        guardrail_of(given)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("name", "percent", "new", "other", "expected"),
    [
        ("cost", 20, 120.0, 100.0, "ok"),
        ("cost", 20, 120.1, 100.0, "broken"),
        ("cost", 0, 100.0, 100.0, "ok"),
        ("cost", None, 900.0, 100.0, "off"),
        ("recall", 75, 0.75, None, "ok"),
        ("recall", 75, 0.7499, 0.1, "broken"),
        ("ledger", 60, 0.6, None, "ok"),
        ("ledger", 60, 0.59, None, "broken"),
        ("reviews", 20, 0.2, None, "ok"),
        ("reviews", 20, 0.21, None, "broken"),
        ("outcomes", 10, 0.3, 0.2, "ok"),
        ("outcomes", 10, 0.31, 0.2, "broken"),
        ("outcomes", 10, 0.0, 0.9, "ok"),
        ("outcomes", 10, 0.9, None, "few"),
        ("recall", 75, None, 0.9, "few"),
    ],
)
def test_each_bound_holds_up_to_its_number(
    name: str, percent: int | None, new: float | None, other: float | None, expected: str
):
    figures = [Figure(value, 5 if value is not None else 0) for value in (new, other)]
    assert judged(BOUNDS[name], percent, *figures, 5) == expected


@pytest.mark.parametrize(
    ("name", "n", "n_other", "expected"),
    [
        ("cost", 4, 9, "few"),
        ("cost", 9, 4, "few"),
        ("cost", 5, 5, "ok"),
        ("recall", 4, 9, "few"),
        ("recall", 5, 0, "ok"),
    ],
)
def test_the_first_few_sessions_do_not_decide(name: str, n: int, n_other: int, expected: str):
    assert judged(BOUNDS[name], 80, Figure(0.9, n), Figure(0.9, n_other), 5) == expected


# Figures


def test_cost_is_of_all_calls_that_reported_and_only_of_those():
    rollout = with_bounds(cost=20, sessions=2)
    side(rollout, new=True, count=1, cost_microusd=100, usage_calls=1, step_count=1)
    side(rollout, new=True, count=1, cost_microusd=500, usage_calls=9, step_count=20)
    side(rollout, new=False, count=2, cost_microusd=500, usage_calls=10, step_count=10)
    finding = findings_of(rollout).bounds[0]
    assert (finding.value, finding.other, finding.state) == (60.0, 50.0, "ok")
    side(rollout, new=True, count=1, cost_microusd=None, usage_calls=0, step_count=50)
    side(rollout, new=True, count=1, cost_microusd=1, usage_calls=1, cost_at_least=True)
    finding = findings_of(rollout).bounds[0]
    assert (finding.value, finding.n) == (60.0, 2), "what was not reported is not zero"
    side(rollout, new=True, count=1, cost_microusd=5000, usage_calls=1)
    assert state(rollout, "cost") == "broken"


def test_what_both_sides_come_to():
    rollout = with_bounds()
    side(rollout, new=True, count=2, step_count=7, error_count=1, outcome="failed")
    side(rollout, new=False, count=1, step_count=3, outcome="succeeded")
    side(rollout, new=False, count=1)
    put_session(local_team(), "asked", session_fields({"policy": "careful"}))
    found = findings_of(rollout)
    assert (found.new.sessions, found.new.steps, found.new.errors) == (2, 14, 2)
    assert (found.new.ended, found.new.failed, found.new.paid) == (2, 2, None)
    assert (found.other.sessions, found.other.steps, found.other.ended) == (2, 3, 1)
    assert {one.state for one in found.bounds} == {"off"}


def test_recall_ledgers_and_reviews_are_of_the_sessions_of_their_side():
    rollout = with_bounds(recall=75, ledger=60, reviews=20, sessions=1)
    [new], [other] = side(rollout, new=True, count=1), side(rollout, new=False, count=1)
    for session, in_context, score, verdict in ((new, 6, 590, "fail"), (other, 9, 900, "pass")):
        Assessment.objects.create(session=session, needs=10, in_context=in_context)
        run = Run.objects.create(session=session, origin=Run.Origin.MANAGED)
        revision = run.revisions.create(number=1, step=1)
        FactLedger.objects.create(revision=revision, score=score)
        FactLedger.objects.create(revision=run.revisions.create(number=2, step=2), score=None)
        item = ReviewItem.objects.create(team=local_team(), revision=revision, reason="hand")
        reviewer = person("reviewer").user
        Review.objects.create(
            item=item, reviewer=reviewer, verdict=verdict, submitted="2026-01-01T00:00Z"
        )
        Review.objects.create(item=item, reviewer=person("owner").user, verdict="")
    waiting = {one.name: one.value for one in findings_of(rollout).bounds}
    assert waiting["reviews"] is None, "who is still to judge learns nothing of the other review"
    ReviewItem.objects.update(finished="2026-01-01T00:00Z")
    found = {one.name: one for one in findings_of(rollout).bounds}
    answer = {name: (one.value, one.other, one.n, one.state) for name, one in found.items()}
    assert answer["recall"] == (0.6, 0.9, 1, "broken")
    assert answer["ledger"] == (0.59, 0.9, 1, "broken")
    assert answer["reviews"] == (1.0, 0.0, 1, "broken")
    assert answer["outcomes"] == (None, None, 0, "off")
    # Without a policy, only sessions that lost a text have recall: no comparison.
    Session.objects.filter(pk=other.pk).update(policy_version=None)
    found = {one.name: one for one in findings_of(rollout).bounds}
    assert (found["recall"].value, found["recall"].other) == (0.6, None)


def test_four_queries_however_many_sessions(django_assert_num_queries: Any):
    rollout = with_bounds(cost=20)
    side(rollout, new=True, count=8, outcome="failed")
    with django_assert_num_queries(4):
        findings_of(rollout)


# Actions


def failing(rollout: Rollout, count: int = 5) -> None:
    side(rollout, new=False, count=count, outcome="succeeded")
    side(rollout, new=True, count=count, outcome="failed")


def test_a_broken_bound_pauses_with_its_reason_once():
    rollout = with_bounds(outcomes=10)
    failing(rollout)
    check(rollout)
    check(rollout)  # by someone who thinks it is still running
    stored = Rollout.objects.get()
    reason = "Failed sessions: 100 points above, at most 10 allowed"
    assert (stored.state, stored.share, stored.reason) == ("paused", 10, reason)
    assert stored.found["bounds"]["outcomes"]["state"] == "broken"
    entry = AuditEntry.objects.get(action="rollout.paused")
    assert (entry.via, entry.actor, entry.detail["reason"]) == ("rule", "guardrail", reason)


def test_nothing_is_paused_while_sessions_are_few_or_after_the_end():
    rollout = with_bounds(outcomes=10)
    failing(rollout, 4)
    assert check(rollout).broken == ()
    assert Rollout.objects.get().state == "running"
    side(rollout, new=False, count=1, outcome="succeeded")
    side(rollout, new=True, count=1, outcome="failed")
    for share in (50, 100):
        rollout = rollouts.widen(rollout, share, person("owner"))
    assert check(rollout).broken
    guardrails.check_team(local_team())
    assert Rollout.objects.get().state == "complete"


def test_who_resumes_it_takes_the_broken_bound_away():
    rollout = with_bounds(outcomes=10, reviews=20)
    failing(rollout)
    guardrails.check_team(local_team())
    resumed = rollouts.resume(Rollout.objects.get(), person("owner"))
    assert (resumed.guardrail["outcomes"], resumed.guardrail["reviews"]) == (None, 20)
    assert AuditEntry.objects.get(action="rollout.resumed").detail["without"] == ["outcomes"]
    guardrails.check_team(local_team())
    assert Rollout.objects.get().state == "running"


def test_an_outcome_that_an_agent_reports_is_looked_at_at_once():
    rollout = with_bounds(outcomes=10, sessions=1)
    [good] = side(rollout, new=False, count=1)
    [bad] = side(rollout, new=True, count=1)
    for session, outcome in ((good, "succeeded"), (bad, "failed")):
        assert Rollout.objects.get().state == "running"
        put_session(local_team(), session.external_id, session_fields({"outcome": outcome}))
    assert Rollout.objects.get().state == "paused"


def test_what_is_found_again_moves_no_open_page():
    rollout = with_bounds(outcomes=10)
    side(rollout, new=True, count=1, outcome="failed")
    check(rollout)
    before = Rollout.objects.get()
    check(before)
    after = Rollout.objects.get()
    assert (after.changed, after.found["bounds"]) == (before.changed, before.found["bounds"])
    side(after, new=True, count=1, outcome="failed")
    check(after)
    assert Rollout.objects.get().changed > before.changed


@pytest.mark.django_db(transaction=True)
def test_of_two_checks_at_once_one_pauses():
    rollout = with_bounds(outcomes=10)
    failing(rollout)
    came = at_once(lambda: check(rollout), lambda: check(rollout))
    assert all(one.broken for one in came)
    assert Rollout.objects.get().state == "paused"
    assert AuditEntry.objects.filter(action="rollout.paused").count() == 1


def test_a_team_without_a_rollout_is_not_looked_at(django_assert_num_queries: Any):
    team = local_team()
    with django_assert_num_queries(1):
        guardrails.check_team(team)
    assert running().found == {}
