"""Marks of what happened in a session."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from sessions.figures import whole
from sessions.marks import MARKS

register = template.Library()


@register.simple_tag
def mark(kind: str, count: int | None = None) -> SafeString:
    """A mark with its count, if any; says what it means when pointed at or read aloud."""
    found = MARKS[kind]
    said = found.said(count)
    return format_html(
        '<span title="{}"><span aria-hidden="true">{}{}</span>'
        '<span class="seen-by-ear">{}</span></span>',
        said, found.symbol, "" if count is None else whole(count), said,
    )  # fmt: skip


@register.simple_tag
def symbol(kind: str) -> str:
    """The symbol of a mark whose meaning is written beside it."""
    return MARKS[kind].symbol
