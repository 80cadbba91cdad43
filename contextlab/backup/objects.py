"""Object storage: the objects of a backup, and backups that are objects themselves."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.files import File
from django.db import connection
from django.utils.module_loading import import_string

from contextlab.backup.archive import Object
from contextlab.object_settings import s3
from sessions.models import Blob
from sessions.models.record import objects

AT_ONCE = 32
"""Objects in memory at once."""
SCHEME = "s3://"


class ObjectsMissing(Exception):
    """Objects that rows name are not in object storage; a sentence says how many."""


def named() -> list[str]:
    """The names of the objects that rows name, as the transaction sees them."""
    with connection.cursor() as cursor:
        columns = connection.introspection.get_table_description(cursor, Blob._meta.db_table)
    if "object_name" not in {one.name for one in columns}:  # of an older version
        return []
    rows = Blob.objects.exclude(object_name="").order_by("pk")
    return list(rows.values_list("object_name", flat=True))


class BackedUp:
    """The objects that a backup holds, and those that were not there."""

    def __init__(self) -> None:
        self.missing: list[str] = []

    def of(self, names: list[str]) -> Iterator[Object]:
        """The objects of these names. Raises ObjectsAway."""
        for start in range(0, len(names), AT_ONCE):
            some = names[start : start + AT_ONCE]
            found = objects.read(some, cached=False)
            self.missing += [name for name in some if name not in found]
            yield from found.items()

    def check(self) -> None:
        """Accept as missing what was erased meanwhile. Raises ObjectsMissing."""
        lost = 0
        for name in self.missing:
            team, sha, _ = name.rpartition("/")[2].split("-")
            lost += Blob.objects.filter(team=UUID(team), sha=sha).exists()
        if lost:
            raise ObjectsMissing(
                f"{lost:,} of the objects that rows name are missing from object storage. Run "
                "`contextlab verify`; if content was moved meanwhile, run the backup again."
            )


def restore(found: Iterable[Object]) -> None:
    """Store a backup's objects under their names. Raises NotABackup, ObjectsAway."""
    some: dict[str, bytes] = {}
    for name, data in found:
        some[name] = data
        if len(some) == AT_ONCE:
            objects.put(some)
            some = {}
    objects.put(some)


@contextmanager
def as_file(place: str) -> Iterator[Path]:
    """A backup as a file; one at s3://bucket/prefix/NAME is fetched. Raises ObjectsAway,
    FileNotFoundError, ValueError."""
    if not place.startswith(SCHEME):
        yield Path(place)
        return
    storage, name = _storage(place)
    with tempfile.TemporaryDirectory() as folder, objects.reached():
        copy = Path(folder) / "backup.zip"
        with storage.open(name) as file, copy.open("wb") as into:
            for piece in file.chunks():
                into.write(piece)
        yield copy


def send(file: Path, place: str) -> None:
    """Put a finished backup at s3://bucket/prefix/NAME; what is killed leaves no object. Raises
    ObjectsAway, FileExistsError."""
    storage, name = _storage(place)
    with objects.reached(), file.open("rb") as content:
        if storage.exists(name):
            raise FileExistsError(17, "This file exists already", place)
        storage.save(name, File(content))
        if storage.size(name) != file.stat().st_size:
            raise OSError(5, "The copy in object storage has another size", place)


def _storage(place: str) -> tuple[Any, str]:
    folder, _, name = place.rpartition("/")
    made = s3(folder)
    return import_string(made["BACKEND"])(**made["OPTIONS"]), name
