"""SQLite: one connection stays open for the life of a process, whatever threads close theirs."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, unavailable

OPENED = """
import os, sys
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
BEGINNINGS = {
    "command": "from contextlab import cli; cli.run('doctor', ['--port', '1'])",
    "server": "import contextlab.asgi",
    "job": "import django; django.setup()",
}
"""How each kind of process loads the product; `serve` and `worker` are commands too."""

PROCESSES, THREADS, ROUNDS = 3, 3, 120
WRITER = """
import json, random, sys, threading, time
import django
django.setup()
from django.db import DatabaseError, connection
from django.db.backends.signals import connection_created
from contextlab import database

held, name, threads, rounds = sys.argv[1] == "held", sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
if not held:
    connection_created.disconnect(database._hold)
written, errors = [], []

def write(thread):
    dice = random.Random(f"{name}.{thread}")
    for number in range(rounds):
        row = f"{name}.{thread}.{number}"
        try:
            with connection.cursor() as cursor:
                cursor.execute("INSERT INTO kept VALUES (%s)", [row])
            written.append(row)
            connection.close()
            time.sleep(dice.random() * 0.005)  # leaves moments in which no connection is open
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 FROM kept WHERE name = %s", [row])
                if cursor.fetchone() is None:
                    errors.append(f"{row} is lost")
        except DatabaseError as error:
            errors.append(str(error))
        finally:
            connection.close()

threads = [threading.Thread(target=write, args=(thread,)) for thread in range(threads)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
json.dump([written, errors], sys.stdout)
"""


@pytest.mark.parametrize("beginning", BEGINNINGS.values(), ids=list(BEGINNINGS))
def test_a_connection_is_held_beside_those_in_use(beginning, tmp_path, monkeypatch):
    database = tmp_path / "store.sqlite3"
    database.touch()
    monkeypatch.setenv("CONTEXTLAB_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{database}")
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "contextlab.settings")
    command = [sys.executable, "-c", f"{beginning}\n{OPENED}", str(database)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) > 0


@pytest.fixture(scope="module")
def slow_close(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that delays `close()` of the database's files."""
    compiler = shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        unavailable("the race is widened with LD_PRELOAD, which needs Linux and a C compiler")
    library = tmp_path_factory.mktemp("slow") / "slow_close.so"
    source = Path(__file__).with_name("slow_close.c")
    command = [str(compiler), "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return library


def raced(folder: Path, library: Path, held: str) -> list[str]:
    """What went wrong while processes and threads opened, wrote and closed at once."""
    database = folder / "raced.sqlite3"
    store = sqlite3.connect(database)
    store.execute("PRAGMA journal_mode=WAL")
    store.execute("CREATE TABLE kept (name TEXT PRIMARY KEY)")
    store.close()
    environment = {
        **os.environ,
        "CONTEXTLAB_DATA_DIR": str(folder),
        "DATABASE_URL": f"sqlite:///{database}",
        "DJANGO_SETTINGS_MODULE": "contextlab.settings",
        "LD_PRELOAD": str(library),
        "PYTHONPATH": str(ROOT),
    }
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, held, str(number), str(THREADS), str(ROUNDS)],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    written: set[str] = set()
    faults: list[str] = []
    for writer in writers:
        rows, errors = json.loads(writer.communicate()[0])
        written |= set(rows)
        faults += errors
    store = sqlite3.connect(database)
    try:
        kept = {name for (name,) in store.execute("SELECT name FROM kept")}
        faults += [said for (said,) in store.execute("PRAGMA integrity_check") if said != "ok"]
    except sqlite3.DatabaseError as error:
        return [*faults, str(error)]
    finally:
        store.close()
    return [*faults, *(f"{row} is lost" for row in written - kept)]


def test_no_row_is_lost_while_a_connection_is_held(slow_close, tmp_path):
    assert raced(tmp_path, slow_close, "held") == []


def test_without_it_rows_are_lost(slow_close, tmp_path):
    """What the test above would find."""
    for number in range(20):
        folder = tmp_path / str(number)
        folder.mkdir()
        if raced(folder, slow_close, "not held"):
            return
    pytest.fail("nothing was lost in twenty runs: the race was not met")
