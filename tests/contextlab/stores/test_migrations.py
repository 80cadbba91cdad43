"""Migrations: a store with the eighteen replaced migrations is migrated by the current ones.

`store_9ecb88f.db.gz` (SQLite) and `store_9ecb88f.sql.gz` (`pg_dump --inserts`) were made by commit
9ecb88f: `contextlab migrate`, then the steps of `contextlab demo` with one recorded session
(`demo.play(…, without=…)`) and one simulated policy (`presets=["offload-first"]`).
"""

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError
from django.db import OperationalError

from contextlab.management.commands import migrate

STORE = Path(__file__).with_name("store_9ecb88f")
TITLES = {
    "Children under four go free",
    "How long may a text message be?",
    "Late ships in two languages",
}
# The store has none: its agents asked for none.
A_CONTEXT = (
    "INSERT INTO agent_sessions_servedcontext"
    " (id, run_id, revision, seq, step, format, tokens, recited, knowledge, created)"
    " SELECT 'ctx', id, 0, 1, 1, 'anthropic', 1, 0, '', created FROM agent_sessions_run"
    " WHERE origin = 'served' ORDER BY created LIMIT 1"
)


@pytest.mark.fault("M4", "D8")
def test_a_store_of_the_replaced_migrations_is_migrated_and_opened(stores):
    old, new = stores
    old.put(STORE)
    before = old.schema()
    old.query(A_CONTEXT)
    assert old.run("migrate") == (0, "")
    assert len([*old.folder.glob("backups/*.zip")]) == 1
    applied = {name for (name,) in old.query("SELECT name FROM django_migrations")}
    assert {"0018_break_causes", "0001_squashed_0018_break_causes", "0019_words"} <= applied

    titles = old.query("SELECT title, external_id FROM agent_sessions_session")
    assert {title for title, _ in titles} == TITLES
    for _, external_id in titles:
        assert old.run("show", external_id) == (0, "")
    origins = {origin for (origin,) in old.query("SELECT origin FROM agent_sessions_run")}
    assert origins == {"recorded", "managed", "simulated"}
    assert old.query("SELECT id FROM agent_sessions_managedcontext") == [("ctx",)]
    figures = str(old.query("SELECT figures FROM agent_sessions_simulationresult"))
    assert "in_context" in figures and "in_place" not in figures
    documents = str(old.query("SELECT document FROM agent_sessions_policyversion"))
    assert "ttl" in documents and "lifetime" not in documents
    assert ("careful",) in old.query("SELECT name FROM agent_sessions_policy")
    assert ("demo.loaded",) in old.query("SELECT action FROM agent_sessions_auditentry")
    for table in ("blob", "message", "block"):
        with pytest.raises(Exception, match="insert-only"):
            old.query(f"UPDATE agent_sessions_{table} SET id = id")
    for change in ("UPDATE {} SET number = number + 1", "DELETE FROM {}"):
        with pytest.raises(Exception, match="append-only"):
            old.query(change.format("agent_sessions_auditentry"))
    assert old.run("audit", "verify") == (0, "")

    # It may warn that pages are not built.
    assert old.run("makemigrations", "--check", "--dry-run", program="manage")[0] == 0
    new.migrate()
    assert len(before) > 500
    assert old.schema() == new.schema()


def test_processes_that_start_at_once_migrate_one_after_another(stores):
    store, _ = stores
    if store.url == "":
        commands = ["token create", "token create", "token list"]  # these migrate by themselves
    else:
        commands = ["migrate --verbosity 0"] * 3
    assert store.run_all(*commands) == [(0, "")] * 3
    assert store.run("token", "list") == (0, "")


@pytest.mark.fault("D8")
def test_a_store_with_some_of_the_replaced_migrations_is_refused_in_one_sentence(stores):
    store, _ = stores
    store.put(STORE)
    store.query("DELETE FROM django_migrations WHERE name = '0018_break_causes'")
    store.query("ALTER TABLE agent_sessions_run DROP COLUMN engine")
    before = store.schema()
    for command in ("migrate", "serve", "show x"):
        code, said = store.run(*command.split())
        assert code == 1
        assert said.startswith("The database stopped partway through migrations ")
        assert said.endswith("of commit 9ecb88f on it first, then of this version.\n")
        assert said.count("\n") == said.count(".") == 1
    assert store.run("doctor")[0] == 1
    assert store.schema() == before


@pytest.mark.parametrize("state", ["40P01", "55P03"])
def test_a_migration_that_meets_locks_of_agents_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], state: str
):
    tries = []

    def handle(self: Any, *_: Any, **__: Any) -> None:
        tries.append(self)
        if len(tries) < 3:
            raise OperationalError from LockError(state)

    monkeypatch.setattr(migrate.migrate.Command, "handle", handle)
    monkeypatch.setattr(migrate, "PAUSES", (0, 0))
    migrate.Command()._migrate()
    assert len(tries) == 3
    assert capsys.readouterr().out.count("tries again") == 2


@pytest.mark.parametrize(
    ("state", "patience", "raised"),
    [("53100", 600, OperationalError), ("40P01", -1, CommandError)],
)
def test_a_migration_that_fails_otherwise_or_for_long_ends(
    monkeypatch: pytest.MonkeyPatch, state: str, patience: float, raised: type[Exception]
):
    def handle(*_: Any, **__: Any) -> None:
        raise OperationalError from LockError(state)

    monkeypatch.setattr(migrate.migrate.Command, "handle", handle)
    monkeypatch.setattr(migrate, "PATIENCE", patience)
    with pytest.raises(raised):
        migrate.Command()._migrate()


class LockError(Exception):
    """An error of psycopg with a state."""

    def __init__(self, sqlstate: str) -> None:
        self.sqlstate = sqlstate
