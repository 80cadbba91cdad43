"""Reviews: which compactions people judge, who judges them, and what they found.

Of an item that is not finished a person sees his own review alone: `seen_by` is the only way to
reviews.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from sessions.actions import audit
from sessions.actions.agreement import Agreement, agreement, of_version
from sessions.actions.reservations import (
    CannotReview,
    locked,
    release,
    renew,
    reserve_next,
    room_for,
    skip,
    take,
    unskip,
)
from sessions.actions.review_rules import picked, reviewers, rules_of, wanted
from sessions.models import Edit, FactLedger, Review, ReviewItem, Revision, Team
from sessions.models.replaced import REAL, SUMMARISING

__all__ = [
    "Agreement",
    "CannotReview",
    "Judgement",
    "add",
    "agreement",
    "more",
    "of_version",
    "release",
    "renew",
    "reserve_next",
    "sample",
    "seen_by",
    "skip",
    "submit",
    "take",
    "unskip",
    "want_no_more_than_can",
    "with_summary",
]

SCORES = ("goal", "constraints", "state", "next")
"""The parts of the rubric that are judged from 1 to 5; `invention` is yes or no."""

MARKS = ("kept", "retrievable", "lost", "unsupported")
ADDED = "+"
"""What the key of a fact begins with that a reviewer found himself; its text follows."""
MOST_MARKS = 2_000
LONGEST_KEY = 400


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a reviewer says: `scores` and `marks` as in `Review`."""

    scores: dict[str, Any]
    verdict: str
    note: str = ""
    marks: dict[str, str] = field(default_factory=dict)


def sample(revision: Revision, ledger: FactLedger) -> ReviewItem | None:
    """Put a compaction into its team's queue where the team's rules pick it.

    Asking again changes nothing but to add what by now was missed later. None where it is not
    picked; what only a simulation made, or what has no summary, never is.
    """
    known = ReviewItem.objects.filter(revision=revision).first()
    if known is not None or revision.run.origin not in REAL:
        return known
    if not with_summary(Revision.objects.filter(pk=revision.pk)).exists():
        return None
    team = revision.run.session.team
    rules = rules_of(team)
    reason = picked(rules, revision.pk, ledger)
    if reason is None:
        return None
    return _put(revision, team, reason=reason, wanted=wanted(rules, team, revision.pk))


def add(revision: Revision, user: User | None) -> ReviewItem:
    """Put a compaction into the queue by hand; the item it has already, where it has one.

    Raises CannotReview where the revision put no summary in.
    """
    known = ReviewItem.objects.filter(revision=revision).first()
    if known is not None:
        return known
    if not with_summary(Revision.objects.filter(pk=revision.pk)).exists():
        raise CannotReview("It put no summary in, so there is nothing to judge.")
    team = revision.run.session.team
    amount = wanted(rules_of(team), team, revision.pk)
    return _put(revision, team, reason=ReviewItem.Reason.HAND, wanted=amount, added_by=user)


def more(team: Team, user: User, amount: int = 10) -> int:
    """Put so many of the newest compactions that are in no queue into it; how many there were."""
    rows = Revision.objects.filter(
        run__session__team=team, run__origin__in=REAL, review_item__isnull=True
    )
    chosen = with_summary(rows).select_related("run__session__team").order_by("-pk")[:amount]
    return len([add(revision, user) for revision in list(chosen)])


def with_summary(revisions: QuerySet[Revision]) -> QuerySet[Revision]:
    """Those of them that put a summary in the place of what they took out."""
    return revisions.filter(Exists(Edit.objects.filter(SUMMARISING, revision=OuterRef("pk"))))


def _put(revision: Revision, team: Team, **fields: Any) -> ReviewItem:
    try:
        with transaction.atomic():
            return ReviewItem.objects.create(team=team, revision=revision, **fields)
    except IntegrityError:  # somebody was quicker; the first reason stands
        return ReviewItem.objects.get(revision=revision)


