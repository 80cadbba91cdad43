"""The cache of sign-in: counts of attempts, and codes that were used."""

from __future__ import annotations

from typing import Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT
from django.core.cache.backends.db import DatabaseCache


class AttemptsCache(DatabaseCache):
    """Rows stay until they expire, so that adding many others removes no count."""

    def set(
        self,
        key: Any,
        value: Any,
        timeout: float | None = DEFAULT_TIMEOUT,
        version: int | None = None,
    ) -> None:
        """Store a value. No attempts are no row: a refused attempt, which is not counted, leaves
        nothing."""
        if value == []:
            self.delete(key, version)
        else:
            super().set(key, value, timeout, version)

    def _cull(self, db: str, cursor: Any, now: Any, num: int) -> None:  # noqa: ARG002
        super()._cull(db, cursor, now, 0)  # type: ignore[misc] # 0 others: only what expired
