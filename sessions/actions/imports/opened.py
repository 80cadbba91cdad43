"""Opening of archives and folders: their logs one at a time, within bounds."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sessions.importers import NotALog
from sessions.importers.bundles import (
    conversation_of,
    is_evaluation,
    is_event,
    join_events,
    join_samples,
)

FILE_LIMIT = 256 * 1024 * 1024
"""Maximum size of a file in bytes, because it is read into memory."""

UNPACKED_LIMIT = 1024 * 1024 * 1024
"""Maximum bytes in one archive, unpacked."""

MEMBER_LIMIT = 20_000
"""Maximum files in one archive."""

RATIO_LIMIT = 200
"""Maximum of unpacked to packed bytes; JSON logs stay below 30."""

SLACK = 1024 * 1024
"""Bytes that any archive may have, because tar pads its blocks with zeros."""

_UNPACK: dict[bytes, Callable[[Path], Any]] = {
    b"\x1f\x8b\x08": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7z": lzma.open,
}
"""By the first bytes of a file."""

_BROKEN = (
    *(OSError, EOFError, zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError),
    RuntimeError,
)
"""What the standard library raises for damaged, encrypted or unsupported archives."""


@dataclass(frozen=True, slots=True)
class OpenedLog:
    """A log in an archive: its name there, and how to read it. Raises NotALog.

    Without a name, the archive is the log.
    """

    name: str
    read: Callable[[], bytes]


def is_archive(path: Path) -> bool:
    """Whether a file is a zip or tar archive, or compressed, by its content."""
    if path.is_dir():
        return False
    with path.open("rb") as file:
        head = file.read(512)
    packed = head.startswith((*_UNPACK, b"PK\x03\x04", b"PK\x05\x06"))
    return packed or head[257:262] == b"ustar"


def logs_in(path: Path) -> Iterator[OpenedLog]:
    """The logs of an archive, in its order. Raises NotALog if it is damaged or out of bounds."""
    with ExitStack() as stack:
        try:
            if zipfile.is_zipfile(path):
                yield from _grouped(_zipped(stack.enter_context(zipfile.ZipFile(path))))
                return
            unpacked = stack.enter_context(_unpacked(path))
            try:
                tar = stack.enter_context(tarfile.open(fileobj=unpacked, mode="r:"))
            except tarfile.ReadError:
                if _unpack(path) is None:
                    raise
                unpacked.seek(0)
                yield OpenedLog("", lambda: _read(unpacked, FILE_LIMIT))
            else:
                yield from _grouped(_tarred(tar))
        except _BROKEN as error:
            raise _damaged(error) from None


def read_log(path: Path) -> bytes:
    """The bytes of a file, or of a folder that is one log. Raises OSError, NotALog."""
    if not path.is_dir():
        size = path.stat().st_size
        if size > FILE_LIMIT:
            raise NotALog(
                f"The file has {size:,} bytes; the limit is {FILE_LIMIT:,}. Split it by session."
            )
        return path.read_bytes()
    files = sorted(one for one in path.iterdir() if is_event(one.name))
    _within(sum(one.stat().st_size for one in files), FILE_LIMIT)
    return join_events((one.name, one.read_bytes()) for one in files)


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    size: int
    open: Callable[[], IO[bytes] | None]

    def read(self) -> bytes:
        """The bytes; what the archive says of their number is not trusted."""
        _within(self.size, FILE_LIMIT)
        try:
            file = self.open()
            if file is None:
                return b""
            with file:
                return _read(file, min(self.size, FILE_LIMIT))
        except (*_BROKEN, NotImplementedError) as error:
            raise _damaged(error) from None


def _unpack(path: Path) -> Callable[[Path], Any] | None:
    with path.open("rb") as file:
        return _UNPACK.get(file.read(3))


def _unpacked(path: Path) -> IO[bytes]:
    """What gzip, bzip2 or xz packed, in a file without a name; other files as they are.

    Read through its compression, a tar archive would be unpacked again for each step back, and
    without a limit for entries that are no files.
    """
    if (unpack := _unpack(path)) is None:
        return path.open("rb")
    limit = min(UNPACKED_LIMIT, RATIO_LIMIT * path.stat().st_size + SLACK)
    with ExitStack() as stack:
        made = stack.enter_context(tempfile.TemporaryFile())
        with unpack(path) as file:
            while piece := file.read(SLACK):
                _within(made.tell() + len(piece), limit)
                made.write(piece)
        made.seek(0)
        stack.pop_all()
        return made


def _zipped(archive: zipfile.ZipFile) -> list[_Member]:
    infos = [info for info in archive.infolist() if not info.is_dir()]
    packed = sum(info.compress_size for info in infos)
    _within(sum(info.file_size for info in infos), RATIO_LIMIT * packed + 4096)
    return [
        _Member(info.filename, info.file_size, lambda info=info: archive.open(info))  # type: ignore[misc]
        for info in infos
    ]


def _tarred(archive: tarfile.TarFile) -> list[_Member]:
    members: list[_Member] = []
    total = 0
    for number, info in enumerate(archive):
        total += info.size
        _within(total, UNPACKED_LIMIT)
        _within(number, MEMBER_LIMIT, "files")
        if not info.isfile():
            continue
        opened = lambda info=info: archive.extractfile(info)  # noqa: E731
        members.append(_Member(info.name, info.size, opened))
    return members


def _grouped(members: list[_Member]) -> Iterator[OpenedLog]:
    """Logs of several members are one; hidden files and those of the system are left out."""
    _within(len(members), MEMBER_LIMIT, "files")
    _within(sum(member.size for member in members), UNPACKED_LIMIT)
    if is_evaluation(member.name for member in members):
        yield OpenedLog("", lambda: _evaluation(members))
        return
    folders: dict[str, list[_Member]] = {}
    for member in members:
        parts = member.name.replace("\\", "/").split("/")
        if any(part.startswith(".") and part not in {".", ".."} for part in parts[:-1]):
            continue
        if parts[0] == "__MACOSX":
            continue
        if is_event(member.name):
            folders.setdefault(conversation_of(member.name), []).append(member)
        else:
            yield OpenedLog(member.name, member.read)
    for name, events in folders.items():
        yield OpenedLog(name, lambda events=events: _joined(events))  # type: ignore[misc]


def _joined(events: list[_Member]) -> bytes:
    _within(sum(event.size for event in events), FILE_LIMIT)
    return join_events((event.name, event.read()) for event in events)


def _evaluation(members: Iterable[_Member]) -> bytes:
    files = {member.name: member for member in members}
    samples = [files[name] for name in sorted(files) if name.startswith("samples/")]
    _within(sum(sample.size for sample in samples), FILE_LIMIT)
    return join_samples(files["header.json"].read(), [sample.read() for sample in samples])


def _read(file: IO[bytes], limit: int) -> bytes:
    data = file.read(limit + 1)
    _within(len(data), limit)
    return data


def _within(count: int, limit: int, unit: str = "bytes") -> None:
    if count > limit:
        raise NotALog(
            f"The archive has more than {limit:,} {unit}, unpacked. Unpack it, and import its "
            "files."
        )


def _damaged(error: Exception) -> NotALog:
    reason = str(error) or type(error).__name__
    return NotALog(f"The archive cannot be read ({reason}). Unpack it, and import its files.")
