"""Reviews: select compactions, assign reviewers, record judgements.

While an item is unfinished, a reviewer sees only their own review: access reviews only through
`seen_by`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from sessions.actions.accounts import audit
from sessions.actions.reviews.agreement import Agreement, agreement, of_version
from sessions.actions.reviews.ranks import rank_by
from sessions.actions.reviews.reservations import (
    CannotReview,
    locked,
    release,
    renew,
    room_for,
    skip,
    take,
    unskip,
)
from sessions.actions.reviews.review_rules import picked, reviewers, rules_of, wanted
from sessions.models import Edit, FactLedger, Review, ReviewItem, Revision, Team
from sessions.models.erasure.kept import while_kept
from sessions.models.record.replaced import REAL, SUMMARISING

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
"""The parts of the rubric rated from 1 to 5; `invention` is yes or no."""

MARKS = ("kept", "retrievable", "lost", "unsupported")
ADDED = "+"
"""Key prefix of a fact that a reviewer added; its text follows."""
MOST_MARKS = 2_000
LONGEST_KEY = 400


@dataclass(frozen=True, slots=True)
class Judgement:
    """A reviewer's judgement: `scores` and `marks` as in `Review`."""

    scores: dict[str, Any]
    verdict: str
    note: str = ""
    marks: dict[str, str] = field(default_factory=dict)


def sample(revision: Revision, ledger: FactLedger) -> ReviewItem | None:
    """Add a compaction to its team's review queue if the team's rules select it.

    Returns an existing item unchanged, and None if it is not selected. Simulated compactions and
    ones without a summary are never selected.
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
    """Add a compaction to the review queue by hand; returns the existing item if there is one.

    Raises CannotReview if the revision contains no summary.
    """
    known = ReviewItem.objects.filter(revision=revision).first()
    if known is not None:
        return known
    if not with_summary(Revision.objects.filter(pk=revision.pk)).exists():
        raise CannotReview("This revision contains no summary, so there is nothing to review.")
    team = revision.run.session.team
    amount = wanted(rules_of(team), team, revision.pk)
    return _put(revision, team, reason=ReviewItem.Reason.HAND, wanted=amount, added_by=user)


def more(team: Team, user: User, amount: int = 10) -> int:
    """Add the newest compactions that are not in the queue; return how many."""
    rows = Revision.objects.filter(
        run__session__team=team, run__origin__in=REAL, review_item__isnull=True
    )
    chosen = with_summary(rows).select_related("run__session__team").order_by("-pk")[:amount]
    return len([add(revision, user) for revision in list(chosen)])


def with_summary(revisions: QuerySet[Revision]) -> QuerySet[Revision]:
    """Revisions that replaced something by a summary."""
    return revisions.filter(Exists(Edit.objects.filter(SUMMARISING, revision=OuterRef("pk"))))


def _put(revision: Revision, team: Team, **fields: Any) -> ReviewItem:
    try:
        with transaction.atomic():
            ledger = FactLedger.objects.filter(revision=revision).first()
            rank = rank_by(ledger) if ledger is not None else 0
            return ReviewItem.objects.create(team=team, revision=revision, rank=rank, **fields)
    except IntegrityError:  # lost a race; the first reason is kept
        return ReviewItem.objects.get(revision=revision)


def seen_by(user: User | None, items: QuerySet[ReviewItem]) -> QuerySet[Review]:
    """Submitted reviews of these items that the user may read: all of finished items, else only
    their own."""
    given = Review.objects.filter(item__in=items, submitted__isnull=False)
    finished = given.filter(item__finished__isnull=False)
    return finished | given.filter(reviewer=user) if user is not None else finished


def may_change(review: Review) -> bool:
    """Whether a submitted review may be changed: only while its reviewer cannot read another's."""
    return review.item.wanted == 1 or review.item.finished is None


def submit(item: ReviewItem, user: User, judgement: Judgement, actor: audit.Actor) -> Review:
    """Save a review, and finish the item with the last one required.

    An expired reservation is fine while there is still room. Raises CannotReview, SessionErased.
    """
    _check(judgement)
    with while_kept(item.revision.run.session_id):
        item = locked(item)
        review = Review.objects.filter(item=item, reviewer=user).first()
        review = review or Review(item=item, reviewer=user)
        review.item = item
        again = review.submitted is not None
        if again and not may_change(review):
            raise CannotReview(
                "The other review of this compaction was submitted too, so yours can no "
                "longer be changed."
            )
        if not again and not room_for(item, user):
            raise CannotReview(
                "Your reservation expired and someone else has taken this compaction. Copy "
                "your text if you need it; it cannot be submitted."
            )
        _keep(review, judgement)
        if not again and item.reviews.filter(submitted__isnull=False).count() >= item.wanted:
            ReviewItem.objects.filter(pk=item.pk).update(finished=timezone.now())
        revision = item.revision
        # No verdict here: someone who has yet to review this compaction may read it.
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
    """Adjust items when a member can no longer review: lower the number of reviewers needed to
    those left, and finish items that have them all."""
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
        raise CannotReview("The verdict must be pass, fix or fail.", "/verdict")
    if len(judgement.note) > 2000:
        raise CannotReview("The note is too long. Use at most 2,000 characters.", "/note")
    marks = judgement.marks
    if len(marks) > MOST_MARKS or any(
        len(key) > LONGEST_KEY or mark not in MARKS for key, mark in marks.items()
    ):
        raise CannotReview(
            f"Invalid marks. Mark up to {MOST_MARKS:,} facts as kept, retrievable, lost or "
            "unsupported.",
            "/marks",
        )
