"""The file of a backup: a zip of the database, `store`, of the objects that its rows name, below
`objects/`, and of its description, `manifest.json`."""

from __future__ import annotations

import fcntl
import json
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

FORMAT = 1
WITH_OBJECTS = 2
"""The format of a backup that has objects: older versions would restore it without them."""
STORE, MANIFEST, OBJECTS = "store", "manifest.json", "objects/"
PIECE = 1 << 20
"""Bytes read at once."""

Object = tuple[str, bytes]
"""Its name and its bytes."""


class NotABackup(Exception):
    """A file is no backup, an incomplete one, or of a newer version; a sentence says which."""


class BackupUnderway(Exception):
    """Another process writes a backup into the same folder."""


@dataclass(frozen=True)
class Manifest:
    """What a backup holds, and what it must be equal to once restored."""

    engine: str
    """sqlite or postgresql."""
    version: str
    """Of ContextLab."""
    created: str
    """UTC, ISO 8601."""
    migrations: list[str]
    """Applied ones, as app.name."""
    rows: dict[str, int]
    """By table."""
    sums: dict[str, str] = field(default_factory=dict)
    """By table, over the rows in any order; none for SQLite, whose file itself is compared."""
    bytes: int = 0
    """Size of the store before compression."""
    sha256: str = ""
    """Of the store."""
    objects: int = 0
    objects_bytes: int = 0
    objects_sha256: str = ""
    """Of the names and SHA-256 of all objects, in the order of the file."""
    format: int = FORMAT


class _Hashing:
    """A file that counts and hashes what is written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._hash = sha256()
        self.bytes = 0

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        self.bytes += len(data)
        return self._file.write(data)

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


def name_now(why: str = "") -> str:
    """A file name with the time, that sorts by it."""
    return f"contextlab-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}{'-' if why else ''}{why}.zip"


def now() -> str:
    """The time as in a manifest."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def writing(place: Path) -> Iterator[Path]:
    """A file beside the place, moved to it once it is whole and on disk.

    What a killed backup left in the folder is removed. Raises BackupUnderway, FileExistsError.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists():
        raise FileExistsError(17, "This file exists already", str(place))
    with (place.parent / ".backup.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupUnderway(str(place.parent)) from None
        for left in place.parent.glob(".contextlab-backup.*"):
            left.unlink()
        partial = place.parent / ".contextlab-backup.partial"
        try:
            yield partial
            _to_disk(partial)
            partial.rename(place)
            _to_disk(place.parent)
        finally:
            for left in place.parent.glob(".contextlab-backup.*"):
                left.unlink()


def write(
    partial: Path, manifest: Manifest, store: Iterator[bytes], objects: Iterable[Object] = ()
) -> Manifest:
    """Write a backup; return its manifest, with sizes and hashes."""
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open(STORE, "w", force_zip64=True) as file:
            hashing = _Hashing(file)
            for piece in store:
                hashing.write(piece)
        described = {**asdict(manifest), "bytes": hashing.bytes, "sha256": hashing.sha256}
        held = _Objects()
        for name, data in objects:
            held.add(name, data)
            archive.writestr(f"{OBJECTS}{name}", data, zipfile.ZIP_STORED)  # compressed already
        described |= held.described()
        # Last: a backup without it is not whole.
        archive.writestr(MANIFEST, json.dumps(described, indent=1))
    return Manifest(**described)


class _Objects:
    """Counts and hashes objects."""

    def __init__(self) -> None:
        self._hash = sha256()
        self.count = self.bytes = 0

    def add(self, name: str, data: bytes) -> None:
        self._hash.update(f"{name} {sha256(data).hexdigest()}\n".encode())
        self.count += 1
        self.bytes += len(data)

    def described(self) -> dict[str, Any]:
        """The fields of the manifest; none without objects."""
        if not self.count:
            return {}
        return {
            "objects": self.count,
            "objects_bytes": self.bytes,
            "objects_sha256": self._hash.hexdigest(),
            "format": WITH_OBJECTS,
        }


class Backup(NamedTuple):
    """An open backup: its manifest, and the pieces of its store and its objects, whose hashes are
    checked at the end."""

    manifest: Manifest
    store: Iterator[bytes]
    objects: Iterator[Object]


@contextmanager
def opened(place: Path) -> Iterator[Backup]:
    """Open a backup. Raises NotABackup, there or here."""
    try:
        with zipfile.ZipFile(place) as archive, archive.open(STORE) as file:
            manifest = _manifest(archive.read(MANIFEST))
            yield Backup(manifest, _checked(file, manifest), _objects(archive, manifest))
    except (zipfile.BadZipFile, zipfile.LargeZipFile, KeyError, EOFError, zlib.error) as error:
        raise NotABackup("It is no backup, or not a whole one.") from error


def _manifest(data: bytes) -> Manifest:
    try:
        said = msgspec.json.decode(data, type=dict[str, Any])
        if said.get("format") not in (FORMAT, WITH_OBJECTS):
            raise NotABackup("It was made by a newer version. Install that version first.")
        return msgspec.convert(said, Manifest)
    except (msgspec.DecodeError, RecursionError) as error:
        raise NotABackup("Its manifest is damaged.") from error


def _checked(file: IO[bytes], manifest: Manifest) -> Iterator[bytes]:
    hashed, size = sha256(), 0
    while piece := file.read(PIECE):
        hashed.update(piece)
        size += len(piece)
        yield piece
    if (size, hashed.hexdigest()) != (manifest.bytes, manifest.sha256):
        raise NotABackup("Its content does not match its hash. Use another backup.")


def _objects(archive: zipfile.ZipFile, manifest: Manifest) -> Iterator[Object]:
    held = _Objects()
    for entry in archive.infolist():
        if entry.filename.startswith(OBJECTS):
            name, data = entry.filename.removeprefix(OBJECTS), archive.read(entry)
            held.add(name, data)
            yield name, data
    said = held.described() or {"objects": 0}
    if any(getattr(manifest, field) != value for field, value in said.items()):
        raise NotABackup("Its objects do not match their hash. Use another backup.")


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
