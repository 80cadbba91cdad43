"""Object storage: uploads, and content too large for rows, where every server and worker reads it.

Without CONTEXTLAB_BLOBS objects are files in the data directory. A row that names an object is
written after the object; an object whose row goes is noted in the same transaction, and removed
after it (`RemovedObject`). Names are never used again, so one process cannot remove what another
just stored.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings
from django.core.files.base import ContentFile, File
from django.core.files.storage import FileSystemStorage, Storage, storages
from django.db import OperationalError, models

from sessions.models.record import object_cache

AT_ONCE = 8
"""Requests to object storage at once, of a process."""
ERASURES = "erasures/"
UPLOADS = "uploads/"
BLOBS = "blobs/"
_MEMORY = 8 * 1024 * 1024
"""Bytes of an upload kept in memory; the rest is on disk."""

_T = TypeVar("_T")


class ObjectsAway(OperationalError):
    """Object storage does not answer, or refuses; answered like a database that is away."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"object storage: {type(error).__name__}")


class RemovedObject(models.Model):
    """An object that no row names any more, until it is removed from object storage."""

    name = models.CharField(max_length=200)

    def __str__(self) -> str:
        return self.name


def is_shared() -> bool:
    """Whether objects are in object storage, and not in the data directory."""
    return bool(settings.BLOBS)


def storage() -> Storage:
    """The one storage of objects."""
    if is_shared():
        return storages["objects"]
    return FileSystemStorage(
        settings.DATA_DIR,
        file_permissions_mode=0o600,
        directory_permissions_mode=0o700,
        allow_overwrite=True,
    )


def blob_name(team: uuid.UUID, sha: str) -> str:
    """A new name for a blob's object: by the hour, so that what got no row is found again."""
    return f"{BLOBS}{datetime.now(UTC):%Y-%m-%d/%H}/{team.hex}-{sha}-{secrets.token_hex(16)}"


@contextmanager
def reached() -> Iterator[None]:
    """Raises ObjectsAway for what goes wrong on the way to object storage."""
    try:
        yield
    except FileNotFoundError:
        raise
    except _failures() as error:
        raise ObjectsAway(error) from error


@cache
def _failures() -> tuple[type[BaseException], ...]:
    if not is_shared():
        return ()
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    return (Boto3Error, BotoCoreError, ClientError)


@cache
def _threads() -> ThreadPoolExecutor:
    """Bounded, whatever number of threads answer requests."""
    return ThreadPoolExecutor(AT_ONCE, thread_name_prefix="objects")


def _each(work: Any, some: Iterable[_T]) -> list[Any]:
    with reached():
        return list(_threads().map(work, some))


def put(objects: Mapping[str, bytes]) -> None:
    """Store objects; they are safe on return. Raises ObjectsAway."""
    _each(lambda one: _save(one[0], ContentFile(one[1])), objects.items())


def put_chunks(name: str, chunks: Iterable[bytes]) -> int:
    """Store an object that may be large; return its bytes. It is safe on return. Raises
    ObjectsAway."""
    with tempfile.SpooledTemporaryFile(_MEMORY) as spool:
        for chunk in chunks:
            spool.write(chunk)
        size = spool.tell()
        spool.seek(0)
        _each(lambda name: _save(name, File(spool)), [name])
    return size


def _save(name: str, content: File[bytes]) -> None:
    kept = storage()
    kept.save(name, content)
    if not is_shared():
        with Path(kept.path(name)).open("rb") as file:
            os.fsync(file.fileno())


def read(names: Iterable[str], *, cached: bool = True) -> dict[str, bytes]:
    """The bytes of objects, without those that are missing. Raises ObjectsAway."""
    found: dict[str, bytes] = {}
    kept = cached and is_shared()
    for name in dict.fromkeys(names):
        if kept and (data := object_cache.find(name)) is not None:
            found[name] = data
        else:
            found[name] = b""
    wanted = [name for name, data in found.items() if not data]
    for name, got in zip(wanted, _each(_read, wanted), strict=True):
        if got is None:
            del found[name]
            continue
        found[name] = got
        if kept:
            object_cache.keep(name, got)
    return found


def _read(name: str) -> bytes | None:
    kept: Any = storage()
    if not is_shared():
        path = Path(kept.path(name))
        return path.read_bytes() if path.exists() else None
    from botocore.exceptions import ClientError

    # One request: the storage's own files ask twice for what there is before they read it.
    try:
        return bytes(kept.bucket.Object(f"{kept.location}/{name}".lstrip("/")).get()["Body"].read())
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") == "NoSuchKey":
            return None
        raise


def uploaded(stored: Iterable[str]) -> set[str]:
    """The names of uploads among what rows of imported files name. Paths given to the command are
    not ours."""
    root = Path(settings.DATA_DIR)
    names = set()
    for one in filter(None, stored):
        path = Path(one)
        # Before there were objects, rows named the path of an upload.
        if path.is_relative_to(root / UPLOADS):
            path = path.relative_to(root)
        names |= set() if path.is_absolute() else {str(path)}
    return names


def forget(names: Iterable[str]) -> int:
    """Note, in the caller's transaction, that objects lost their rows; `remove_forgotten` removes
    them. Returns how many."""
    rows = RemovedObject.objects.bulk_create([RemovedObject(name=one) for one in names if one])
    return len(rows)


def remove(names: Iterable[str]) -> None:
    """Remove objects; what object storage does not take now is removed later."""
    listed = list(names)
    try:
        _each(lambda name: storage().delete(name), listed)
    except ObjectsAway:
        forget(listed)


def remove_forgotten(at_most: int | None = None) -> int:
    """Remove objects that lost their rows; return how many. Raises ObjectsAway."""
    done = 0
    while at_most is None or done < at_most:
        rows = list(RemovedObject.objects.order_by("pk")[: 8 * AT_ONCE])
        if not rows:
            break
        _each(lambda row: storage().delete(row.name), rows)
        for row in rows:
            object_cache.drop(row.name)
        RemovedObject.objects.filter(pk__in=[row.pk for row in rows]).delete()
        done += len(rows)
    return done


def listed(folder: str) -> list[str]:
    """The names of the objects in a folder. Raises ObjectsAway."""
    kept = storage()
    if not is_shared() and not Path(kept.path(folder)).exists():
        return []
    with reached():
        return [f"{folder}{one}" for one in kept.listdir(folder)[1]]


@contextmanager
def as_file(name: str) -> Iterator[Path]:
    """An object as a file that can be opened; a path of this machine is one already. Raises
    ObjectsAway, FileNotFoundError."""
    if Path(name).is_absolute() or not is_shared():
        yield Path(settings.DATA_DIR) / name
        return
    with object_cache.passing() as path, reached(), storage().open(name) as file:
        with path.open("wb") as copy:
            for piece in file.chunks():
                copy.write(piece)
        yield path
