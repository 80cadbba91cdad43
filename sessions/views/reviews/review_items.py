"""The review page: what a compaction replaced, the summary, its facts, and the rubric."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import F
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from compaction.context import wire
from sessions.access import actor_of, allowed
from sessions.actions.reviews import reviews
from sessions.actions.reviews.reservations import TAKEN, open_to, room_for
from sessions.actions.reviews.sizes import sizes_of
from sessions.api.reviews.reviews import item_of, reviews_of
from sessions.models import Review, ReviewItem
from sessions.models.record.values import contents
from sessions.views.reviews.removal import closed_by
from sessions.views.reviews.review_original import original
from sessions.views.reviews.reviews import midnight
from sessions.views.web.names import run_name
from sessions.views.web.pages import Page
from sessions.views.web.places import step_url

AT_ONCE = 60
"""Most blocks whose texts a page may request at once."""

FIRST_CHARS = 8_000
"""Code points of a block sent at first; the rest is sent on request."""

MOST_CHARS = 1_000_000

JUDGE, CHANGE, LOOK = "judge", "change", "look"


@never_cache
@require_GET
def item(request: HttpRequest, item_id: UUID) -> HttpResponse:
    """Show the item; the page of a user who may review it reserves it by a request of its own."""
    found = item_of(request, item_id)
    assert request.user.is_authenticated
    session = found.revision.run.session
    context = {
        "section": "reviews",
        "team": found.team,
        "item": found,
        "session": session,
        "props": {
            **_standing(request, found, request.user),
            **original(session, found.revision, may_write=allowed(request, session.team, "write")),
            **_around(found, request.user),
        },
    }
    return render(request, "reviews/item.html", context)


def _standing(request: HttpRequest, item: ReviewItem, user: User) -> dict[str, Any]:
    """What the user may do with the item, and the reviews they may see."""
    own = Review.objects.filter(item=item, reviewer=user).first()
    mode, why = LOOK, ""
    held: dict[str, Any] = {"seconds": None, "until": ""}
    if own is not None and own.submitted is not None:
        own.item = item
        mode = CHANGE if reviews.may_change(own) else LOOK
        why = "" if item.finished else "You have reviewed it. It is waiting for another reviewer."
    elif not allowed(request, item.team, "review"):
        why = "" if item.finished else "Its reviews are not finished yet."
    elif item.finished is None and room_for(item, user):
        mode = JUDGE
        if own is not None and own.reserved_until and own.reserved_until > timezone.now():
            held = _held(own)
    else:
        why = "" if item.finished else TAKEN
    others = [one for one in reviews_of(request, [item])[item.pk] if one.reviewer_id != user.pk]
    return {
        "mode": mode,
        "why": why,
        **held,
        "double": item.wanted > 1,
        "own": _given(own) if own is not None and own.submitted else None,
        "others": [_given(one) for one in others],
    }


def _next(item: ReviewItem) -> str:
    """The URL of the next item of this item's team."""
    return f"{reverse('review_next')}?team={item.team.slug}"


def _held(review: Review) -> dict[str, Any]:
    """The seconds left of a reservation, and its end as `release` expects it."""
    until = review.reserved_until
    assert until is not None
    seconds = round((until - timezone.now()).total_seconds())
    return {"seconds": seconds, "until": until.isoformat()}


def _given(review: Review) -> dict[str, Any]:
    return {
        "by": review.reviewer.get_full_name() or review.reviewer.get_username(),
        "scores": review.scores,
        "verdict": review.verdict,
        "note": review.note,
        "marks": review.marks,
    }


def _around(item: ReviewItem, user: User) -> dict[str, Any]:
    """URLs, and the user's progress."""
    revision = item.revision
    session = revision.run.session
    last = (
        Review.objects.filter(item__team=item.team, reviewer=user)
        .exclude(submitted=None, skipped=None)
        .annotate(left=Coalesce(F("submitted"), F("skipped")))
        .order_by("-left")
    )
    here = next((one for one in last.filter(item=item)), None)
    before = last.exclude(item=item)
    if here is not None:
        before = before.filter(left__lt=here.left)
    back = before.first()
    acts = ("blocks", "submit", "renew", "skip", "release")
    return {
        "id": str(item.pk),
        "reader": user.pk,
        "title": str(session),
        "reason": item.get_reason_display(),
        "policy": str(revision.policy_version) if revision.policy_version else "",
        "step": revision.step,
        "trigger": revision.trigger,
        "sizes": [
            {"tokens": size.tokens, "basis": size.basis, "source": size.source}
            for size in sizes_of(session, revision)
            if size is not None
        ],
        "today": Review.objects.filter(
            item__team=item.team, reviewer=user, submitted__gte=midnight()
        ).count(),
        "left": open_to(item.team, user).exclude(pk=item.pk).count(),
        "urls": {
            **{act: reverse(f"review_{act}", args=[item.pk]) for act in acts},
            "next": _next(item),
            "queue": f"{reverse('reviews')}?team={item.team.slug}",
            "back": reverse("review_item", args=[back.item_id]) if back else "",
            "after": step_url(session, revision.step, revision.run),
            "revision": reverse(
                "revision", args=[session.pk, run_name(revision.run), revision.number]
            ),
        },
    }


