"""The review queue: selection, assignment, and results, on both databases."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from sessions.actions.accounts import audit, members
from sessions.actions.lab.simulate import simulate_session
from sessions.actions.reviews import reservations, review_rules, reviews
from sessions.actions.reviews.reservations import (
    CannotReview,
    release,
    reserve_next,
    skip,
    take,
    unskip,
)
from sessions.actions.reviews.review_rules import InvalidRules, Rules, drawn, picked
from sessions.models import AuditEntry, FactLedger, Review, ReviewItem, ReviewRules, Team
from tests.sessions.reviewing import compaction, item, judge, judgement, member, team
from tests.sessions.together import at_once

pytestmark = [pytest.mark.django_db, pytest.mark.store]

Reason = ReviewItem.Reason


@pytest.fixture
def ours() -> Team:
    return team()


def rules(of: Team, **values: Any) -> None:
    review_rules.save_rules(of, Rules(**values), audit.COMMAND)


NOBODY = {"share": 0, "low_score": 0, "after_effects": False, "double": 0}


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
    assert picked(Rules(**{**NOBODY, **given}), 7, ledger) == reason


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
    rules(ours, **{**NOBODY, "low_score": 60})
    first = reviews.sample(revision, revision.fact_ledger)
    assert first is not None and first.reason == Reason.LOW_SCORE and first.team == ours
    rules(ours, **{**NOBODY, "share": 100})
    again = reviews.sample(revision, revision.fact_ledger)
    assert (again.pk, again.reason) == (first.pk, Reason.LOW_SCORE)
    assert reviews.add(revision, None).pk == first.pk
    assert ReviewItem.objects.count() == 1


def test_what_is_missed_later_comes_later(ours: Team):
    revision = compaction(ours)
    rules(ours, **{**NOBODY, "after_effects": True})
    assert reviews.sample(revision, revision.fact_ledger) is None
    revision.fact_ledger.after_effects = 2
    found = reviews.sample(revision, revision.fact_ledger)
    assert found is not None and found.reason == Reason.AFTER_EFFECTS


@pytest.mark.parametrize(("double", "people", "wanted"), [(0, 2, 1), (100, 2, 2), (100, 1, 1)])
def test_two_judge_a_share_where_there_are_two(ours: Team, double: int, people: int, wanted: int):
    for number in range(people):
        member(ours, f"p{number}")
    member(ours, "looks on", "viewer")
    rules(ours, **{**NOBODY, "share": 100, "double": double})
    revision = compaction(ours)
    found = reviews.sample(revision, revision.fact_ledger)
    assert found is not None and found.wanted == wanted


def test_what_was_only_simulated_is_not_sampled(ours: Team):
    rules(ours, **{**NOBODY, "share": 100})
    revision = compaction(ours)
    run = simulate_session(revision.run.session, "offload-first")
    revision.run = run
    assert reviews.sample(revision, revision.fact_ledger) is None


def test_where_there_is_no_summary_there_is_nothing_to_judge(ours: Team):
    rules(ours, **{**NOBODY, "share": 100})
    revision = compaction(ours)
    revision.edits.update(summary=None)
    assert reviews.sample(revision, revision.fact_ledger) is None
    with pytest.raises(CannotReview):
        reviews.add(revision, None)
    assert reviews.more(ours, member(ours)) == 0


def test_more_by_hand_are_the_newest_that_nobody_looks_at(ours: Team):
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
    found = review_rules.would_pick(ours, Rules(**{**NOBODY, "low_score": 20, "double": 100}))
    assert (found.looked, found.together, found.double) == (6, 2, 2)
    found = review_rules.would_pick(
        ours, Rules(**{**NOBODY, "low_score": 20, "after_effects": True})
    )
    assert found.reasons == {Reason.LOW_SCORE: 2, Reason.AFTER_EFFECTS: 2}
    assert review_rules.would_pick(ours, Rules(**NOBODY), last=3).looked == 3


def test_the_oldest_comes_first_and_nobody_gets_what_another_has(ours: Team):
    ann, bob = member(ours), member(ours, "bob")
    first, second = item(ours, "1"), item(ours, "2")
    item(team("theirs"), "foreign")
    assert reserve_next(ours, ann) == first
    assert reserve_next(ours, ann) == first, "what one has comes before anything new"
    assert reserve_next(ours, bob) == second
    assert reserve_next(ours, member(ours, "cat")) is None
    with pytest.raises(CannotReview, match="Someone else"):
        take(second, ann)


def test_ones_own_reservation_comes_before_an_older_open_item(ours: Team):
    ann = member(ours)
    first, second = item(ours, "1"), item(ours, "2")
    take(second, ann)
    assert reserve_next(ours, ann) == second
    assert not first.reviews.exists(), "nothing else is reserved"


def test_two_may_have_what_two_judge(ours: Team):
    ann, bob, cat = member(ours), member(ours, "bob"), member(ours, "cat")
    one = item(ours, wanted=2)
    assert [reserve_next(ours, who) for who in (ann, bob, cat)] == [one, one, None]
    judge(one, ann)
    assert reserve_next(ours, ann) is None, "one has judged it"
    assert reserve_next(ours, cat) is None
    judge(one, bob)
    one.refresh_from_db()
    assert one.finished is not None


def test_what_two_were_to_judge_is_finished_when_one_of_them_goes(ours: Team):
    ann, bob = member(ours), member(ours, "bob")
    member(ours, "olga", role="viewer")
    judged, open_yet = item(ours, "1", wanted=2), item(ours, "2", wanted=2)
    judge(judged, ann)
    members.remove(bob.memberships.get(), audit.COMMAND)
    judged.refresh_from_db()
    open_yet.refresh_from_db()
    assert (judged.wanted, judged.finished is not None) == (1, True)
    assert (open_yet.wanted, open_yet.finished) == (1, None)


def test_a_review_of_who_has_left_counts_on(ours: Team):
    ann, bob = member(ours), member(ours, "bob")
    one = item(ours, wanted=2)
    judge(one, ann)
    members.change_role(ann.memberships.get(), "viewer", audit.COMMAND)
    one.refresh_from_db()
    assert (one.wanted, one.finished) == (2, None), "Bob can still judge it"
    assert reserve_next(ours, bob) == one


def run_out(one: ReviewItem) -> None:
    one.reviews.update(reserved_until=timezone.now() - timedelta(seconds=1))


def test_a_reservation_runs_out_and_is_held_longer(ours: Team):
    ann, bob = member(ours), member(ours, "bob")
    rules(ours, minutes=5)
    one = item(ours)
    before = timezone.now()
    until = take(one, ann).reserved_until
    assert until is not None and 290 < (until - before).total_seconds() < 330
    longer = reservations.renew(one, ann).reserved_until
    assert longer is not None and longer > until
    run_out(one)
    assert reserve_next(ours, bob) == one
    with pytest.raises(CannotReview):
        reservations.renew(one, ann)


def test_leaving_gives_up_only_what_the_page_held(ours: Team):
    ann, bob = member(ours), member(ours, "bob")
    one = item(ours)
    old = take(one, ann).reserved_until
    new = take(one, ann).reserved_until
    assert old is not None and new is not None
    release(one, ann, old)
    assert reserve_next(ours, bob) is None, "the page was loaded anew, and holds it"
    release(one, ann, new)
    assert reserve_next(ours, bob) == one


def test_what_is_skipped_goes_to_others_and_comes_back_when_asked_for(ours: Team):
    ann, bob = member(ours), member(ours, "bob")
    one = item(ours)
    take(one, ann)
    skip(one, ann)
    assert reserve_next(ours, ann) is None
    assert unskip(ours, ann) == 1
    assert reserve_next(ours, ann) == one
    skip(one, ann)
    assert reserve_next(ours, bob) == one
    judge(one, bob)
    assert unskip(ours, ann) == 0, "others have judged it"


def test_skipping_takes_no_review_away(ours: Team):
    ann = member(ours)
    one = item(ours)
    judge(one, ann)
    skip(one, ann)
    assert Review.objects.get().verdict == "pass"


def test_a_review_that_comes_late_is_taken_while_there_is_room(ours: Team):
    ann, bob = member(ours), member(ours, "bob")
    one = item(ours)
    take(one, ann)
    run_out(one)
    reviews.submit(one, ann, judgement(), audit.person(ann))
    one.refresh_from_db()
    assert one.finished is not None
    other = item(ours, "2")
    take(other, ann)
    run_out(other)
    judge(other, bob)
    with pytest.raises(CannotReview, match="expired"):
        reviews.submit(other, ann, judgement(), audit.person(ann))
    assert [review.reviewer for review in other.reviews.exclude(submitted=None)] == [bob]


def test_ones_own_can_be_changed_until_one_may_read_anothers(ours: Team):
    ann, bob = member(ours), member(ours, "bob")
    single, double = item(ours, "1"), item(ours, "2", wanted=2)
    judge(single, ann)
    judge(single, ann, "fail")
    assert Review.objects.get(item=single).verdict == "fail"
    judge(double, ann)
    judge(double, ann, "fix")
    judge(double, bob)
    with pytest.raises(CannotReview, match="The other review"):
        judge(double, ann, "fail")
    assert Review.objects.get(item=double, reviewer=ann).verdict == "fix"
    assert Review.objects.filter(item=double).count() == 2


def test_the_audit_log_tells_nobody_what_was_found(ours: Team):
    ann = member(ours)
    one = item(ours, wanted=2)
    judge(one, ann, "fail", note="terrible", marks={"a": "lost"})
    (entry,) = AuditEntry.objects.filter(action="review.submitted")
    assert (entry.actor, entry.team) == ("ann", ours)
    assert entry.named == "r1 at S3 of s1"
    assert entry.detail == {"item": str(one.pk), "again": False}


BROKEN: list[tuple[Callable[[], reviews.Judgement], str]] = [
    (lambda: judgement(goal=0), "/goal"),
    (lambda: judgement(goal=6), "/goal"),
    (lambda: judgement(constraints="3"), "/constraints"),
    (lambda: judgement(state=True), "/state"),
    (lambda: judgement(next=None), "/next"),
    (lambda: judgement(invention=1), "/invention"),
    (lambda: judgement("good"), "/verdict"),
    (lambda: judgement(note="x" * 2001), "/note"),
    (lambda: judgement(marks={"a": "gone"}), "/marks"),
    (lambda: judgement(marks={"x" * 401: "lost"}), "/marks"),
    (lambda: judgement(marks={str(n): "lost" for n in range(2001)}), "/marks"),
]


@pytest.mark.parametrize(("given", "pointer"), BROKEN)
def test_what_is_not_whole_is_refused_by_field(
    ours: Team, given: Callable[[], reviews.Judgement], pointer: str
):
    ann = member(ours)
    one = item(ours)
    take(one, ann)
    with pytest.raises(CannotReview) as refused:
        reviews.submit(one, ann, given(), audit.person(ann))
    assert refused.value.pointer == pointer
    assert Review.objects.get().submitted is None


@pytest.mark.django_db(transaction=True)
def test_two_who_ask_at_once_never_get_the_same():
    ours = team()
    people = [member(ours, f"p{number}") for number in range(4)]
    waits = {item(ours, name).pk for name in "123"}
    came = at_once(CannotReview, *(lambda who=who: reserve_next(ours, who) for who in people))
    got = [one.pk for one in came if one is not None]
    assert len(got) == len(set(got)) == 3 and set(got) == waits


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("wanted", [1, 2])
def test_of_those_who_take_one_item_at_once_as_many_get_it_as_it_wants(wanted: int):
    ours = team()
    people = [member(ours, f"p{number}") for number in range(4)]
    one = item(ours, wanted=wanted)
    came = at_once(CannotReview, *(lambda who=who: take(one, who) for who in people))
    assert sum(isinstance(each, Review) for each in came) == wanted


@pytest.mark.django_db(transaction=True)
def test_of_two_late_reviews_at_once_one_is_kept():
    ours = team()
    ann, bob = member(ours), member(ours, "bob")
    one = item(ours)
    for who in (ann, bob):
        take(one, who)
        run_out(one)
    came = at_once(
        CannotReview,
        *(
            lambda who=who: reviews.submit(one, who, judgement(), audit.person(who))
            for who in (ann, bob)
        ),
    )
    assert sum(isinstance(each, Review) for each in came) == 1
    assert one.reviews.exclude(submitted=None).count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_last_of_two_at_once_finishes_it():
    ours = team()
    ann, bob = member(ours), member(ours, "bob")
    one = item(ours, wanted=2)
    for who in (ann, bob):
        take(one, who)
    at_once(
        CannotReview,
        *(
            lambda who=who: reviews.submit(one, who, judgement(), audit.person(who))
            for who in (ann, bob)
        ),
    )
    one.refresh_from_db()
    assert one.finished is not None


@pytest.mark.django_db(transaction=True)
def test_two_who_add_at_once_add_one():
    ours = team()
    ann, bob = member(ours), member(ours, "bob")
    revision = compaction(ours)
    came = at_once(
        CannotReview, *(lambda who=who: reviews.add(revision, who).pk for who in (ann, bob))
    )
    assert len(set(came)) == 1 and ReviewItem.objects.count() == 1
