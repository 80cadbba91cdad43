"""Forms for codes of a second factor; each code works once."""

from __future__ import annotations

from typing import Any

from allauth.mfa import app_settings
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.totp.internal.auth import TOTP
from django.contrib.auth.models import User
from django.core.cache import cache

CODE_HELP = "Of your authenticator app, or a recovery code."


def use_up(user: User, code: str) -> None:
    """Refuse a code of an app from now on. allauth does so for one period, but a code is valid
    through those before and after it, too."""
    seconds = app_settings.TOTP_PERIOD * (2 * app_settings.TOTP_TOLERANCE + 1)
    mark = TOTP(Authenticator(user=user))._get_used_cache_key(code)
    cache.set(mark, "y", timeout=seconds)


class _Once:
    user: User

    def clean_code(self) -> str:
        """Check the code, and use it up."""
        code: str = super().clean_code()  # type: ignore[misc]
        use_up(self.user, code)
        return code


class Code(_Once, AuthenticateForm):
    """A code at sign-in."""


class CodeAgain(_Once, ReauthenticateForm):
    """A code of someone who is signed in, before the account changes."""

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self.fields["code"].help_text = CODE_HELP


class FirstCode(_Once, ActivateTOTPForm):
    """The code that shows that the app is set up."""
