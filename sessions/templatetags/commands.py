"""Shell commands as users must type them: of this machine, or of others on a team's server."""

import shlex
import sys
from pathlib import Path

from django import template
from django.conf import settings

register = template.Library()


@register.simple_tag
def command(arguments: str) -> str:
    """`contextlab …`, or with its whole path in a checkout, where it is not on the PATH.

    Agents are started in the folders of their projects, where a relative path leads nowhere.
    """
    program = Path(sys.prefix) / "bin" / "contextlab"
    root = Path(settings.BASE_DIR)
    in_checkout = (root / "manage.py").exists() and program.is_relative_to(root)
    here = in_checkout and not settings.PUBLIC
    return f"{shlex.quote(str(program)) if here else 'contextlab'} {arguments}"
