"""What changed between two versions of a policy, for people."""

from __future__ import annotations

from django import template

from compaction.policies.origin import Change

register = template.Library()


@register.filter
def came(change: Change) -> list[str]:
    """Of a list of words, those that are new."""
    return _without(change.after, change.before)


@register.filter
def went(change: Change) -> list[str]:
    """Of a list of words, those that are gone."""
    return _without(change.before, change.after)


@register.filter
def is_words(change: Change) -> bool:
    """Whether it is a list of words that changed."""
    return isinstance(change.before, list) and isinstance(change.after, list)


@register.filter
def is_step(change: Change) -> bool:
    """Whether a whole step, or recitation, came or went."""
    return change.path == "recite" or change.path.endswith("]")


@register.filter
def said(value: object) -> str:
    """A value in words: yes, 3,000, 0.7, "nothing" for an empty text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value) or "nothing"


def _without(words: object, others: object) -> list[str]:
    assert isinstance(words, list) and isinstance(others, list)
    return [word for word in words if word not in others]
