"""Runs the store's tests on PostgreSQL when one answers: `python tests/on_postgres.py`."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEFAULT = "postgres://root@127.0.0.1:5432/test"


def url() -> str:
    """A PostgreSQL in which tests may create databases."""
    return os.environ.get("CONTEXTLAB_TEST_POSTGRES") or DEFAULT


def why_not() -> str:
    """Empty when it answers, else a sentence."""
    import psycopg

    try:
        psycopg.connect(url(), connect_timeout=3).close()
    except psycopg.OperationalError as error:
        return f"no PostgreSQL answers at {url()} ({type(error).__name__})"
    return ""


def marked() -> list[str]:
    """The files whose tests are of the store: the others need not be loaded to find that out."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(path.relative_to(ROOT)) for path in files if "mark.store" in path.read_text()]


def main() -> int:
    """pytest's exit code; without PostgreSQL 0, or 1 where CONTEXTLAB_CI says it must be there."""
    if missing := why_not():
        print(f"The store was not tested on PostgreSQL: {missing}.")
        print("Set CONTEXTLAB_TEST_POSTGRES to the URL of one that may be written to.")
        return 1 if os.environ.get("CONTEXTLAB_CI") else 0
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "store", *sys.argv[1:], *marked()],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": url()},
        check=False,
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
