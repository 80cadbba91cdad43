"""Who has which item of the queue: one item is judged by as many people as it wants, no more."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, F, Q
from django.utils import timezone

from sessions.actions.review_rules import rules_of
from sessions.models import Review, ReviewItem, Team
from sessions.models.reviews import ReviewItemQuerySet


class CannotReview(ValueError):
    """Why somebody may not judge an item now, as a sentence; `pointer` names a field of his."""

    def __init__(self, sentence: str, pointer: str = "") -> None:
        super().__init__(sentence)
        self.pointer = pointer


def locked(item: ReviewItem) -> ReviewItem:
    """The item as it is now, for this transaction alone.

    PostgreSQL locks its row; SQLite has one writer at a time anyway.
    """
    rows = ReviewItem.objects.select_related("team", "revision__run__session")
    return rows.select_for_update(of=("self",)).get(pk=item.pk)


def _held(now: datetime) -> Q:
    """Reviews that take one of an item's places: submitted, or reserved for a while yet."""
    return Q(submitted__isnull=False) | Q(reserved_until__gt=now)


def room_for(item: ReviewItem, user: User) -> bool:
    """Whether one more person may judge it; his own place does not count against him."""
    others = item.reviews.filter(_held(timezone.now())).exclude(reviewer=user).count()
    return item.finished is None and others < item.wanted


def open_to(team: Team, user: User) -> ReviewItemQuerySet:
    """Items that somebody could judge now, the oldest first."""
    now = timezone.now()
    mine = Review.objects.filter(reviewer=user).exclude(submitted=None, skipped=None)
    theirs = Q(reviews__submitted__isnull=False) | Q(reviews__reserved_until__gt=now)
    held = Count("reviews", filter=theirs & ~Q(reviews__reviewer=user))
    rows = ReviewItem.objects.for_team(team).filter(finished=None)
    rows = rows.exclude(pk__in=mine.values("item"))
    return rows.annotate(held=held).filter(held__lt=F("wanted")).order_by("created", "pk")


def reserve_next(team: Team, user: User) -> ReviewItem | None:
    """The item that somebody has reserved, else the oldest there is for him; None for none."""
    now = timezone.now()
    mine = Review.objects.filter(
        item__team=team, reviewer=user, submitted=None, reserved_until__gt=now
    )
    held = mine.select_related("item").order_by("item__created", "pk").first()
    if held is not None:
        return held.item
    for item in open_to(team, user):
        try:
            take(item, user)
        except CannotReview:  # somebody was quicker
            continue
        return item
    return None


def take(item: ReviewItem, user: User) -> Review:
    """Reserve an item for somebody, or hold it longer. Raises CannotReview where it is taken."""
    with transaction.atomic():
        item = locked(item)
        if item.finished is not None:
            raise CannotReview("This compaction has all the reviews that it needs.")
        review = Review.objects.filter(item=item, reviewer=user).first()
        if review is not None and review.submitted is not None:
            raise CannotReview("You have judged this compaction.")
        if not room_for(item, user):
            raise CannotReview("Somebody else is judging this compaction at the moment.")
        review = review or Review(item=item, reviewer=user)
        review.reserved_until = timezone.now() + timedelta(minutes=rules_of(item.team).minutes)
        review.skipped = None
        review.save()
        return review


renew = take


def skip(item: ReviewItem, user: User) -> None:
    """Leave an item to others: it does not come back to this person by itself."""
    with transaction.atomic():
        item = locked(item)
        if not item.reviews.filter(reviewer=user, submitted__isnull=False).exists():
            Review.objects.update_or_create(
                item=item,
                reviewer=user,
                defaults={"reserved_until": None, "skipped": timezone.now()},
            )


def release(item: ReviewItem, user: User, until: datetime) -> None:
    """Let others have an item that somebody had reserved until then; it may come back to him.

    One that was held longer since stays: a page that is loaded anew leaves after it came.
    """
    item.reviews.filter(reviewer=user, submitted=None, reserved_until=until).update(
        reserved_until=None
    )


def unskip(team: Team, user: User) -> int:
    """Let what somebody skipped, and nobody judged, come to him again; how many that were."""
    rows = Review.objects.filter(item__team=team, item__finished=None, reviewer=user)
    return rows.filter(submitted=None, skipped__isnull=False).update(skipped=None)
