"""Server-sent events of a provider, from bytes and back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import msgspec

LONGEST_EVENT = 16 * 1024 * 1024
"""Bytes of an event that is read while others wait."""


class EventTooLong(Exception):
    """An event above LONGEST_EVENT."""


class EventReader:
    """Splits a stream of bytes into the data of its events.

    `held` are the bytes of the pieces since the last one.
    """

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self.held = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the data of each event that a piece completes."""
        self.held += len(piece)
        first, *lines = piece.split(b"\n")
        self._line.append(first)
        for line in lines:
            whole = b"".join(self._line).rstrip(b"\r")
            self._line = [line]
            if whole.startswith(b"data:"):
                self._data.append(whole[5:].removeprefix(b" "))
            elif not whole and self._data:
                yield b"\n".join(self._data)
                self._data, self.held = [], 0


async def data_of(answer: httpx2.Response) -> AsyncIterator[bytes]:
    """The data of each event of an answer. Raises EventTooLong."""
    reader = EventReader()
    async for piece in answer.aiter_bytes():
        if reader.held > LONGEST_EVENT:
            raise EventTooLong
        for data in reader.feed(piece):
            yield data


def parsed(data: bytes) -> dict[str, Any] | None:
    """A JSON object; None if it is none."""
    try:
        found = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        # Half characters, and numbers that no float holds.
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            return None
    return found if isinstance(found, dict) else None


def sent(data: bytes, name: str = "") -> bytes:
    """An event as a provider sends it."""
    lines = b"".join(b"data: " + line + b"\n" for line in data.split(b"\n"))
    return (f"event: {name}\n".encode() if name else b"") + lines + b"\n"


def encoded(value: Any, *, ordered: bool = False) -> bytes:
    """JSON as bytes; half a character, as in names of files that are no UTF-8, as its escape.

    With `ordered`, equal values give equal bytes.
    """
    try:
        return msgspec.json.encode(value, order="sorted" if ordered else None)
    except UnicodeEncodeError:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=ordered)
        return text.encode("utf-8", "backslashreplace")
