"""The review queue: open items, results, and rules."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import Count, Prefetch, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from sessions.access import (
    allowed,
    find_session,
    require,
    run_named,
    team_of,
    team_to,
)
from sessions.actions.accounts.visits import visit_before
from sessions.actions.reviews import agreement, reviews
from sessions.actions.reviews.compaction_verdicts import is_missed
from sessions.actions.reviews.losses import stored_cost
from sessions.actions.reviews.ranks import WORST
from sessions.actions.reviews.reservations import items_of, offered, open_to, unskip
from sessions.models import Review, ReviewItem, Team
from sessions.views.reviews.review_filters import CHOICES, ReviewFilters, choices
from sessions.views.reviews.rules import whole_number
from sessions.views.web.dates import RANGE, listed_dates
from sessions.views.web.demo_notice import SWITCH, demo_notice
from sessions.views.web.pages import Link, Page
from sessions.views.web.paging import page

LISTED = 25
"""Open items listed, and results on a page."""
MORE = 10
"""Number of compactions added by "add more"."""


def midnight() -> Any:
    """The start of the person's current day."""
    return timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)


@never_cache
@require_GET
def queue(request: HttpRequest) -> HttpResponse:
    """Show open items, agreement, and results."""
    team = team_of(request)
    assert request.user.is_authenticated
    filters = ReviewFilters.of(request.GET)
    found = page(
        _with_reviews(filters.rows(team)), request.GET.get("cursor", ""), "finished", LISTED
    )
    items = items_of(team, demo=filters.demo)
    context = {
        **demo_notice(request, team, switch=True),
        "section": "reviews",
        "may_review": allowed(request, team, "review"),
        "may_change": allowed(request, team, "write"),
        "any": items.exists(),
        "filters": filters,
        "filter_choices": choices(team, filters),
        "dates": listed_dates(request.GET, filters.kept, dict(filters.dates).get("range", "")),
        "rows": found.rows,
        "newer_url": filters.address(found.newer) if found.newer else "",
        "older_url": filters.address(found.older) if found.older else "",
        "done": items.filter(finished__isnull=False).count(),
        "agreement": agreement.agreement(team),
        "parts": agreement.PARTS,
        "checks": (checks := agreement.ledger_checks(team)),
        "checks_known": any((one.precision, one.recall) != (None, None) for one in checks),
        "fewest_facts": agreement.FEWEST_FACTS,
        "more": MORE,
        "listed": _open(items, visit_before(request.user, team)),
        **_waiting(team, items, request.user),
    }
    return render(request, "reviews/queue.html", context)


@dataclass(frozen=True, slots=True)
class WaitingItem:
    """An open item of the queue: facts lost and needed again, and signs that something is missed,
    None without a ledger; what the loss cost, in words."""

    item: ReviewItem
    missed: int | None
    signs: int | None
    held_by: str
    cost: str
    new: bool
    """Whether its session arrived since the person's previous visit."""


_NAMES = (
    *("reason", "created", "finished", "revision__step"),
    *(f"revision__run__session__{name}" for name in ("title", "external_id", "created")),
    *("revision__policy_version__number", "revision__policy_version__policy__name"),
)
"""What a row of the page shows of an item: a hundred rows with all columns take 60 ms."""
_OF_LEDGER = ("facts", "after", "after_effects")


def _open(items: QuerySet[ReviewItem], visited: datetime | None) -> list[WaitingItem]:
    """Open items, the worst first."""
    held = Review.objects.filter(submitted=None, reserved_until__gt=timezone.now())
    rows = (
        _named(items.filter(finished=None), "revision__fact_ledger")
        .only(*_NAMES, *(f"revision__fact_ledger__{one}" for one in _OF_LEDGER))
        .prefetch_related(Prefetch("reviews", held.select_related("reviewer"), to_attr="held"))
        .order_by(*WORST)
    )
    return [_waiting_item(row, visited) for row in rows[:LISTED]]


def _waiting_item(item: ReviewItem, visited: datetime | None) -> WaitingItem:
    ledger = getattr(item.revision, "fact_ledger", None)
    held: list[Review] = item.held  # type: ignore[attr-defined]
    names = ", ".join(one.reviewer.get_full_name() or one.reviewer.username for one in held)
    new = visited is not None and item.revision.run.session.created >= visited
    if ledger is None:
        return WaitingItem(item, None, None, names, "unknown", new)
    missed = sum(map(is_missed, ledger.facts))
    cost = stored_cost(ledger.after) or ("unknown" if ledger.after_effects else "–")
    return WaitingItem(item, missed, ledger.after_effects, names, cost, new)


