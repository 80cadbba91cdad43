"""Push: send an agent's logs from its machine to a server, only what is new or has grown."""

from __future__ import annotations

import gzip
import hashlib
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from contextlab.client.connection import Connection, Misaddressed, Refused, Unreachable

LARGEST = 256 * 1024 * 1024
"""Maximum size of a log in bytes: servers read no larger one."""
LONGEST_NAME = 300
POLL = 2.0
"""Seconds between two looks at the files while watching."""
QUIET = 5.0
"""Seconds without a change after which a watched log is sent."""
AGAIN = 60.0
"""Seconds after which a watched log that could not be sent is tried again."""
HOPELESS = frozenset({413, 415, 422})
"""Answers about one file that stay the same until the file changes."""
_KEY_OR_ADDRESS = frozenset({301, 302, 307, 308, 401, 403, 404, 405})
"""Answers that every other file would get as well."""


def usual_folders() -> list[Path]:
    """The folders of Claude Code and Codex on this machine."""
    folders = (".claude/projects", ".codex/sessions")
    return [folder for name in folders if (folder := Path.home() / name).is_dir()]


def logs_under(paths: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """The given files, and the `*.jsonl` files below the given folders, with the names they get on
    the server. Raises OSError for a path that does not exist."""
    for path in paths:
        if not path.is_dir():
            path.stat()
            yield path, path.name
            continue
        next(path.iterdir(), None)  # os.walk would silently find nothing
        for folder, _, names in os.walk(path):
            for file in sorted(Path(folder, name) for name in names if name.endswith(".jsonl")):
                yield file, str(file.relative_to(path.parent))[-LONGEST_NAME:]


@dataclass(frozen=True, slots=True)
class Pushed:
    """A log that was sent, with its size in bytes, or why it was not."""

    path: Path
    size: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Stamp:
    """What tells that a file was not written since: size in bytes, time in nanoseconds."""

    size: int
    mtime: int

    @classmethod
    def of(cls, stat: os.stat_result) -> _Stamp:
        return cls(stat.st_size, stat.st_mtime_ns)


class Sent:
    """What a server has already: path → size, time and SHA-256 of what was sent, in a file per
    server and key, since the key names the team. Several processes may share it. Raises
    sqlite3.Error."""

    def __init__(self, folder: Path, url: str, key: str) -> None:
        named = hashlib.sha256(f"{url.rstrip('/')} {key}".encode()).hexdigest()
        file = folder / f"push-{named[:12]}.sqlite3"
        self._rows = sqlite3.connect(file, timeout=30, isolation_level=None)
        self._rows.execute(
            "CREATE TABLE IF NOT EXISTS sent"
            " (path BLOB PRIMARY KEY, size INTEGER, mtime INTEGER, sha256 TEXT)"
        )

    def get(self, path: Path) -> tuple[_Stamp, str] | None:
        """Stamp and SHA-256 of a file as last sent."""
        found = self._rows.execute(
            "SELECT size, mtime, sha256 FROM sent WHERE path = ?", [os.fsencode(path)]
        ).fetchone()
        return found and (_Stamp(found[0], found[1]), found[2])

    def put(self, path: Path, stamp: _Stamp, sha256: str) -> None:
        """Remember a file; on return it survives a crash."""
        row = [os.fsencode(path), stamp.size, stamp.mtime, sha256]
        self._rows.execute("INSERT OR REPLACE INTO sent VALUES (?, ?, ?, ?)", row)

    def close(self) -> None:
        """Close the file."""
        self._rows.close()


def push(server: Connection, sent: Sent, paths: Iterable[Path]) -> Iterator[Pushed]:
    """Send each log that is new or has grown; yield those that were sent or cannot be.

    One bad file does not end it. Raises Refused for what concerns all files, as a wrong key, and
    Unreachable.
    """
    for path, name in logs_under(paths):
        if (pushed := _push(server, sent, path, name)) is not None:
            yield pushed


def watch(server: Connection, sent: Sent, paths: Iterable[Path]) -> Iterator[Pushed]:
    """Like `push`, without an end: each log is sent whenever it was quiet for some seconds.

    Without paths it watches the usual folders, as soon as they exist.
    """
    given = list(paths)
    failed: dict[Path, float] = {}
    while True:
        pause = POLL
        for path, name in logs_under(given or usual_folders()):
            if time.monotonic() < failed.get(path, 0) or not _quiet(path):
                continue
            try:
                pushed = _push(server, sent, path, name)
            except Unreachable as error:
                yield Pushed(path, problem=str(error))
                pause = AGAIN if isinstance(error, Misaddressed) else POLL
                break
            if pushed is not None:
                failed[path] = time.monotonic() + (AGAIN if pushed.problem else 0)
                yield pushed
        time.sleep(pause)


def _quiet(path: Path) -> bool:
    try:
        return abs(time.time() - path.stat().st_mtime) >= QUIET
    except OSError:  # deleted since it was listed
        return False


def _push(server: Connection, sent: Sent, path: Path, name: str) -> Pushed | None:
    """Send a log unless the server has it; None if there is nothing to say about it."""
    path = path.absolute()
    try:
        known = sent.get(path)
        if known and known[0] == _Stamp.of(path.stat()):
            return None
        with path.open("rb") as file:
            stamp = _Stamp.of(os.fstat(file.fileno()))
            data = file.read(stamp.size) if stamp.size <= LARGEST else b""
    except OSError as error:
        return Pushed(path, problem=f"{error.strerror or type(error).__name__}.")
    sha256 = hashlib.sha256(data).hexdigest()
    problem = ""
    if stamp.size > LARGEST:
        problem = f"It has {stamp.size:,} bytes; the limit is {LARGEST:,}."
    elif not data or (known and known[1] == sha256):
        sent.put(path, stamp, sha256)  # nothing to send, so that it is not read again
        return None
    else:
        try:
            answer = server.upload("imports", _packed(data), {"name": name})
        except Refused as refused:
            if refused.status in _KEY_OR_ADDRESS:
                raise
            problem = str(refused)
            if refused.status not in HOPELESS:
                return Pushed(path, stamp.size, problem)
        else:
            if "import" not in answer:
                raise Refused(404, {"title": f"{server.url} is not a ContextLab server"})
    sent.put(path, stamp, sha256)
    return Pushed(path, stamp.size, problem)


def _packed(data: bytes) -> bytes:
    """Gzipped data. Archives do not shrink, and servers take what shrinks too much for a bomb:
    those stay as they are."""
    packed = gzip.compress(data, mtime=0)
    return packed if 2 < len(data) / len(packed) < 100 else data
