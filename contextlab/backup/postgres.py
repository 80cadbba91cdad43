"""PostgreSQL: `pg_dump` and `pg_restore`, with sums of all rows taken from the dump's snapshot."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction
from django.db.backends.postgresql.client import DatabaseClient

from contextlab.backup.archive import PIECE, Manifest, NotABackup

# A float's or a time's text could depend on who asks; all connections here are Django's.
_SUM = (
    "SELECT count(*),"
    " coalesce(sum(('x' || left(md5(t::text), 16))::bit(64)::bigint::numeric), 0)::text FROM "
)


class DumpFailed(Exception):
    """`pg_dump` or `pg_restore` is missing or failed; a sentence says why."""


@contextmanager
def snapshot() -> Iterator[str]:
    """A transaction that sees one moment of the database, and its name for other connections."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SELECT pg_export_snapshot()")
        yield cursor.fetchone()[0]


def tables() -> tuple[dict[str, int], dict[str, str]]:
    """Rows of each table, and a sum of their hashes that does not depend on their order."""
    rows, sums = {}, {}
    with connection.cursor() as cursor:
        for name in sorted(connection.introspection.table_names(cursor)):
            cursor.execute(_SUM + connection.ops.quote_name(name) + " t")
            rows[name], sums[name] = cursor.fetchone()
    return rows, sums


def dump(snapshot: str) -> Iterator[bytes]:
    """What `pg_dump` writes of a snapshot. Raises DumpFailed."""
    options = ["--format=custom", "--compress=0", "--no-owner", "--no-privileges"]
    command, environment = _command("pg_dump", *options, f"--snapshot={snapshot}")
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(  # noqa: S603
            command, env=environment, stdout=subprocess.PIPE, stderr=said
        )
        assert process.stdout is not None
        try:
            while piece := process.stdout.read(PIECE):
                yield piece
        finally:
            process.stdout.close()
            code = process.wait()
        if code:
            raise DumpFailed(f"pg_dump failed: {_last_line(said)}")


def restore(manifest: Manifest, store: Iterator[bytes]) -> None:
    """Restore a dump into the empty database, in one transaction, and compare the sums.

    Raises NotABackup, DumpFailed; when it is killed, nothing is stored.
    """
    options = ["--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error"]
    with tempfile.TemporaryFile() as dumped, tempfile.TemporaryFile() as said:
        for piece in store:  # checks the hash before the first row is stored
            dumped.write(piece)
        dumped.seek(0)
        command, environment = _command("pg_restore", *options)
        ended = subprocess.run(  # noqa: S603
            command, env=environment, stdin=dumped, stderr=said, check=False
        )
        if ended.returncode:
            raise DumpFailed(f"pg_restore failed, nothing was restored: {_last_line(said)}")
    rows, sums = tables()
    differing = sorted(
        name for name in manifest.rows.keys() | rows if sums.get(name) != manifest.sums.get(name)
    )
    if differing:
        raise NotABackup(
            f"The restored database differs from it in {', '.join(differing)}. Use another backup."
        )


def _command(program: str, *options: str) -> tuple[list[str], dict[str, str]]:
    found = shutil.which(program)
    if found is None:
        raise DumpFailed(
            f"{program} is not installed. Install PostgreSQL's client programs "
            "(Debian: postgresql-client)."
        )
    (_, *where), environment = DatabaseClient.settings_to_cmd_args_env(connection.settings_dict, [])
    *options_of_it, database = where
    return (
        [found, *options, *options_of_it, f"--dbname={database}"],
        {**os.environ, **(environment or {})},
    )


def _last_line(said: Any) -> str:
    said.seek(0)
    lines = said.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
