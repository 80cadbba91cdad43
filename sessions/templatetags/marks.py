"""Markdown as agents write it: the few marks that boards hold, shown or taken away."""

from __future__ import annotations

import re

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

register = template.Library()

_CODE = re.compile(r"`([^`\n]+)`")
_STRONG = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t]+(.+?)[ \t]*#*$", re.MULTILINE)
_BULLET = re.compile(r"^([ \t]*)[-*+][ \t]+", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~).*\n?", re.MULTILINE)


@register.filter
def marked(text: str) -> SafeString:
    """Text with headings, strong words, code and lists as such, and nothing else of Markdown.

    Everything is escaped before a mark is read, so that no more than those tags can come of it.
    """
    made = _BULLET.sub(r"\1• ", _FENCE.sub("", str(escape(text))))
    made = _HEADING.sub(lambda found: f"<strong>{_plain(found[1])}</strong>", made)
    parts = _CODE.split(made)
    # What stands in code is shown as it is: every second part.
    shown = [
        f"<code>{part}</code>" if place % 2 else _STRONG.sub(r"<strong>\2</strong>", part)
        for place, part in enumerate(parts)
    ]
    whole = "".join(shown)
    if "…" in (text[:1], text[-1:]):  # an excerpt: of a pair, one mark may be beyond its end
        whole = whole.replace("**", "").replace("`", "")
    return mark_safe(whole)  # noqa: S308 - escaped above


@register.filter
def unmarked(text: str) -> str:
    """The same in one style, for where it is cut short: no mark is left half."""
    made = _HEADING.sub(r"\1", _BULLET.sub(r"\1• ", _FENCE.sub("", text)))
    return _plain(made)


def _plain(text: str) -> str:
    return _STRONG.sub(r"\2", _CODE.sub(r"\1", text))
