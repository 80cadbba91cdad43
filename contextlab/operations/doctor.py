"""Installation checks: one small function each, returning a sentence."""

import json
import os
import shutil
import socket
import sqlite3
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

from django.conf import settings
from django.core.management import CommandError
from django.db import DatabaseError, connection

from contextlab import database
from contextlab.operations import permissions, safety
from contextlab.schema import missing_migrations

OK, WARNING, FAILED = "ok", "warning", "failed"
# Older versions can damage a WAL database (sqlite.org/wal.html, "the WAL-reset bug"). Distributions
# may have backported the fix.
SQLITE_MENDED = (3, 51, 3)
FREE_BYTES = 500 * 1024 * 1024
# o200k_base, counted with OpenAI's own vocabulary.
SAMPLE, SAMPLE_TOKENS = "Context engineering keeps the window small. 上下文工程", 11

# With other settings, PostgreSQL writes statements, or the rows that they fail at, into its log.
QUIET_LOG = {
    "log_min_error_statement": ("panic",),
    "log_error_verbosity": ("terse",),
    "log_statement": ("none", "ddl"),
    "log_min_duration_statement": ("-1",),
    "log_min_duration_sample": ("-1",),
    "log_transaction_sample_rate": ("0",),
}


class CheckResult(NamedTuple):
    """The result of one check; FAILED means that the product does not work."""

    name: str
    state: str
    text: str


def findings(port: int) -> Iterator[CheckResult]:
    """Run all checks; an exception counts as a failed check."""
    for name, look in LOOKS.items():
        try:
            state, text = look()
        except Exception as error:  # noqa: BLE001 (whatever is broken here is what is asked for)
            state, text = FAILED, f"{type(error).__name__}: {error}"
        yield CheckResult(name, state, text)
    yield CheckResult("port", *_port(port))


def _python() -> tuple[str, str]:
    version = ".".join(map(str, sys.version_info[:3]))
    return (OK if sys.version_info >= (3, 11) else FAILED), f"Python {version}"


def _data_dir() -> tuple[str, str]:
    folder = settings.DATA_DIR
    if not os.access(folder, os.W_OK | os.X_OK):
        return FAILED, f"{folder} is not writable; set CONTEXTLAB_DATA_DIR to another folder"
    if problem := permissions.open_folder(folder):
        return WARNING, problem
    loose = ", ".join(str(file) for file in safety.loose_files())
    if loose:
        return WARNING, f"other users can read {loose}; `contextlab serve` changes that"
    free = shutil.disk_usage(folder).free
    text = f"{folder}, {free / 1e9:.1f} GB free"
    return (OK if free > FREE_BYTES else WARNING), text


def _access() -> tuple[str, str]:
    unsafe = "; ".join(safety.unsafe())
    if settings.PUBLIC:
        state, text = FAILED, f"others can reach this server ({settings.PUBLIC})"
    else:
        state, text = WARNING, "only this machine can reach the server"
    return (state, f"{text}: {unsafe}") if unsafe else (OK, text)


def _sqlite() -> tuple[str, str]:
    text = f"SQLite {sqlite3.sqlite_version}"
    if connection.vendor != "sqlite":
        return OK, text
    connection.ensure_connection()
    if not database.holds(connection):
        return FAILED, f"{text}: no connection is held open, so closing others can lose rows"
    text += ", one connection held open against lost locks"
    if sqlite3.sqlite_version_info >= SQLITE_MENDED:
        return OK, text
    mended = ".".join(map(str, SQLITE_MENDED))
    return WARNING, (
        f"{text}. When two processes write at once, this version can reset its log wrongly in rare "
        f"cases; fixed in {mended}. Keep backups, or use a newer Python or PostgreSQL"
    )


def _database() -> tuple[str, str]:
    where = connection.settings_dict["NAME"] if connection.vendor == "sqlite" else connection.vendor
    try:
        missing = missing_migrations()
    except DatabaseError as error:
        return FAILED, f"{where} cannot be reached: {type(error).__name__}; check DATABASE_URL"
    except CommandError as error:
        return FAILED, str(error)
    if not missing:
        return OK, str(where)
    if connection.vendor == "sqlite":
        return OK, f"{where}; `contextlab serve` will migrate it"
    return FAILED, f"{where} is {len(missing)} migrations behind: run `contextlab migrate`"


