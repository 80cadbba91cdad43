"""Filters for figures."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from django import template
from django.utils.safestring import SafeString, mark_safe

from sessions import figures

register = template.Library()

for write in (
    figures.tokens,
    figures.signed,
    figures.window,
    figures.money,
    figures.roughly,
    figures.percent,
    figures.finely,
    figures.change,
    figures.duration,
    figures.moment,
    figures.age,
    figures.ago,
    figures.size,
    figures.us_as_ms,
    figures.whole,
):
    register.filter(write)
register.simple_tag(figures.figure)


@register.simple_tag
def figure_rows(rows: Sequence[tuple[Any, Sequence[tuple[Any, str]]]], hourly: bool) -> SafeString:
    """Rows of a table: a moment in ms, or a text, and its values with their units.

    A dashboard has a thousand such cells; in a template they take most of the time of its page.
    """
    made = []
    for head, values in rows:
        cells = "".join(
            f'<td class="number">{escape(figures.figure(value, unit))}</td>'
            for value, unit in values
        )
        name = head if isinstance(head, str) else _written(head, hourly=hourly)
        made.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    return mark_safe("\n".join(made))  # noqa: S308 (every text in it is escaped)


def _written(ms: int, *, hourly: bool) -> str:
    at = figures.moment(ms)
    if at is None:
        return ""
    return f"{at:%b} {at.day}, {at:%H:%M}" if hourly else f"{at:%b} {at.day}, {at.year}"
