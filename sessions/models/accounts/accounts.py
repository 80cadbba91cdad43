"""Failed sign-in attempts, kept for rate limiting."""

from __future__ import annotations

from django.db import models


class LoginFailure(models.Model):
    """A sign-in attempt that failed or is still in progress; kept for 15 minutes.

    `name` is a keyed hash of the user name meant, or of what was typed, because people type
    passwords there. `source` is an address, or a browser in which the account has signed in before.
    """

    name = models.CharField(max_length=64)
    source = models.CharField(max_length=45)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [
            models.Index(fields=["name", "at"], name="login_failures_of_name"),
            models.Index(fields=["source", "at"], name="login_failures_from"),
        ]

    def __str__(self) -> str:
        return f"a failed login at {self.at}"


class LoginAddress(models.Model):
    """The token of a printed address that signs in the local user once; at most one row exists."""

    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the token")
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField()

    def __str__(self) -> str:
        return f"a login address until {self.expires}"
