"""Counts of sign-in attempts, and the printed address."""

from __future__ import annotations

from django.db import models


class Attempts(models.Model):
    """The table of Django's cache, which allauth counts attempts in; only Django writes it.

    `cache_key` is a keyed hash, because people type passwords into the field for names.
    """

    cache_key = models.CharField(primary_key=True, max_length=255)
    value = models.TextField()
    expires = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name_plural = "attempts"

    def __str__(self) -> str:
        return f"attempts until {self.expires}"


class LoginAddress(models.Model):
    """The token of a printed address that signs in the local user once; at most one row exists."""

    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the token")
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField()

    def __str__(self) -> str:
        return f"a login address until {self.expires}"
