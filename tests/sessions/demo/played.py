"""The demo as it is played."""

from __future__ import annotations

from compaction.tokens import Counted
from sessions.importers import records

NOW = 1_795_000_000_000


def count(text: str) -> Counted:
    """Approximate o200k counts of code, without a vocabulary."""
    return Counted(len(text) * 10 // 36)


def messages(session: records.Session) -> list[records.Message]:
    return [record for record in session.records if isinstance(record, records.Message)]
