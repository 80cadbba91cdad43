"""SQLite: a copy of the pages as of one moment, by SQLite's own backup."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from contextlab.backup.archive import PIECE, Manifest, NotABackup


def copy(store: Path, to: Path) -> None:
    """Copy a store that is in use. Writers go on meanwhile: all pages are of one read."""
    with closing(sqlite3.connect(store)) as source, closing(sqlite3.connect(to)) as copied:
        source.backup(copied)
        # One file: in WAL mode, opening it makes two more.
        copied.execute("PRAGMA journal_mode=DELETE").fetchall()


def rows(store: Path) -> dict[str, int]:
    """Rows of each table."""
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as database:
        named = database.execute(
            "SELECT name FROM pragma_table_list WHERE type = 'table' AND schema = 'main'"
            " AND name NOT LIKE 'sqlite_%' ORDER BY name"
        )
        return {
            name: database.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]  # noqa: S608
            for (name,) in named.fetchall()
        }


def migrations(store: Path) -> list[str]:
    """The applied migrations, as app.name."""
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as database:
        applied = database.execute("SELECT app || '.' || name FROM django_migrations ORDER BY id")
        return [name for (name,) in applied]


def objects(store: Path) -> list[str]:
    """The names of the objects that rows name."""
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as database:
        columns = database.execute("SELECT name FROM pragma_table_info('agent_sessions_blob')")
        if ("object_name",) not in columns.fetchall():  # of an older version
            return []
        named = database.execute(
            "SELECT object_name FROM agent_sessions_blob WHERE object_name <> '' ORDER BY id"
        )
        return [name for (name,) in named.fetchall()]


def pieces(store: Path) -> Iterator[bytes]:
    """The bytes of a file."""
    with store.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def restore(manifest: Manifest, store: Iterator[bytes], to: Path) -> None:
    """Write the store beside its place, check it, and move it there.

    Raises NotABackup; then, and when killed, nothing is at the place.
    """
    partial = to.with_name(f"{to.name}.restoring")
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        with partial.open("wb") as file:
            for piece in store:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        if (said := _damage(partial)) != "ok":
            raise NotABackup(f"It is damaged ({said}). Use another backup.")
        if rows(partial) != manifest.rows:
            raise NotABackup("It has other rows than its manifest says. Use another backup.")
        partial.rename(to)
    finally:
        partial.unlink(missing_ok=True)


def _damage(store: Path) -> str:
    """What SQLite finds wrong with a file first, or ok."""
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as database:
            return str(database.execute("PRAGMA integrity_check(1)").fetchone()[0])
    except sqlite3.DatabaseError as error:
        return str(error)
