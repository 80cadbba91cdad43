"""The rules that pick compactions for review."""

from __future__ import annotations

from typing import Any

import pytest

from sessions.actions.lab.simulate import simulate_session
from sessions.actions.reviews import review_rules, reviews
from sessions.actions.reviews.reservations import CannotReview
from sessions.actions.reviews.review_rules import InvalidRules, Rules, drawn, picked
from sessions.models import AuditEntry, FactLedger, ReviewItem, ReviewRules, Team
from tests.sessions.reviewing import compaction, item, member, team
from tests.sessions.reviews.queued import rules

pytestmark = [pytest.mark.django_db, pytest.mark.store]


Reason = ReviewItem.Reason


NO_RULE = {"share": 0, "low_score": 0, "after_effects": False, "double": 0}


@pytest.mark.parametrize(
    ("given", "score", "after", "reason"),
    [
        ({}, 0, 9, None),
        ({"share": 100}, 0, 9, Reason.SHARE),
        ({"low_score": 60}, 599, 0, Reason.LOW_SCORE),
        ({"low_score": 60}, 600, 0, None),
        ({"low_score": 100}, None, 0, None),
        ({"low_score": 60, "after_effects": True}, 599, 1, Reason.LOW_SCORE),
        ({"after_effects": True}, 1000, 1, Reason.AFTER_EFFECTS),
        ({"after_effects": True}, 1000, 0, None),
    ],
)
def test_the_first_rule_that_fits_picks(given: dict[str, Any], score, after, reason):
    ledger = FactLedger(score=score, after_effects=after)
    assert picked(Rules(**{**NO_RULE, **given}), 7, ledger) == reason


def test_a_share_is_drawn_by_the_revision_alone():
    among = [number for number in range(2_000) if drawn("share", number, 10)]
    assert 150 < len(among) < 250
    assert among == [number for number in range(2_000) if drawn("share", number, 10)]
    more = {number for number in range(2_000) if drawn("share", number, 20)}
    assert set(among) < more, "who raises the share adds to the sample"
    assert len(more & {n for n in range(2_000) if drawn("double", n, 50)}) not in (0, len(more))
    assert not any(drawn("share", number, 0) for number in range(200))
    assert all(drawn("share", number, 100) for number in range(200))


def test_sampling_again_changes_nothing(ours: Team):
    revision = compaction(ours, score=100)
    rules(ours, **{**NO_RULE, "low_score": 60})
    first = reviews.sample(revision, revision.fact_ledger)
    assert first is not None and first.reason == Reason.LOW_SCORE and first.team == ours
    rules(ours, **{**NO_RULE, "share": 100})
    again = reviews.sample(revision, revision.fact_ledger)
    assert (again.pk, again.reason) == (first.pk, Reason.LOW_SCORE)
    assert reviews.add(revision, None).pk == first.pk
    assert ReviewItem.objects.count() == 1


def test_what_is_missed_later_comes_later(ours: Team):
    revision = compaction(ours)
    rules(ours, **{**NO_RULE, "after_effects": True})
    assert reviews.sample(revision, revision.fact_ledger) is None
    revision.fact_ledger.after_effects = 2
    found = reviews.sample(revision, revision.fact_ledger)
    assert found is not None and found.reason == Reason.AFTER_EFFECTS


@pytest.mark.parametrize(("double", "people", "wanted"), [(0, 2, 1), (100, 2, 2), (100, 1, 1)])
def test_two_judge_a_share_where_there_are_two(ours: Team, double: int, people: int, wanted: int):
    for number in range(people):
        member(ours, f"p{number}")
    member(ours, "looks on", "viewer")
    rules(ours, **{**NO_RULE, "share": 100, "double": double})
    revision = compaction(ours)
    found = reviews.sample(revision, revision.fact_ledger)
    assert found is not None and found.wanted == wanted


def test_what_was_only_simulated_is_not_sampled(ours: Team):
    rules(ours, **{**NO_RULE, "share": 100})
    revision = compaction(ours)
    run = simulate_session(revision.run.session, "offload-first")
    revision.run = run
    assert reviews.sample(revision, revision.fact_ledger) is None


def test_where_there_is_no_summary_there_is_nothing_to_judge(ours: Team):
    rules(ours, **{**NO_RULE, "share": 100})
    revision = compaction(ours)
    revision.edits.update(summary=None)
    assert reviews.sample(revision, revision.fact_ledger) is None
    with pytest.raises(CannotReview):
        reviews.add(revision, None)
    assert reviews.more(ours, member(ours)) == 0


def test_more_by_hand_are_the_newest_without_a_reviewer(ours: Team):
    made = [compaction(ours, f"s{number}") for number in range(4)]
    item(team("theirs"), "foreign")
    person = member(ours)
    reviews.add(made[3], person)
    assert reviews.more(ours, person, 2) == 2
    found = ReviewItem.objects.for_team(ours)
    assert {one.revision for one in found} == set(made[1:])
    assert {one.added_by for one in found} == {person}
    assert [reviews.more(ours, person, 2), reviews.more(ours, person, 2)] == [1, 0]


@pytest.mark.parametrize(
    ("given", "fields"),
    [({"share": 101}, {"share"}), ({"double": -1, "low_score": 200}, {"double", "low_score"}),
     ({"minutes": 0}, {"minutes"}), ({"minutes": 241}, {"minutes"})],
)  # fmt: skip
def test_rules_outside_their_bounds_are_refused_by_name(given: dict[str, int], fields: set[str]):
    with pytest.raises(InvalidRules) as refused:
        Rules(**given)
    assert set(refused.value.faults) == fields


def test_rules_are_kept_and_their_change_is_noted(ours: Team):
    assert review_rules.rules_of(ours) == Rules()
    rules(ours, share=25)
    rules(ours, share=25)
    assert review_rules.rules_of(ours) == Rules(share=25)
    assert ReviewRules.objects.count() == 1
    (entry,) = AuditEntry.objects.filter(action="review_rules.changed")
    assert entry.detail == {"changed": {"share": [10, 25]}}


def test_rules_are_tried_on_what_there_is(ours: Team):
    for number in range(6):
        compaction(ours, f"s{number}", score=100 * number, after=number % 2)
    compaction(team("theirs"), "foreign", score=0)
    found = review_rules.would_pick(ours, Rules(**{**NO_RULE, "low_score": 20, "double": 100}))
    assert (found.looked, found.together, found.double) == (6, 2, 2)
    found = review_rules.would_pick(
        ours, Rules(**{**NO_RULE, "low_score": 20, "after_effects": True})
    )
    assert found.reasons == {Reason.LOW_SCORE: 2, Reason.AFTER_EFFECTS: 2}
    assert review_rules.would_pick(ours, Rules(**NO_RULE), last=3).looked == 3