def _waiting(team: Team, items: QuerySet[ReviewItem], user: User) -> dict[str, Any]:
    """Open items: for this user, by reason, reserved, and done today."""
    waits = items.filter(finished=None)
    by_reason = dict(waits.values_list("reason").annotate(Count("pk")).order_by())
    mine = Review.objects.filter(item__team=team, reviewer=user)
    here = mine.filter(item__finished=None, submitted=None)
    today = Review.objects.filter(item__team=team, submitted__gte=midnight())
    return {
        "open": sum(by_reason.values()),
        "open_for_me": open_to(team, user).count(),
        "by_reason": [
            (ReviewItem.Reason(name).label, by_reason[name])
            for name in ReviewItem.Reason.values
            if name in by_reason
        ],
        "reserved": here.filter(reserved_until__gt=timezone.now()).select_related(
            "item__revision__run__session"
        ),
        "skipped": here.filter(skipped__isnull=False).count(),
        "awaits_others": mine.filter(item__finished=None, submitted__isnull=False).count(),
        "today_mine": today.filter(reviewer=user).count(),
        "today": today.count(),
    }


def _with_reviews(rows: QuerySet[ReviewItem]) -> QuerySet[ReviewItem]:
    given = Review.objects.filter(submitted__isnull=False).select_related("reviewer")
    named = _named(rows).only(*_NAMES)
    return named.prefetch_related(Prefetch("reviews", given.order_by("submitted", "pk")))


def _named(rows: QuerySet[ReviewItem], *also: str) -> QuerySet[ReviewItem]:
    return rows.select_related("revision__run__session", "revision__policy_version__policy", *also)


@never_cache
@require_GET
def next_item(request: HttpRequest) -> HttpResponse:
    """Redirect to the next item, or to the queue if there is none."""
    team = team_to(request, "review")
    assert request.user.is_authenticated
    item = offered(team, request.user)
    return redirect("review_item", item.pk) if item else redirect("reviews")


@require_POST
def more(request: HttpRequest) -> HttpResponse:
    """Add the newest compactions that are not in the queue."""
    team = team_to(request, "review")
    assert request.user.is_authenticated
    added = reviews.more(team, request.user, MORE)
    if added:
        messages.success(request, f"{added} compaction{pluralize(added)} added")
    else:
        all_in = "every compaction with a summary is in the queue or finished."
        messages.info(request, f"Nothing to add: {all_in}")
    return redirect("reviews")


@require_POST
def skipped(request: HttpRequest) -> HttpResponse:
    """Offer the user's skipped items again."""
    team = team_to(request, "review")
    assert request.user.is_authenticated
    unskip(team, request.user)
    return redirect("review_next")


@require_POST
def add(request: HttpRequest) -> HttpResponse:
    """Add one compaction to the queue, and return to its page."""
    session = find_session(request, request.POST.get("session", ""))
    require(request, session.team if session else team_of(request), "review")
    if session is None:
        raise Http404("no such session")
    run = run_named(session, request.POST.get("run", ""))
    number = whole_number(request.POST.get("revision", ""))
    revision = (
        run.revisions.select_related("run__session__team").filter(number=number).first()
        if number is not None
        else None
    )
    if revision is None:
        raise Http404("no such revision")
    assert request.user.is_authenticated
    try:
        reviews.add(revision, request.user)
    except reviews.CannotReview as error:
        raise Http404(str(error)) from None
    name = "recorded" if run.origin == "recorded" else str(run.pk)
    return redirect(f"{reverse('revision', args=[session.pk, name, revision.number])}#reviews")


PAGES = (
    Page(
        route="review/",
        query=(*CHOICES, *RANGE, "cursor", SWITCH),
        view=queue,
        name="reviews",
        link=Link(70, "Review", "review", "g r", "reviews", "Improve"),
        about="compactions to review, verdicts, agreement, ledger",
    ),
    Page(route="review/next/", view=next_item, name="review_next", needs={"GET": "review"}),
    Page(route="review/more/", view=more, name="review_more", needs={"POST": "review"}),
    Page(route="review/skipped/", view=skipped, name="review_skipped", needs={"POST": "review"}),
    Page(route="review/add/", view=add, name="review_add", needs={"POST": "review"}),
)