@never_cache
@require_GET
def blocks(request: HttpRequest, item_id: UUID) -> HttpResponse:
    """Return the texts of replaced blocks: `at` lists entries, `whole` requests full texts."""
    found = item_of(request, item_id)
    asked = request.GET.get("at", "").split(",")[:AT_ONCE]
    wanted = [int(one) for one in asked if one.isdecimal() and len(one) < 18]
    most = MOST_CHARS if request.GET.get("whole") else FIRST_CHARS
    session = found.revision.run.session
    rows = {
        entry.pk: entry.block or entry.replacement
        for entry in closed_by(found.revision).filter(pk__in=wanted)
    }
    data = contents(session, [row.sha for row in rows.values() if row is not None])
    texts = {}
    for entry, row in rows.items():
        assert row is not None
        text = wire.text_of(wire.decode(data[row.sha]))
        texts[str(entry)] = {"text": _printable(text[:most]), "left": max(0, len(text) - most)}
    return JsonResponse({"texts": texts})


def _printable(text: str) -> str:
    """Replace characters that PostgreSQL rejects."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "␀")


Act = Callable[[HttpRequest, ReviewItem, User], dict[str, Any]]


def _act(act: Act) -> Callable[[HttpRequest, UUID], HttpResponse]:
    """Make a view from a reviewer's action; refusals are JSON."""

    @wraps(act)
    def view(request: HttpRequest, item_id: UUID) -> HttpResponse:
        try:
            found = item_of(request, item_id, "review")
        except PermissionDenied:
            return _refused(
                403, "Not allowed", "Your role in this team no longer allows it. Ask an owner."
            )
        assert request.user.is_authenticated
        try:
            return JsonResponse(act(request, found, request.user))
        except reviews.CannotReview as error:
            return _refused(409, "Not saved", str(error), error.pointer)

    return require_POST(view)


def _refused(status: int, title: str, detail: str, pointer: str = "") -> JsonResponse:
    body = {"title": title, "detail": detail, "field": pointer.lstrip("/")}
    return JsonResponse(body, status=status)


@_act
def submit(request: HttpRequest, found: ReviewItem, user: User) -> dict[str, Any]:
    """Save the user's review, and return the URL of the next item."""
    given = _body(request)
    scores, marks = given.get("scores"), given.get("marks")
    judgement = reviews.Judgement(
        scores=scores if isinstance(scores, dict) else {},
        verdict=str(given.get("verdict", "")),
        note=_printable(str(given.get("note", ""))).strip(),
        marks={_printable(key): str(mark) for key, mark in marks.items()}
        if isinstance(marks, dict)
        else {},
    )
    reviews.submit(found, user, judgement, actor_of(request))
    return {"next": _next(found)}


def _body(request: HttpRequest) -> dict[str, Any]:
    try:
        given = json.loads(request.body)
    except (ValueError, UnicodeDecodeError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise reviews.CannotReview("The page sent invalid data. Reload it.")
    return given


@_act
def renew(request: HttpRequest, found: ReviewItem, user: User) -> dict[str, Any]:
    """Extend the reservation, or take it again if it expired."""
    return _held(reviews.renew(found, user))


@_act
def skip(request: HttpRequest, found: ReviewItem, user: User) -> dict[str, Any]:
    """Leave the item to others."""
    reviews.skip(found, user)
    return {"next": _next(found)}


@_act
def release(request: HttpRequest, found: ReviewItem, user: User) -> dict[str, Any]:
    """Release the reservation that ends at the given time, because the user left the page."""
    until = parse_datetime(str(_body(request).get("until", "")))
    if until is not None and until.tzinfo is not None:
        reviews.release(found, user, until)
    return {}


_ITEM = "review/items/<uuid:item_id>/"
PAGES = (
    Page(route=_ITEM, view=item, name="review_item"),
    Page(route=f"{_ITEM}blocks/", query=("at", "whole"), view=blocks, name="review_blocks"),
    Page(route=f"{_ITEM}submit/", view=submit, name="review_submit", needs={"POST": "review"}),
    Page(route=f"{_ITEM}renew/", view=renew, name="review_renew", needs={"POST": "review"}),
    Page(route=f"{_ITEM}skip/", view=skip, name="review_skip", needs={"POST": "review"}),
    Page(route=f"{_ITEM}release/", view=release, name="review_release", needs={"POST": "review"}),
)
