"""The page of a team's review rules, and what they would have selected."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from sessions.access import (
    actor_of,
    team_to,
)
from sessions.actions.reviews import review_rules
from sessions.actions.reviews.review_rules import InvalidRules, Rules
from sessions.models import ReviewItem
from sessions.views.web.pages import Page


def whole_number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 6 else None


@never_cache
@require_http_methods(["GET", "POST"])
def rules(request: HttpRequest) -> HttpResponse:
    """Show the team's rules and what they would have selected; GET with values previews them."""
    team = team_to(request, "write")
    given = request.POST if request.method == "POST" else request.GET
    kept = review_rules.rules_of(team)
    values, faults = _read(given, kept) if "share" in given else (kept, {})
    if request.method == "POST" and not faults:
        review_rules.save_rules(team, values, actor_of(request))
        messages.success(request, "Saved")
        return redirect("review_rules")
    picked = review_rules.would_pick(team, kept if faults else values)
    context = {
        "section": "reviews",
        "team": team,
        "rules": {**{name: getattr(kept, name) for name in _NUMBERS}, **_typed(given)},
        "after_effects": values.after_effects,
        "most_minutes": review_rules.MOST_MINUTES,
        "faults": faults,
        "changed": values != kept,
        "picked": picked,
        "reasons": [(reason.label, picked.reasons.get(reason, 0)) for reason in _RULED],
        "reviewers": review_rules.reviewers(team),
    }
    return render(request, "reviews/rules.html", context, status=400 if faults else 200)


_NUMBERS = ("share", "low_score", "double", "minutes")


_RULED = (
    ReviewItem.Reason.SHARE,
    ReviewItem.Reason.LOW_SCORE,
    ReviewItem.Reason.AFTER_EFFECTS,
)


def _typed(given: QueryDict) -> dict[str, str]:
    return {name: str(given[name])[:6] for name in _NUMBERS if name in given}


def _read(given: QueryDict, kept: Rules) -> tuple[Rules, dict[str, str]]:
    """Parse the rules of a form; on errors, the stored rules and the errors by field."""
    numbers = {name: whole_number(given.get(name, "").strip()) for name in _NUMBERS}
    missing = {name: "Enter a whole number." for name, value in numbers.items() if value is None}
    if missing:
        return kept, missing
    try:
        return Rules(
            **{name: value for name, value in numbers.items() if value is not None},
            after_effects="after_effects" in given,
        ), {}
    except InvalidRules as error:
        return kept, error.faults


PAGES = (
    Page(
        route="review/rules/",
        # A browser tries rules with the whole form.
        query=(*_NUMBERS, "after_effects", "csrfmiddlewaretoken"),
        view=rules,
        name="review_rules",
        needs={"GET": "write", "POST": "write"},
    ),
)
