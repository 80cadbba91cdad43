"""Migrations that servers of the release before can run on (docs/operating.md, Upgrade)."""

from collections.abc import Iterable, Iterator

from django.apps import apps
from django.db.migrations import operations as ops
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation

SINCE = "0060"
"""Older ones also remove: servers stop for them."""

ADDS = (ops.CreateModel, ops.AddIndex, ops.AlterField)

ADD_TRIGGERS = {"0074_session_names", "0075_session_grams"}
"""Operations in Python: triggers that fill a new table, and its rows and index, while others write.
Tried while a server of the release before took an agent's steps."""


def flat(operations: Iterable[Operation]) -> Iterator[Operation]:
    """Operations, those on the state in place of those on the database."""
    for one in operations:
        if isinstance(one, ops.SeparateDatabaseAndState):
            yield from flat(one.state_operations)
        else:
            yield one


def accepts_rows_without(operation: Operation) -> bool:
    """Whether an INSERT that does not name the added column works."""
    if not isinstance(operation, ops.AddField):
        return False
    field = apps.get_model("agent_sessions", operation.model_name)._meta.get_field(operation.name)
    return field.null or field.has_db_default()


def is_made_anew(operation: Operation, all_of_it: Iterable[Operation]) -> bool:
    """Whether an index is removed to be made again: servers need none of it meanwhile."""
    made = {one.index.name for one in all_of_it if isinstance(one, ops.AddIndex)}
    return isinstance(operation, ops.RemoveIndex) and operation.name in made


def test_a_release_only_adds() -> None:
    migrations = MigrationLoader(None).disk_migrations
    since = {
        name: one
        for (app, name), one in migrations.items()
        if app == "agent_sessions" and name >= SINCE
    }
    assert min(since).startswith(SINCE)
    wrong = [
        f"{name}: {operation.describe()}"
        for name, one in sorted(since.items())
        for operation in flat(one.operations)
        if not isinstance(operation, ADDS) and not accepts_rows_without(operation)
        if not is_made_anew(operation, one.operations)
        if not (isinstance(operation, ops.RunPython) and name in ADD_TRIGGERS)
    ]
    assert wrong == []
