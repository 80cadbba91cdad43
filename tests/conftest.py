"""What tests of every package share: a running server, a browser, PostgreSQL."""

import functools
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, settings

from tests import on_postgres
from tests.empty_store import ROOT, empty_database, empty_store, with_tables
from tests.server import (
    SESSION,
    START_SECONDS,
    STARTED,
    Server,
    free_port,
    running,
    start_server,
)

__all__ = ["ROOT", "SESSION", "START_SECONDS", "STARTED", "Server", "free_port", "running"]
__all__ += ["start_server"]

# How long an example takes says how busy the machine is.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
CHROMIUM = "/usr/bin/chromium"
SHELL = shutil.which("chromium-headless-shell")
"""The same engine without a browser around it. The whole one also draws its own windows, which
is more than half of its work."""


def unavailable(what: str) -> None:
    """Skips with the reason; on the machine that must have everything, fails."""
    if os.environ.get("CONTEXTLAB_CI"):
        pytest.fail(f"CONTEXTLAB_CI is set, and {what}")
    pytest.skip(what)


def wait_until(true: Callable[[], object], seconds: float = START_SECONDS) -> None:
    """Returns as soon as a condition holds; the limit is the sign of a fault, not a measure."""
    limit = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < limit, "it never became true"
        threading.Event().wait(0.02)


def database_url() -> str:
    """The database of this test, for processes that it starts."""
    from django.db import connection

    where = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{where['NAME']}"
    host, port = where["HOST"] or "127.0.0.1", where["PORT"] or 5432
    return f"postgres://{where['USER']}:{where['PASSWORD']}@{host}:{port}/{where['NAME']}"


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup() -> None:
    """Leave the name of the test out of the environment: in another one than before, the product
    starts another fork server, which takes a second."""
    os.environ.pop("PYTEST_CURRENT_TEST", None)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call() -> None:
    """Leave it out of the test's own environment too: pytest has set it again."""
    os.environ.pop("PYTEST_CURRENT_TEST", None)


@pytest.fixture(scope="session", autouse=True)
def static_files_listed_once() -> Iterator[None]:
    """Each client of Django's makes its own middleware, for which WhiteNoise lists all files."""
    from whitenoise.middleware import WhiteNoiseMiddleware

    known: dict[str, dict[str, Any]] = {}
    list_files = WhiteNoiseMiddleware.add_files_from_finders

    def listed(made: WhiteNoiseMiddleware) -> None:
        if made.static_prefix not in known:
            list_files(made)
            known[made.static_prefix] = made.files
        made.files = known[made.static_prefix]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(WhiteNoiseMiddleware, "add_files_from_finders", listed)
        yield


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_modify_db_settings: None) -> Iterator[bool]:
    """Whether this run's database is already there: on SQLite it is a copy of the tables. On
    PostgreSQL Django makes the copy."""
    from django.db import connection

    if connection.vendor != "sqlite":
        connection.settings_dict["TEST"]["TEMPLATE"] = empty_database(on_postgres.url())
        yield False
        return
    database = Path(connection.settings_dict["TEST"]["NAME"])
    shutil.copy(empty_store(), database)
    sys.addaudithook(functools.partial(_refuse_to_open, str(database)))
    yield True
    connection.close()
    for file in database.parent.glob(f"{database.name}*"):
        file.unlink()


def _refuse_to_open(database: str, event: str, arguments: tuple[Any, ...]) -> None:
    """Closing a file frees all locks that its process has on it. Without SQLite's, the next process
    truncates its shared memory, and this one dies of a bus error (sqlite.org/howtocorrupt.html)."""
    if event == "open" and str(arguments[0]).startswith(database):
        raise RuntimeError(f"{arguments[0]} is open in SQLite: let another process read it")


@pytest.fixture(scope="session", autouse=True)
def emptied_by_rows() -> Iterator[None]:
    """Delete the rows that a test with transactions of its own leaves. Django would truncate every
    table, for which PostgreSQL waits for the disk hundreds of times, and make its content types
    again. The triggers of the audit log, which refuse it, are as they were before the next test."""
    from django.db import connection
    from django.test import TransactionTestCase

    log = "agent_sessions_auditentry"

    def emptied(_case: TransactionTestCase) -> None:
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute(f"ALTER TABLE {log} DISABLE TRIGGER USER")
                _delete_rows()
                cursor.execute(f"ALTER TABLE {log} ENABLE TRIGGER USER")
                return
            name = f"{log}_keeps"
            cursor.execute("SELECT sql FROM sqlite_master WHERE name = %s", [name])
            found = cursor.fetchone()
            if found:
                cursor.execute(f"DROP TRIGGER {name}")
            _delete_rows()
            if found:
                cursor.execute(found[0])

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(TransactionTestCase, "_fixture_teardown", emptied)
        yield


