"""File permissions: what this product writes is readable by its own user only."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

UMASK = 0o077
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
OURS = ("secret_key", "login_token", "serve.lock", "migrate.lock")
"""Files of the data directory, besides those of the database."""


def keep_private() -> None:
    """Make files that this process and its children create readable by their owner only."""
    os.umask(UMASK)


def loose_files(folder: Path, database: Path | None = None) -> Iterator[Path]:
    """Yield our files that other users may read or write: older versions created such."""
    files = [folder / name for name in OURS]
    if database is not None:
        files += [database.with_name(database.name + end) for end in ("", "-wal", "-shm")]
    for file in files:
        if file.is_file() and _mode(file) & _OTHERS:
            yield file


def tighten(files: Iterator[Path]) -> list[str]:
    """Make files private; return a warning for each that belongs to another user."""
    wrong = []
    for file in files:
        try:
            file.chmod(0o600)
        except PermissionError:
            wrong.append(f"other users can read {file}; run `chmod 600 {file}` as its owner")
    return wrong


def open_folder(folder: Path) -> str:
    """Return what to do if other users may enter a folder; empty if they may not.

    It is not changed: it may be shared on purpose, or hold more than our files.
    """
    mode = _mode(folder)
    if not mode & _OTHERS:
        return ""
    what = "change" if mode & _OTHERS_WRITE else "enter"
    return f"other users can {what} {folder} (mode {mode:o}); run `chmod 700 {folder}`"


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)
