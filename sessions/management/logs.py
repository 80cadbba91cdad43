"""Logs named on the command line: read, not stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from django.core.management.base import CommandError

from sessions import importers
from sessions.actions.imports.imports import files_under
from sessions.actions.imports.opened import FILE_LIMIT, read_log
from sessions.importers import records
from sessions.importers.bundles import name_of


class Logged(NamedTuple):
    """A session from a log, and the log's format."""

    format: str
    session: records.Session

    @property
    def id(self) -> str:
        """The external id."""
        return self.session.external_id

    @property
    def length(self) -> int:
        """Its size, in records."""
        return len(self.session.records)


class _Source(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def length(self) -> int: ...


T = TypeVar("T", bound=_Source)


def fullest(found: Iterable[T]) -> list[T]:
    """Deduplicate sources by id in their order, keeping the longest of each."""
    taken: dict[str, T] = {}
    for one in found:
        known = taken.get(one.id)
        if known is None or one.length > known.length:
            taken[one.id] = one
    return list(taken.values())


def sessions_at(path: Path, say: Callable[[str], object]) -> Iterator[Logged]:
    """Sessions of a log, or of all logs in a folder; other files in folders are skipped.

    `say` receives a sentence for each log skipped. Raises CommandError for a missing path, an empty
    folder, and a named file that is unreadable or not a log.
    """
    if not path.exists():
        raise CommandError(f"There is no file or folder called '{path}'.", returncode=2)
    files = list(files_under([path]))
    if not files:
        raise CommandError(f"The folder {path} contains no files.", returncode=2)
    for file in files:
        try:
            log = _log(file)
        except _Unread as error:
            if file == path:
                raise CommandError(str(error), returncode=error.code) from None
            if error.reported:
                say(f"{error} It was skipped.")
        else:
            yield from (Logged(log.format, session) for session in log.sessions)


class _Unread(Exception):
    """Why a file cannot be read, and the exit code if it was named explicitly; `reported` if
    skipping it should be."""

    def __init__(self, sentence: str, code: int = 2, *, reported: bool = True) -> None:
        super().__init__(sentence)
        self.code, self.reported = code, reported


def _log(file: Path) -> records.Log:
    try:
        size = file.stat().st_size
        if size > FILE_LIMIT:
            raise _Unread(f"{file} has {size:,} bytes; the limit is {FILE_LIMIT:,}.")
        return importers.parse(read_log(file), name_of(str(file)))
    except importers.NotALog as error:
        raise _Unread(f"{file}: {error}", reported=False) from None
    except OSError as error:
        raise _Unread(f"{file} cannot be read: {error.strerror}.", 1) from None
