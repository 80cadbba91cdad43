"""Long words of a page, in as many lines of a template as they take."""

from __future__ import annotations

from django import template
from django.utils.safestring import SafeString, mark_safe

register = template.Library()


@register.simple_block_tag
def sentence(content: SafeString) -> SafeString:
    """What stands inside, on one line: for an attribute, or to hand to an include (`as name`)."""
    return mark_safe(" ".join(content.split()))  # noqa: S308 - rendered, hence escaped already
