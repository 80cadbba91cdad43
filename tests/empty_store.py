"""A store whose tables the migrations made once, copied wherever a test needs one of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

import django

ROOT = Path(__file__).resolve().parent.parent
DATABASE = "contextlab.sqlite3"


def with_tables(folder: Path) -> Path:
    """A data directory as a first start leaves it, without the seconds that this takes."""
    shutil.copy(empty_store(), folder / DATABASE)
    return folder


@cache
def empty_store() -> Path:
    """The file: one for all checkouts and processes, another when a migration has changed."""
    made = Path(gettempdir(), f"contextlab-{os.getuid()}-{_migrations()}.sqlite3")
    if not made.exists():
        with TemporaryDirectory() as folder:
            _migrate(folder)
            Path(folder, DATABASE).replace(made)
    return made


def _migrations() -> str:
    sources = sorted((ROOT / "sessions" / "migrations").glob("*.py"))
    known = django.__version__.encode() + b"".join(source.read_bytes() for source in sources)
    return sha256(known).hexdigest()[:16]


def _migrate(folder: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "contextlab.cli", "migrate", "--verbosity", "0"],
        cwd=ROOT,
        env={**os.environ, "CONTEXTLAB_DATA_DIR": folder, "DATABASE_URL": "", "REDIS_URL": ""},
        check=True,
    )