def _delete_rows() -> None:
    """Empty the tables of Django, but not those that its own migrations fill."""
    from django.db import connection, transaction

    known = connection.introspection.django_table_names(only_existing=True, include_views=False)
    tables = sorted({*known} - {"django_content_type", "auth_permission"})
    filled = " UNION ALL ".join(
        f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {name})" for name in tables
    )
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(filled)
        for (name,) in cursor.fetchall():
            cursor.execute(f"DELETE FROM {name}")


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for all files that one process of this run tests."""
    with running(tmp_path_factory.mktemp("shared")) as server:
        yield server


@pytest.fixture(scope="module")
def served(shared_server: Server, request: pytest.FixtureRequest) -> Server:
    """The shared server, where the tests of this file have a team of their own.

    It is neither stopped nor looked into: for that there is `own_server`.
    """
    return shared_server.with_team(request.path.stem.removeprefix("test_").replace("_", " "))


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for the tests of one file, which has nothing of others."""
    with running(tmp_path_factory.mktemp("own")) as server:
        yield server


@pytest.fixture
def server_with(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Starts servers with an environment of their own, on one data directory per test."""
    started: list[Server] = []
    with_tables(tmp_path)

    def start(**environment: str) -> Server:
        started.append(start_server(tmp_path, **environment))
        return started[-1]

    yield start
    for server in started:
        server.kill()


@pytest.fixture(scope="module")
def browser():
    """Chromium, started once per file. Our own fixture: the plug-in's keeps an event loop open
    for the whole run, and then neither the ORM nor asyncio tests work."""
    from playwright.sync_api import sync_playwright

    program = SHELL or CHROMIUM
    if not Path(program).exists():
        unavailable(f"{program} is not installed")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    flags += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=flags)
        yield chromium
        chromium.close()


@contextmanager
def watched(browser: Any, served: Server) -> Iterator[Any]:
    """A signed-in page with an empty cache. The test fails on an error in the console, which is
    also where a violated content policy is reported, and on a request to any other host."""
    context = browser.new_context(base_url=served.address)
    opened = context.new_page()
    wrong: list[str] = []
    opened.on(
        "console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else 0
    )
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("request", lambda request: wrong.extend(_foreign(request.url, served.address)))
    served.let_in(context)
    yield opened
    context.close()
    assert not wrong, wrong


@pytest.fixture
def page(browser, served: Server):
    """A watched page that shows the first one."""
    with watched(browser, served) as opened:
        opened.goto("/")
        yield opened


def _foreign(url: str, address: str) -> list[str]:
    parts = urlsplit(url)
    here = parts.scheme in ("data", "blob") or parts.netloc == urlsplit(address).netloc
    return [] if here else [f"request to {url}"]


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis of our own, which a test may also end."""
    program = shutil.which("redis-server")
    if program is None:
        unavailable("redis-server is not installed")
    port = free_port()
    command = [str(program), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    folder = tmp_path_factory.mktemp("redis")
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    with socket.socket() as probe:
        wait_until(lambda: probe.connect_ex(("127.0.0.1", port)) == 0)
    yield f"redis://127.0.0.1:{port}/0"
    server.kill()
    server.wait()


@pytest.fixture(scope="session")
def postgres() -> str:
    """The URL of a PostgreSQL that tests may create databases in."""
    if missing := on_postgres.why_not():
        unavailable(missing)
    return on_postgres.url()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Schemathesis calls its tests of all operations alike, and of tests that are called alike
    xdist runs one, without a word: each gets the name of its operation."""
    for item in items:
        if operation := getattr(item, "operation_label", None):
            item._id = replace(item.id, params=operation)  # type: ignore[attr-defined]
    alike = [name for name, many in Counter(item.nodeid for item in items).items() if many > 1]
    if alike:
        raise pytest.UsageError(f"several tests are called {alike[0]}: xdist would run one")
