"""Rules of the review queue, for tests."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from sessions.actions.accounts import audit
from sessions.actions.reviews import review_rules
from sessions.actions.reviews.ranks import rank_some
from sessions.actions.reviews.reservations import CannotReview, offered, take
from sessions.actions.reviews.review_rules import Rules
from sessions.models import ReviewItem, Team
from sessions.models.reviews.reviews import UNRANKED


def rules(of: Team, **values: Any) -> None:
    review_rules.save_rules(of, Rules(**values), audit.COMMAND)


def rank_again(of: Team) -> None:
    """Rank the items of a team by their ledgers as they are now."""
    ReviewItem.objects.update(rank=UNRANKED)
    while rank_some(of):
        pass


def run_out(one: ReviewItem) -> None:
    one.reviews.update(reserved_until=timezone.now() - timedelta(seconds=1))


def reserve_next(of: Team, user: User) -> ReviewItem | None:
    """What a reviewer's page does: shows what is offered, reserves it, or takes the next."""
    while (one := offered(of, user)) is not None:
        try:
            take(one, user)
        except CannotReview:  # lost a race
            continue
        return one
    return None
