"""Reviews on pages of compactions and policies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django import template
from django.template import Context

from sessions.access import allowed
from sessions.actions.reviews.reviews import with_summary
from sessions.api.reviews.reviews import reviews_of
from sessions.models import Review, ReviewItem, Revision

register = template.Library()


@dataclass(frozen=True, slots=True)
class ReviewState:
    """A compaction's review item, if any, and what the user may see and do."""

    item: ReviewItem | None = None
    reviews: list[Review] = field(default_factory=list)
    may_add: bool = False


@register.simple_tag(takes_context=True)
def review_of(context: Context, revision: Revision) -> ReviewState:
    """The review status of a compaction for the current user."""
    request = context["request"]
    item = ReviewItem.objects.filter(revision=revision).first()
    if item is not None:
        return ReviewState(item, reviews_of(request, [item])[item.pk])
    if not with_summary(Revision.objects.filter(pk=revision.pk)).exists():
        return ReviewState()
    return ReviewState(may_add=allowed(request, revision.run.session.team, "review"))


@register.filter
def of(values: dict[str, Any], name: str) -> Any:
    """The value of a name, or None."""
    return values.get(name)


@register.filter
def alpha(value: float | None) -> str:
    """An alpha with two digits; a dash if it is undefined."""
    return "–" if value is None else f"{value:.2f}".replace("-", "−")
