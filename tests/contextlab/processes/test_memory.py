"""What processes load, and what they do not."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from tests.conftest import ROOT
from tests.empty_store import DATABASE, with_tables


def printed(code: str, folder: Path) -> str:
    given = {"CONTEXTLAB_DATA_DIR": str(folder), "DATABASE_URL": "", "PYTHONPATH": str(ROOT)}
    given["DJANGO_SETTINGS_MODULE"] = "contextlab.settings"
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **given},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.strip()


def test_job_processes_carry_neither_the_reactor_nor_routes(tmp_path: Path):
    """All that is loaded before the fork is copied as soon as the server uses it; what all of them
    need is there."""
    lines = (
        "import sys",
        "from contextlab.processes import job",
        "job.load()",
        "from contextlab.management.commands import serve",
        "names = 'twisted', 'autobahn', 'ninja', 'anthropic', 'genai_prices'",
        "print([name for name in names if name in sys.modules])",
    )
    assert printed("\n".join(lines), tmp_path) == "['genai_prices']"


def test_a_server_migrates_in_another_process(tmp_path: Path):
    """It lacks the table of browser sessions: all tables would take three times as long."""
    with closing(sqlite3.connect(with_tables(tmp_path) / DATABASE)) as store, store:
        store.execute("DROP TABLE django_session")
        store.execute("DELETE FROM django_migrations WHERE app = 'sessions'")
    lines = (
        "import django; django.setup()",
        "import sys",
        "from contextlab import schema",
        "schema.call_command = None",
        "assert [one.app_label for one in schema.missing_migrations()] == ['sessions']",
        "schema.bring_up_to_date(apart=True)",
        "print(len(schema.missing_migrations()))",
    )
    assert printed("\n".join(lines), tmp_path) == "0"
