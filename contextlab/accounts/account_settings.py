"""Sign-in by django-allauth: passwords, email addresses, second factors, browsers."""

from __future__ import annotations

from typing import Any

from django.utils.crypto import salted_hmac

APPS = ("allauth.account", "allauth.mfa", "allauth.usersessions")
WITH_PROVIDER = (
    "allauth",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
)
"""Only with a provider of single sign-on."""

CACHES: dict[str, dict[str, Any]] = {
    # Alike for all processes, and kept through restarts.
    "default": {
        "BACKEND": "contextlab.accounts.attempts.AttemptsCache",
        "LOCATION": "agent_sessions_attempts",
        "KEY_FUNCTION": "contextlab.accounts.account_settings.marked",
        "OPTIONS": {"MAX_ENTRIES": 20_000},  # beyond, expired rows are deleted
    }
}
LOGIN_REDIRECT_URL = "home"
PASSWORD_RESET_TIMEOUT = 24 * 3600  # seconds
ACCOUNT_ADAPTER = "sessions.views.accounts.adapter.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}  # the form finds the name for an email address
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
ACCOUNT_PRESERVE_USERNAME_CASING = True
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_CHANGE_EMAIL = True
ACCOUNT_EMAIL_VERIFICATION = "optional"
ACCOUNT_EMAIL_CONFIRMATION_EXPIRE_DAYS = 1
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
ACCOUNT_EMAIL_SUBJECT_PREFIX = "[ContextLab] "
MFA_ADAPTER = "sessions.views.accounts.second_factor.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_FORMS = {
    "authenticate": "sessions.views.accounts.codes.Code",
    "reauthenticate": "sessions.views.accounts.codes.CodeAgain",
    "activate_totp": "sessions.views.accounts.codes.FirstCode",
}
MFA_TOTP_ISSUER = "ContextLab"
MFA_TOTP_TOLERANCE = 1  # codes before and after: clocks of phones differ
MFA_ALLOW_UNVERIFIED_EMAIL = True  # people join by invitation, not with any address
ACCOUNT_RATE_LIMITS = {
    # Failed attempts: for a name from one source, from one source, for a name from everywhere.
    "login_failed": "10/15m/key",
    "login_failed_from": "30/15m/key",
    "login_failed_for": "100/15m/key",
    "login": None,
    "reset_password": "10/15m/ip,3/15m/key",
}


def marked(key: str, prefix: str, version: int) -> str:
    """The name of a count: a keyed hash, because people type passwords into the field for names."""
    named = f"{prefix}:{version}:{key}"
    return salted_hmac("contextlab.accounts.attempts", named, algorithm="sha256").hexdigest()
