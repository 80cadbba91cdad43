"""The review queue: assignment and results."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.utils import timezone

from sessions.actions.accounts import audit, members
from sessions.actions.reviews import reservations, reviews
from sessions.actions.reviews.reservations import (
    CannotReview,
    release,
    skip,
    take,
    unskip,
)
from sessions.models import AuditEntry, Review, Team
from tests.sessions.reviewing import item, judge, judgement, member, team
from tests.sessions.reviews.queued import reserve_next, rules, run_out

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def test_the_oldest_comes_first_and_reserved_items_are_skipped(ours: Team):
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
    assert reserve_next(ours, bob) is None, "the page was reloaded, and holds it"
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


def test_the_audit_log_does_not_say_what_was_found(ours: Team):
    ann = member(ours)
    one = item(ours, wanted=2)
    judge(one, ann, "fail", note="terrible", marks={"a": "lost"})
    (entry,) = AuditEntry.objects.filter(action="review.submitted")
    assert (entry.actor, entry.team) == ("ann", ours)
    assert entry.named == "r1 at step 3 of s1"
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
