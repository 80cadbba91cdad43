"""An audit of the store's rows, independent of the product's code."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

NOTHING = {
    "messages without a gap": (
        "SELECT s.id FROM agent_sessions_session s LEFT JOIN agent_sessions_message m"
        " ON m.session_id = s.id GROUP BY s.id, s.message_count"
        " HAVING COUNT(m.id) != s.message_count OR COALESCE(MAX(m.seq), 0) != s.message_count"
    ),
    "a blob for every block": (
        "SELECT b.id FROM agent_sessions_block b WHERE NOT EXISTS"
        " (SELECT 1 FROM agent_sessions_blob x WHERE x.sha = b.sha)"
    ),
    "a blob for every replacement": (
        "SELECT r.id FROM agent_sessions_replacement r WHERE NOT EXISTS"
        " (SELECT 1 FROM agent_sessions_blob x WHERE x.sha = r.sha)"
    ),
    "revisions from 1 to the head": (
        "SELECT r.id FROM agent_sessions_run r LEFT JOIN agent_sessions_revision v"
        " ON v.run_id = r.id GROUP BY r.id, r.head"
        " HAVING COUNT(v.id) != r.head OR COALESCE(MAX(v.number), 0) != r.head"
    ),
    "no revision without an edit": (
        "SELECT v.id FROM agent_sessions_revision v WHERE NOT EXISTS"
        " (SELECT 1 FROM agent_sessions_edit e WHERE e.revision_id = v.id)"
    ),
    "an entry ends when it is closed, and not before it begins": (
        "SELECT id FROM agent_sessions_entry"
        " WHERE to_step < from_step OR (to_step IS NULL AND closed_by_id IS NOT NULL)"
    ),
    "no block stands twice": (
        "SELECT run_id, block_id FROM agent_sessions_entry"
        " WHERE block_id IS NOT NULL AND to_step IS NULL"
        " GROUP BY run_id, block_id HAVING COUNT(*) > 1"
    ),
    "no replacement stands twice": (
        "SELECT run_id, replacement_id FROM agent_sessions_entry"
        " WHERE replacement_id IS NOT NULL AND to_step IS NULL"
        " GROUP BY run_id, replacement_id HAVING COUNT(*) > 1"
    ),
}
"""Invariants after any crash, each with a query that finds violations."""


class Store:
    """A database, by the file of SQLite or the URL of PostgreSQL."""

    def __init__(self, where: Path | str) -> None:
        self.where = where

    def rows(self, sql: str) -> list[Any]:
        """The answer to a query."""
        if isinstance(self.where, Path):
            database = sqlite3.connect(self.where, timeout=20)
            try:
                return database.execute(sql).fetchall()
            finally:
                database.close()
        import psycopg

        with psycopg.connect(self.where) as connection:
            return connection.execute(sql.encode()).fetchall()

    def audit(self) -> None:
        """Fail with the names of violated invariants."""
        if isinstance(self.where, Path):
            assert self.rows("PRAGMA integrity_check") == [("ok",)]
            assert self.rows("PRAGMA foreign_key_check") == []
        broken = {what: found for what, sql in NOTHING.items() if (found := self.rows(sql))}
        assert not broken, broken


def in_data_dir(folder: Path) -> Store:
    """The SQLite of a data directory."""
    return Store(folder / "contextlab.sqlite3")