def seen_by(user: User | None, items: QuerySet[ReviewItem]) -> QuerySet[Review]:
    """Submitted reviews of these items that somebody may read: all where the item is finished,
    else his own."""
    given = Review.objects.filter(item__in=items, submitted__isnull=False)
    finished = given.filter(item__finished__isnull=False)
    return finished | given.filter(reviewer=user) if user is not None else finished


def may_change(review: Review) -> bool:
    """Whether a submitted review may be changed: until its reviewer could read another's."""
    return review.item.wanted == 1 or review.item.finished is None


def submit(item: ReviewItem, user: User, judgement: Judgement, actor: audit.Actor) -> Review:
    """Keep what somebody says of an item, and finish the item with the last that is wanted.

    A reservation that ran out does no harm while there is room for one more. Raises CannotReview.
    """
    _check(judgement)
    with transaction.atomic():
        item = locked(item)
        review = Review.objects.filter(item=item, reviewer=user).first()
        review = review or Review(item=item, reviewer=user)
        review.item = item
        again = review.submitted is not None
        if again and not may_change(review):
            raise CannotReview(
                "The other review of this compaction is in as well, so yours stays as it is."
            )
        if not again and not room_for(item, user):
            raise CannotReview(
                "Your reservation ran out, and somebody else has taken this compaction since. "
                "What you wrote is still here, to copy; it cannot be submitted."
            )
        _keep(review, judgement)
        if not again and item.reviews.filter(submitted__isnull=False).count() >= item.wanted:
            ReviewItem.objects.filter(pk=item.pk).update(finished=timezone.now())
        revision = item.revision
        # No verdict here: somebody may read this before he has judged the same compaction.
        audit.note(
            item.team,
            actor,
            "review.submitted",
            f"{revision} of {revision.run.session.external_id}",
            item=str(item.pk),
            again=again,
        )
    return review


def want_no_more_than_can(team: Team) -> None:
    """After somebody may no longer review: what two were to judge wants those who are left, and is
    finished where they all have."""
    for item in ReviewItem.objects.for_team(team).filter(finished=None, wanted__gt=1):
        given = item.reviews.filter(submitted__isnull=False)
        others = reviewers(team).exclude(user__in=given.values("reviewer")).count()
        if given.count() + others >= item.wanted:
            continue
        item.wanted = max(given.count() + others, 1)
        item.finished = timezone.now() if given.count() >= item.wanted else None
        item.save(update_fields=["wanted", "finished"])


def _keep(review: Review, judgement: Judgement) -> None:
    review.scores = {name: judgement.scores[name] for name in (*SCORES, "invention")}
    review.verdict = judgement.verdict
    review.note = judgement.note
    review.marks = judgement.marks
    review.submitted = review.submitted or timezone.now()
    review.reserved_until = review.skipped = None
    review.save()


def _check(judgement: Judgement) -> None:
    scores = judgement.scores
    for name in SCORES:
        if type(scores.get(name)) is not int or not 1 <= scores[name] <= 5:
            raise CannotReview(f"{name.capitalize()} needs a score from 1 to 5.", f"/{name}")
    if not isinstance(scores.get("invention"), bool):
        raise CannotReview("Say whether the summary invents nothing.", "/invention")
    if judgement.verdict not in Review.Verdict.values:
        raise CannotReview("The verdict is pass, fix or fail.", "/verdict")
    if len(judgement.note) > 2000:
        raise CannotReview("The note is longer than 2,000 characters.", "/note")
    marks = judgement.marks
    if len(marks) > MOST_MARKS or any(
        len(key) > LONGEST_KEY or mark not in MARKS for key, mark in marks.items()
    ):
        raise CannotReview(
            f"Marks name up to {MOST_MARKS:,} facts, each kept, retrievable, lost or unsupported.",
            "/marks",
        )
