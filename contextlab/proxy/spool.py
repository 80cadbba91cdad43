"""Copies on disk of calls that wait for our server, so that they survive the proxy's restart."""

from __future__ import annotations

import logging
import os
import time
import zlib
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from contextlab.proxy.recognized import Recognized

log = logging.getLogger(__name__)

MOST_BYTES = 256 * 1024 * 1024
"""Bytes that may wait on disk; what is more waits in memory only."""
DAYS = 7
"""After which a call is deleted whose key was not used again."""
_ENDS = ".call"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL


class Came(NamedTuple):
    """A call as it came: `mode` is "observe" or "manage", `call` whose it is."""

    mode: str
    provider: str
    path: str
    query: str
    call: Recognized
    body: bytes


class Spool:
    """A folder of calls that only its owner can read. It holds no key: a call is found by a hash of
    its key, once an agent uses that again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        old = time.time() - DAYS * 24 * 3600
        for path in self._files():
            with suppress(OSError):
                if path.stat().st_mtime < old:
                    path.unlink()
        self._left = {path.name.partition("-")[0] for path in self._files()}

    def _files(self, owner: str = "") -> list[Path]:
        return sorted(self._folder.glob(f"{owner}*{_ENDS}"))

    def keep(self, key: str, came: Came, answer: bytes) -> Path | None:
        """Write a call; None if there is no room, or the disk refuses."""
        # A query may contain the provider's key; this is all that we read of it.
        query = "alt=sse" if "alt=sse" in came.query.split("&") else ""
        head = [came.mode, came.provider, came.path, query, came.call, len(came.body)]
        data = zlib.compress(msgspec.json.encode(head) + b"\n" + came.body + answer, 1)
        path = self._folder / f"{_owner(key)}-{time.time_ns():020}{_ENDS}"
        try:
            there = sum(one.stat().st_size for one in self._files())
            if there + len(data) > MOST_BYTES:
                log.warning("a call waits in memory only: %s MB wait on disk", there >> 20)
                return None
            with os.fdopen(os.open(path, _NEW, 0o600), "wb") as file:
                file.write(data)
        except OSError as error:
            log.warning("a call waits in memory only: %s", type(error).__name__)
            return None
        return path

    def may_have(self, key: str) -> bool:
        """Whether an earlier proxy left calls of a key that were not asked for yet."""
        return bool(self._left) and _owner(key) in self._left

    def left(self, key: str) -> list[tuple[Path, Came, bytes]]:
        """The calls of a key that an earlier proxy left, with their answers, in their order; the
        first time they are asked for."""
        if not self.may_have(key):
            return []
        self._left.discard(_owner(key))
        found = []
        for path in self._files(_owner(key)):
            try:
                head, _, rest = zlib.decompress(path.read_bytes()).partition(b"\n")
                mode, provider, at, query, call, size = msgspec.json.decode(head)
                came = Came(mode, provider, at, query, Recognized(*call), rest[:size])
            except (OSError, ValueError, TypeError, zlib.error):
                # Cut short: the proxy died as it wrote.
                path.unlink(missing_ok=True)
                continue
            found.append((path, came, rest[size:]))
        return found


class Copy:
    """The copy of a call on disk; `path` if there is one already."""

    def __init__(
        self, spool: Spool, key: str, came: Came, answer: bytes, path: Path | None = None
    ) -> None:
        self._spool, self._key, self._came, self._answer = spool, key, came, answer
        self._path = path

    def keep(self) -> None:
        """Write it, if it is not there."""
        if self._path is None:
            self._path = self._spool.keep(self._key, self._came, self._answer)

    def forget(self) -> None:
        """Delete it."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def _owner(key: str) -> str:
    return sha256(key.encode()).hexdigest()[:32]
