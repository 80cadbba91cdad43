"""Reservations of review items: each is judged by at most as many people as it needs."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, F, Q
from django.utils import timezone

from sessions.actions.reviews.review_rules import rules_of
from sessions.models import Review, ReviewItem, Revision, Team
from sessions.models.record.demo_data import demo_data
from sessions.models.reviews.reviews import ReviewItemQuerySet

TAKEN = "Someone else is reviewing this compaction. Try again later, or choose another one."


class CannotReview(ValueError):
    """Why a user cannot review an item now, as a sentence; `pointer` names an invalid field."""

    def __init__(self, sentence: str, pointer: str = "") -> None:
        super().__init__(sentence)
        self.pointer = pointer


def locked(item: ReviewItem) -> ReviewItem:
    """Reload the item with its row locked.

    SQLite ignores the lock; it has only one writer at a time anyway.
    """
    rows = ReviewItem.objects.select_related("team", "revision__run__session")
    return rows.select_for_update(of=("self",)).get(pk=item.pk)


def _held(now: datetime) -> Q:
    """Reviews that occupy one of an item's places: submitted, or with a valid reservation."""
    return Q(submitted__isnull=False) | Q(reserved_until__gt=now)


def room_for(item: ReviewItem, user: User) -> bool:
    """Whether an item has room for this reviewer; their own place does not count."""
    others = item.reviews.filter(_held(timezone.now())).exclude(reviewer=user).count()
    return item.finished is None and others < item.wanted


def items_of(team: Team, *, demo: bool = False) -> ReviewItemQuerySet:
    """The items of a team that count, with `demo` also those of the demo beside real sessions."""
    rows = ReviewItem.objects.for_team(team)
    known = None if demo else demo_data(team)
    if known is None or known.alone:
        return rows
    # The few of the demo: to ask the session of each item would take a join over all.
    theirs = Revision.objects.filter(run__session__team=team, run__session__demo=True)
    return rows.exclude(revision__in=theirs.values("pk"))


def open_to(team: Team, user: User) -> ReviewItemQuerySet:
    """Items the user could review now, oldest first; those of the demo only while it is alone."""
    now = timezone.now()
    mine = Review.objects.filter(reviewer=user).exclude(submitted=None, skipped=None)
    # From the reviews, which are few: grouped by a join, all items would be read for the first.
    theirs = Review.objects.filter(_held(now), item__team=team, item__finished=None)
    held = theirs.exclude(reviewer=user).values("item").annotate(held=Count("pk"))
    full = held.filter(held__gte=F("item__wanted"))
    rows = items_of(team).filter(finished=None)
    rows = rows.exclude(pk__in=mine.values("item")).exclude(pk__in=full.values("item"))
    return rows.order_by("created", "pk")


def offered(team: Team, user: User) -> ReviewItem | None:
    """The item the user has reserved, else the first that is open to them; None without any.

    It is reserved by the page that shows it (`take`), not by being looked at.
    """
    mine = Review.objects.filter(
        item__team=team, reviewer=user, submitted=None, reserved_until__gt=timezone.now()
    )
    held = mine.select_related("item").order_by("item__created", "pk").first()
    return held.item if held is not None else open_to(team, user).first()


def take(item: ReviewItem, user: User) -> Review:
    """Reserve an item for the user, or extend the reservation. Raises CannotReview if it is
    taken."""
    with transaction.atomic():
        item = locked(item)
        if item.finished is not None:
            raise CannotReview("This compaction has all the reviews it needs. Choose another one.")
        review = Review.objects.filter(item=item, reviewer=user).first()
        if review is not None and review.submitted is not None:
            raise CannotReview("You have already reviewed this compaction.")
        if not room_for(item, user):
            raise CannotReview(TAKEN)
        review = review or Review(item=item, reviewer=user)
        review.reserved_until = timezone.now() + timedelta(minutes=rules_of(item.team).minutes)
        review.skipped = None
        review.save()
        return review


renew = take


def skip(item: ReviewItem, user: User) -> None:
    """Leave an item to others; it is not offered to this user again."""
    with transaction.atomic():
        item = locked(item)
        if not item.reviews.filter(reviewer=user, submitted__isnull=False).exists():
            Review.objects.update_or_create(
                item=item,
                reviewer=user,
                defaults={"reserved_until": None, "skipped": timezone.now()},
            )


def release(item: ReviewItem, user: User, until: datetime) -> None:
    """Release an item that the user reserved until `until`; it may be offered to them again.

    A reservation extended since is kept: on reload, a page's release may arrive after the new
    reservation.
    """
    item.reviews.filter(reviewer=user, submitted=None, reserved_until=until).update(
        reserved_until=None
    )


def unskip(team: Team, user: User) -> int:
    """Offer the user's skipped items again; return how many."""
    rows = Review.objects.filter(item__team=team, item__finished=None, reviewer=user)
    return rows.filter(submitted=None, skipped__isnull=False).update(skipped=None)
