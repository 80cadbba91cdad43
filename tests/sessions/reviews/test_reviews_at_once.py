"""Reviewers at work at the same time, on both databases."""

from __future__ import annotations

import pytest

from sessions.actions.accounts import audit
from sessions.actions.reviews import reviews
from sessions.actions.reviews.reservations import CannotReview, take
from sessions.models import Review, ReviewItem
from tests.sessions.reviewing import compaction, item, judgement, member, team
from tests.sessions.reviews.queued import reserve_next, run_out
from tests.sessions.together import at_once

pytestmark = [pytest.mark.django_db, pytest.mark.store]


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
