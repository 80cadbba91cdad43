"""Logs that are named on a command line: read, and not stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from django.core.management.base import CommandError

from sessions import importers
from sessions.actions.imports import FILE_LIMIT, files_under
from sessions.importers import records


class Logged(NamedTuple):
    """A session of a log, and the log's format."""

    format: str
    session: records.Session

    @property
    def id(self) -> str:
        """The external id."""
        return self.session.external_id

    @property
    def length(self) -> int:
        """How much the log tells of it, in records."""
        return len(self.session.records)


class _Source(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def length(self) -> int: ...


T = TypeVar("T", bound=_Source)


def fullest(found: Iterable[T]) -> list[T]:
    """In their order; one that several logs hold is taken once, where most is told of it."""
    taken: dict[str, T] = {}
    for one in found:
        known = taken.get(one.id)
        if known is None or one.length > known.length:
            taken[one.id] = one
    return list(taken.values())


def sessions_at(path: Path, say: Callable[[str], object]) -> Iterator[Logged]:
    """Sessions of a log, or of every log below a folder, where what is no log is passed over.

    `say` is told of logs that are left out. Raises CommandError for a path that is not there, a
    folder without files, and a named file that cannot be read or is no log.
    """
    if not path.exists():
        raise CommandError(f"There is no file or folder called '{path}'.", returncode=2)
    files = list(files_under([path]))
    if not files:
        raise CommandError(f"There is no file below {path}.", returncode=2)
    for file in files:
        try:
            log = _log(file)
        except _Unread as error:
            if file == path:
                raise CommandError(str(error), returncode=error.code) from None
            if error.told:
                say(f"{error} It is left out.")
        else:
            yield from (Logged(log.format, session) for session in log.sessions)


class _Unread(Exception):
    """Why a file is not read, as a sentence, and the exit code where it was named; `told` where
    it may be a log that somebody misses."""

    def __init__(self, sentence: str, code: int = 2, *, told: bool = True) -> None:
        super().__init__(sentence)
        self.code, self.told = code, told


def _log(file: Path) -> records.Log:
    try:
        size = file.stat().st_size
        if size > FILE_LIMIT:
            raise _Unread(f"{file} has {size:,} bytes, and we read {FILE_LIMIT:,} at most.")
        return importers.parse(file.read_bytes(), file.name)
    except importers.NotALog as error:
        raise _Unread(f"{file}: {error}", told=False) from None
    except OSError as error:
        raise _Unread(f"{file} cannot be read: {error.strerror}.", 1) from None
