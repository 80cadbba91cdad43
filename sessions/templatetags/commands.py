"""Shell commands as the user of this machine must type them."""

import sys
from pathlib import Path

from django import template
from django.conf import settings

register = template.Library()


@register.simple_tag
def command(arguments: str) -> str:
    """`contextlab …`, or its path in .venv in a checkout, where it is not on the PATH."""
    program = Path(sys.prefix) / "bin" / "contextlab"
    root = Path(settings.BASE_DIR)
    in_checkout = (root / "manage.py").exists() and program.is_relative_to(root)
    return f"{program.relative_to(root) if in_checkout else 'contextlab'} {arguments}"
