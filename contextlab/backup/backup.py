"""Take a backup of the configured store, restore one, and take one before a migration."""

from __future__ import annotations

from pathlib import Path

from django.apps import apps
from django.conf import settings
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from contextlab.backup import archive, objects, postgres, sqlite
from contextlab.backup.archive import Manifest, NotABackup
from contextlab.version import version

KEPT_BEFORE_MIGRATIONS = 3
"""Backups before migrations; older ones are removed."""


class NotEmpty(Exception):
    """A restore would overwrite something; a sentence says what, and what to do."""


def folder() -> Path:
    """Where backups go unless a place is named."""
    return Path(settings.DATA_DIR) / "backups"


def take(place: Path, *, with_objects: bool = True) -> Manifest:
    """Write a backup of the store to a new file, while others use the store.

    Raises BackupUnderway, DumpFailed, ObjectsMissing, ObjectsAway, OSError.
    """
    held = objects.BackedUp()
    with archive.writing(place) as partial:
        if connection.vendor == "sqlite":
            copied = partial.with_suffix(".store")
            sqlite.copy(Path(connection.settings_dict["NAME"]), copied)
            described = _described(sqlite.migrations(copied), sqlite.rows(copied))
            named = sqlite.objects(copied) if with_objects else []
            made = archive.write(partial, described, sqlite.pieces(copied), held.of(named))
        else:
            with postgres.snapshot() as snapshot:
                rows, sums = postgres.tables()
                described = _described(_applied(), rows, sums)
                named = objects.named() if with_objects else []
                made = archive.write(partial, described, postgres.dump(snapshot), held.of(named))
        held.check()
        return made


def restore(place: Path) -> Manifest:
    """Restore a backup into an empty store, and check that it equals what was backed up.

    Raises NotABackup, NotEmpty, DumpFailed, ObjectsAway, OSError.
    """
    with archive.opened(place) as backup:
        manifest = backup.manifest
        _check_fits(manifest)
        file = _empty_file() if connection.vendor == "sqlite" else None
        if file is None:
            _check_no_tables()
        objects.restore(backup.objects)  # before the rows that name them
        if file is not None:
            sqlite.restore(manifest, backup.store, file)
        else:
            postgres.restore(manifest, backup.store)
        return manifest


def check(place: Path) -> Manifest:
    """Read a whole backup and compare its hash. Raises NotABackup, OSError."""
    with archive.opened(place) as backup:
        for part in (backup.store, backup.objects):
            for _ in part:
                pass
        return backup.manifest


def before_migration(name: str) -> Path | None:
    """Back up a store that has tables before a migration of that name; keep the newest few."""
    if not MigrationLoader(connection).applied_migrations:
        return None
    place = folder() / archive.name_now(f"before-{name}")
    take(place, with_objects=False)  # no migration touches them
    for old in sorted(folder().glob("contextlab-*-before-*.zip"))[:-KEPT_BEFORE_MIGRATIONS]:
        old.unlink()
    return place


def _described(
    migrations: list[str], rows: dict[str, int], sums: dict[str, str] | None = None
) -> Manifest:
    return Manifest(
        engine=connection.vendor,
        version=version(),
        created=archive.now(),
        migrations=migrations,
        rows=rows,
        sums=sums or {},
    )


def _applied() -> list[str]:
    return [".".join(name) for name in MigrationLoader(connection).applied_migrations]


def _unknown(applied: list[str]) -> set[str]:
    """Migrations of ours that this version does not have."""
    known = set()
    for migration in MigrationLoader(None, ignore_no_migrations=True).disk_migrations.values():
        known |= {(migration.app_label, migration.name), *migration.replaces}
    ours = apps.get_app_config("agent_sessions").label
    return {name for name in applied if name.startswith(f"{ours}.")} - {".".join(n) for n in known}


def _check_fits(manifest: Manifest) -> None:
    if manifest.engine != connection.vendor:
        raise NotABackup(
            f"It is of {manifest.engine}, and DATABASE_URL names {connection.vendor}. "
            "Restore it into the same kind of database."
        )
    if newer := _unknown(manifest.migrations):
        raise NotABackup(
            f"It was made by a newer version ({manifest.version}, {min(newer)}). "
            "Install that version first."
        )


def _empty_file() -> Path:
    file = Path(connection.settings_dict["NAME"])
    if left := [
        one for end in ("", "-wal", "-shm") if (one := file.with_name(file.name + end)).exists()
    ]:
        raise NotEmpty(
            f"{left[0]} exists. Stop the server and move the file away, or set "
            "CONTEXTLAB_DATA_DIR to an empty folder."
        )
    return file


def _check_no_tables() -> None:
    with connection.cursor() as cursor:
        if connection.introspection.table_names(cursor):
            raise NotEmpty("The database has tables. Set DATABASE_URL to an empty database.")
