"""Copies of objects on this machine's disk, bounded; the object storage has them all.

A copy is encrypted with a key made of its object's name, which only the row has: once the row is
erased, what is left of it on any machine says nothing.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings

FOLDERS = 256
"""Folders of copies; each keeps to its share of the limit by itself."""
_NONCE = bytes(12)
"""A key encrypts one content only."""
_LEFT_SECONDS = 24 * 3600


def _folder() -> Path:
    return Path(settings.DATA_DIR) / "objects"


def _path(name: str) -> Path:
    hashed = hashlib.sha256(b"place\n" + name.encode()).hexdigest()
    return _folder() / hashed[:2] / hashed[2:]


def _cipher(name: str) -> AESGCM:
    return AESGCM(hashlib.sha256(b"key\n" + name.encode()).digest())


def find(name: str) -> bytes | None:
    """The bytes of an object, if there is a copy; it counts as used."""
    path = _path(name)
    try:
        data = _cipher(name).decrypt(_NONCE, path.read_bytes(), None)
        os.utime(path)
    except (OSError, InvalidTag):
        return None
    return data


def keep(name: str, data: bytes) -> None:
    """Keep a copy, and remove those longest unused where its folder has no room. A disk that takes
    none is no error."""
    share = settings.BLOBS_CACHE_BYTES // FOLDERS
    if len(data) > share:
        return
    path = _path(name)
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(_cipher(name).encrypt(_NONCE, data, None))
        Path(draft).replace(path)
        _keep_to(path.parent, share)


def _keep_to(folder: Path, share: int) -> None:
    kept = []
    for entry in os.scandir(folder):
        with suppress(OSError):  # another process removed it
            said = entry.stat()
            kept.append((said.st_mtime, said.st_size, entry.path))
    over = sum(size for _, size, _ in kept) - share
    for _, size, path in sorted(kept):
        if over <= 0:
            return
        with suppress(OSError):
            Path(path).unlink()
        over -= size


def drop(name: str) -> None:
    """Remove a copy."""
    with suppress(OSError):
        _path(name).unlink()


@contextmanager
def passing() -> Iterator[Path]:
    """A file that is gone afterwards; what a killed process left is removed a day later."""
    folder = _folder() / "passing"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in folder.iterdir():
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _LEFT_SECONDS:
                left.unlink()
    handle, path = tempfile.mkstemp(dir=folder)
    os.close(handle)
    try:
        yield Path(path)
    finally:
        Path(path).unlink(missing_ok=True)
