"""What people found, for the pages of compactions and policies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django import template
from django.template import Context

from sessions.actions.reviews import with_summary
from sessions.api.access import allowed
from sessions.api.reviews import reviews_of
from sessions.models import Review, ReviewItem, Revision

register = template.Library()


@dataclass(frozen=True, slots=True)
class Standing:
    """A compaction's place in the queue: its item, if any, and what the reader may see and do."""

    item: ReviewItem | None = None
    reviews: list[Review] = field(default_factory=list)
    may_add: bool = False


@register.simple_tag(takes_context=True)
def review_of(context: Context, revision: Revision) -> Standing:
    """How a compaction stands in the queue, for whoever looks at the page."""
    request = context["request"]
    item = ReviewItem.objects.filter(revision=revision).first()
    if item is not None:
        return Standing(item, reviews_of(request, [item])[item.pk])
    if not with_summary(Revision.objects.filter(pk=revision.pk)).exists():
        return Standing()
    return Standing(may_add=allowed(request, revision.run.session.team, "review"))


@register.filter
def of(values: dict[str, Any], name: str) -> Any:
    """The value of that name, or None."""
    return values.get(name)


@register.filter
def alpha(value: float | None) -> str:
    """An alpha with two digits; where everybody always said the same there is none."""
    return "–" if value is None else f"{value:.2f}".replace("-", "−")
