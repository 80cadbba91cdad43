"""Reviews: list them, and add compactions to the queue.

Reviewing is for people, on the page: until an item is finished, reviewers see only their own
review, and programs none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Query, Router

from sessions.access import Asker, require, run_named, session_of, teams_of
from sessions.actions.archives.unpack import opened
from sessions.actions.reviews import reviews as actions
from sessions.api.reviews import shapes
from sessions.api.web.exchange import json_answer
from sessions.api.web.once import done_once
from sessions.api.web.problems import Refusal
from sessions.models import Review, ReviewItem
from sessions.models.accounts.teams import Right

router = Router(tags=["Reviews"])

LISTED = 100


def item_of(request: HttpRequest, item_id: UUID, right: Right | None = None) -> ReviewItem:
    """An item of the requester's teams, checked for a right; its session is unpacked. Raises
    Http404, Unpacking and what `require` raises."""
    rows = ReviewItem.objects.filter(team__in=teams_of(request)).select_related(
        "team", "revision__run__session__team", "revision__run__policy_version__policy",
        "revision__policy_version__policy", "revision__fact_ledger", "added_by",
    )  # fmt: skip
    item = rows.filter(pk=item_id).first()
    if item is None:
        raise Http404("no such item")
    if right is not None:
        require(request, item.team, right)
    opened(item.revision.run.session)
    return item


def person_of(request: HttpRequest) -> User | None:
    """The requesting person; None for a program."""
    asker = getattr(request, "auth", None)
    program = isinstance(asker, Asker) and asker.key is not None
    return None if program or not request.user.is_authenticated else request.user


def reviews_of(request: HttpRequest, items: Iterable[ReviewItem]) -> dict[UUID, list[Review]]:
    """The reviews of items that the requester may read, by item, oldest first."""
    chosen = ReviewItem.objects.filter(pk__in=[item.pk for item in items])
    found: dict[UUID, list[Review]] = defaultdict(list)
    rows = actions.seen_by(person_of(request), chosen).select_related("reviewer")
    for review in rows.order_by("submitted", "pk"):
        found[review.item_id].append(review)
    return found


def _describe_item(item: ReviewItem, reviews: list[Review]) -> dict[str, Any]:
    revision = item.revision
    session = revision.run.session
    return {
        "id": str(item.pk),
        "session": session.external_id,
        "run": revision.run.origin,
        "revision": revision.number,
        "step": revision.step,
        "policy": str(revision.policy_version) if revision.policy_version else None,
        "reason": item.reason,
        "wanted": item.wanted,
        "created": item.created.isoformat(),
        "finished": item.finished.isoformat() if item.finished else None,
        "reviews": [_describe_review(review) for review in reviews],
        "url": reverse("review_item", args=[item.pk]),
    }


def _describe_review(review: Review) -> dict[str, Any]:
    assert review.submitted is not None
    return {
        "reviewer": review.reviewer.get_full_name() or review.reviewer.get_username(),
        "scores": review.scores,
        "verdict": review.verdict,
        "note": review.note,
        "marks": review.marks,
        "submitted": review.submitted.isoformat(),
    }


@router.get("reviews", response=shapes.ReviewList, url_name="reviews")
def reviews(
    request: HttpRequest,
    finished: bool | None = Query(
        None, description="true: only finished items; false: only unfinished ones"
    ),
    limit: int = Query(20, ge=1, le=LISTED),
    after: UUID | None = Query(None, description="`next` of the previous page"),
) -> HttpResponse:
    """List compactions in the review queue, open or finished, newest first."""
    rows = ReviewItem.objects.filter(team__in=teams_of(request))
    if finished is not None:
        rows = rows.filter(finished__isnull=not finished)
    if after is not None:
        last = item_of(request, after)
        rows = rows.filter(created__lt=last.created) | rows.filter(
            created=last.created, pk__lt=last.pk
        )
    rows = rows.select_related("revision__run__session", "revision__policy_version__policy")
    found = list(rows.order_by("-created", "-pk")[: limit + 1])
    more, found = len(found) > limit, found[:limit]
    seen = reviews_of(request, found)
    listed = [_describe_item(item, seen[item.pk]) for item in found]
    return json_answer({"reviews": listed, "next": str(found[-1].pk) if more else None})


@router.get("reviews/{uuid:item_id}", response=shapes.ReviewItemOut, url_name="review")
def review(request: HttpRequest, item_id: UUID) -> HttpResponse:
    """Get one compaction in the queue, with the reviews the requester may read."""
    item = item_of(request, item_id)
    return json_answer(_describe_item(item, reviews_of(request, [item])[item.pk]))


@router.post("reviews", response={201: shapes.ReviewItemOut}, url_name="reviews")
@done_once
def add(request: HttpRequest, wanted: shapes.ReviewIn) -> HttpResponse:
    """Add a compaction to the review queue, if it is not there yet.

    422 for a revision without a summary.
    """
    person = person_of(request)
    session = session_of(request, wanted.session, "write" if person is None else "review")
    revision = (
        run_named(session, wanted.run)
        .revisions.select_related("run__session__team", "policy_version__policy")
        .filter(number=wanted.revision)
        .first()
    )
    if revision is None:
        raise Http404("no such revision")
    try:
        item = actions.add(revision, person)
    except actions.CannotReview as error:
        raise Refusal(422, "Cannot be reviewed", str(error), field="/revision") from None
    return json_answer(_describe_item(item, reviews_of(request, [item])[item.pk]), 201)
