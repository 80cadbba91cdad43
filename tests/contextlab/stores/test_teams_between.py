"""A team goes from one database to another of the other kind, and is the same there."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sessions.actions.accounts import audit
from sessions.actions.imports.team_export import export_team
from sessions.actions.live import folds
from tests.contextlab.stores.separate_store import PostgresStore, SqliteStore
from tests.sessions.imports.test_teams_exported import filled

pytestmark = pytest.mark.django_db


@contextmanager
def on_postgres(folder: Path, server: str) -> Iterator[PostgresStore]:
    store = PostgresStore(folder, server)
    try:
        yield store
    finally:
        store.administer(f"DROP DATABASE {store.name} WITH (FORCE)")


def lines_of(place: Path) -> dict[str, list[Any]]:
    """Lines by file, without those of people."""
    with zipfile.ZipFile(place) as archive:
        return {
            name: [
                line
                for line in map(json.loads, archive.read(name).splitlines())
                if line["is"] != "review"
            ]
            for name in archive.namelist()
            if name.endswith(".jsonl")
        }


def test_from_sqlite_to_postgresql(tmp_path: Path, postgres: str) -> None:
    folds.forget_all()
    files = [tmp_path / f"{number}.zip" for number in range(3)]
    export_team(filled(), files[0], audit.COMMAND)
    sqlite = SqliteStore(tmp_path / "sqlite")
    with on_postgres(tmp_path / "postgres", postgres) as other:
        for number, store in enumerate((sqlite, other)):
            store.migrate()
            assert store.run("import", str(files[number])) == (0, "")
            code, said = store.run("export", "--to", str(files[number + 1]))
            assert (code, said.split(";")[1]) == (0, " nothing masked.\n")
        assert other.run("verify") == (0, "")
        held, said = other.query("SELECT count(*), max(number) FROM agent_sessions_auditentry")[0]
        assert held == said > 0
    assert lines_of(files[1]) == lines_of(files[0])
    assert lines_of(files[2]) == lines_of(files[1])
    folds.forget_all()
