"""SQLite: one connection stays open for the life of a process, whatever threads close theirs."""

import subprocess
import sys

STORE = """
import os, sys, django
django.setup()
from pathlib import Path
from django.db import connection, connections

def opened():
    fds = [Path("/proc/self/fd") / fd for fd in os.listdir("/proc/self/fd")]
    return sum(1 for fd in fds if os.path.exists(fd) and os.readlink(fd) == sys.argv[1])

with connection.cursor() as cursor:
    cursor.execute("SELECT 1")
connections.close_all()
print(opened())
"""


def test_a_connection_is_held_beside_those_in_use(tmp_path, monkeypatch):
    database = tmp_path / "store.sqlite3"
    database.touch()
    monkeypatch.setenv("CONTEXTLAB_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{database}")
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "contextlab.settings")
    command = [sys.executable, "-c", STORE, str(database)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) > 0
