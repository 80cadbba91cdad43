"""What is kept of people's attempts to sign in."""

from __future__ import annotations

from django.db import models


class LoginFailure(models.Model):
    """An attempt to sign in that failed, or is under way; kept for a quarter of an hour.

    `name` is a keyed hash of what was typed as a name: people type passwords there.
    """

    name = models.CharField(max_length=64)
    ip = models.CharField(max_length=45)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [
            models.Index(fields=["name", "at"], name="login_failures_of_name"),
            models.Index(fields=["ip", "at"], name="login_failures_from"),
        ]

    def __str__(self) -> str:
        return f"a failed login at {self.at}"