def _postgres_log() -> tuple[str, str]:
    if connection.vendor != "postgresql":
        return OK, "not used"
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", [list(QUIET_LOG)]
        )
        loud = [name for name, value in cursor.fetchall() if value not in QUIET_LOG[name]]
    if not loud:
        return OK, "PostgreSQL logs no statements"
    wanted = ", ".join(f"{name} = {QUIET_LOG[name][0]}" for name in sorted(loud))
    return WARNING, f"PostgreSQL logs statements with content in them; set {wanted} for our role"


def _store() -> tuple[str, str]:
    from sessions.actions.record.verify import last_check

    found = None if missing_migrations() else last_check()
    if found is None:
        return OK, "not checked since it was made; `contextlab verify` does it"
    return (FAILED if found.good is False else OK), found.text


def _objects() -> tuple[str, str]:
    from sessions.models.record import objects

    if not objects.is_shared():
        return OK, "not used: content is in the database, uploads are in the data directory"
    name = f"doctor/{uuid.uuid4().hex}"
    try:
        objects.put({name: b"doctor"})
        found = objects.read([name], cached=False)
        objects.remove([name])
    except objects.ObjectsAway as error:
        return FAILED, f"{settings.BLOBS}: {error}; check it and AWS_ENDPOINT_URL"
    if not found:
        return FAILED, f"{settings.BLOBS} does not return what was stored"
    return OK, str(settings.BLOBS)


def _redis() -> tuple[str, str]:
    if not settings.REDIS_URL:
        return OK, "not used: jobs and live pages run inside the server"
    import redis

    client = redis.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=2, socket_timeout=2)
    try:
        client.ping()
        config: Any = client.config_get("maxmemory-policy")
    except redis.RedisError as error:
        return FAILED, f"REDIS_URL does not answer: {type(error).__name__}"
    finally:
        client.close()
    policy = config.get("maxmemory-policy", "noeviction")
    if policy != "noeviction":
        return WARNING, f"maxmemory-policy is {policy}; set it to noeviction, or wake-ups get lost"
    return OK, "answers"


def _tokenizer() -> tuple[str, str]:
    from compaction.tokens import count

    tokens = count(SAMPLE)
    if tokens != SAMPLE_TOKENS:
        return FAILED, f"a sample of {SAMPLE_TOKENS} tokens was counted as {tokens}"
    return OK, "o200k_base works offline"


def _grammars() -> tuple[str, str]:
    from compaction.outlines.grammar import rows_of
    from compaction.outlines.grammars import QUERIES

    for language in QUERIES:
        if rows_of(language, b"\n") is None:
            return FAILED, f"the grammar of {language} does not work"
    return OK, f"{len(QUERIES)} grammars work offline"


def _policy() -> tuple[str, str]:
    from compaction.policies.resolve import from_environment

    values, wrong = from_environment(os.environ)
    if wrong:
        return FAILED, "; ".join(f"{name}: {problem}" for name, problem in wrong.items())
    return (
        OK,
        f"set by the environment: {', '.join(values)}" if values else "not set by the environment",
    )


def _pages() -> tuple[str, str]:
    manifest = Path(str(settings.DJANGO_VITE["default"]["manifest_path"]))
    if not manifest.exists():
        return FAILED, f"{manifest} is missing; run `make setup`, which needs Node"
    return OK, "built"


def _port(port: int) -> tuple[str, str]:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            if _is_ours(port):
                return OK, f"contextlab is running on {port}"
            return WARNING, f"{port} is used by another program; set PORT to another port"
    return OK, f"{port} is free"


def _is_ours(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2) as answer:
            return bool(json.load(answer) == {"status": "ok"})
    except (OSError, ValueError):
        return False


LOOKS: dict[str, Callable[[], tuple[str, str]]] = {
    "python": _python,
    "data directory": _data_dir,
    "access": _access,
    "sqlite": _sqlite,
    "database": _database,
    "postgres log": _postgres_log,
    "store": _store,
    "objects": _objects,
    "redis": _redis,
    "tokenizer": _tokenizer,
    "grammars": _grammars,
    "policy values": _policy,
    "pages": _pages,
}
