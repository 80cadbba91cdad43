"""Differences between two versions of a policy."""

from __future__ import annotations

from django import template

from compaction.policies.fields import Field, field_of
from compaction.policies.origin import SettingChange

register = template.Library()


@register.filter
def came(change: SettingChange) -> list[str]:
    """The words added to a list."""
    return _without(change.after, change.before)


@register.filter
def went(change: SettingChange) -> list[str]:
    """The words removed from a list."""
    return _without(change.before, change.after)


@register.filter
def is_words(change: SettingChange) -> bool:
    """Whether a list of words changed."""
    return isinstance(change.before, list) and isinstance(change.after, list)


@register.filter
def is_step(change: SettingChange) -> bool:
    """Whether a whole step, or recitation, was added or removed."""
    return change.path == "recite" or change.path.endswith("]")


@register.filter
def compact_setting(name: str) -> Field | None:
    """A setting of compaction, by name."""
    return field_of("compact", name)


@register.filter
def in_words(setting: Field, value: object) -> str:
    """A value of a setting, with its unit."""
    return setting.in_words(value)


def _without(words: object, others: object) -> list[str]:
    assert isinstance(words, list) and isinstance(others, list)
    return [word for word in words if word not in others]
