"""Offloads as files in a folder, where an agent's own tools can open them."""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path

_PREFIX = re.compile(r"[\w./:@%+=,~-]{1,250}\Z")
"""As the server accepts it; without spaces, so that a model sees where a path ends."""
_NAME = re.compile(r"[a-z0-9][a-z0-9.@-]{0,99}\Z")
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_SEGMENT = 40


class OffloadFiles:
    """The files of one session, in a folder of its own below `folder`; `prefix` is the path that
    contexts name, as given: relative to the current directory, or absolute.

    Only the owner can read them, and git ignores them. Raises ValueError for a path with spaces,
    quotes or other characters that a stub cannot show.
    """

    def __init__(self, folder: str | os.PathLike[str], session: str) -> None:
        given = Path(folder).expanduser()
        self.prefix = f"{given.as_posix()}/{_segment(session)}"
        if not _PREFIX.match(self.prefix):
            raise ValueError(
                f"{given} cannot stand in a context as a path. Use a folder with up to 200 "
                "characters, without spaces and quotes."
            )
        # Absolute, since an agent may change its directory later.
        self._root = given.absolute()
        self._folder = self._root / _segment(session)
        self._written: set[str] = set()

    def write(self, names: Iterable[str], content: Callable[[str], bytes]) -> None:
        """Write those of these files that this process has not written yet; `content` gets the
        bytes of one.

        Raises OSError and ValueError, and what `content` raises.
        """
        for name in names:
            if name in self._written:
                continue
            if not _NAME.match(name):
                raise ValueError(f"{name[:100]!r} is not the name of an offload")
            if not self._written:
                self._begin()
            self._put(name, content(name))
            self._written.add(name)

    def _begin(self) -> None:
        if not self._root.exists():
            self._root.mkdir(0o700, parents=True)
            # They would be found by searches of the project, and committed with it.
            (self._root / ".gitignore").write_text("*\n")
        self._folder.mkdir(0o700, exist_ok=True)

    def _put(self, name: str, data: bytes) -> None:
        """Write a file at once: no reader sees half of it, and a link in its place is replaced."""
        if self._folder.is_symlink():
            raise OSError(f"{self._folder} is a symbolic link")
        part = self._folder / f".{uuid.uuid4().hex}"
        try:
            with os.fdopen(
                os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
            ) as file:
                file.write(data)
            part.replace(self._folder / name)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def _segment(session: str) -> str:
    """A session's id as the name of a folder: itself, or a stable substitute."""
    name = _NO_NAME.sub("_", session)[:_SEGMENT]
    if name and name == session:
        return name
    return f"{name}-{hashlib.sha256(session.encode()).hexdigest()[:8]}"
