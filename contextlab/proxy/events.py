"""Server-sent events of the Messages API, as the SDK's objects and back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
from anthropic._models import construct_type  # accepts events that this version does not know
from anthropic.types import Message, RawMessageStreamEvent


def reply_of(body: Any) -> Any:
    """A reply's JSON as the SDK's object."""
    return construct_type(type_=Message, value=body)


def event_of(data: bytes) -> Any:
    """An event's JSON as the SDK's object. Raises ValueError."""
    return construct_type(type_=RawMessageStreamEvent, value=json.loads(data))


def as_json(value: Any) -> Any:
    """An object of the SDK as the JSON it came from."""
    return value.to_dict(mode="json", exclude_unset=True)


def sent_event(event: Any) -> bytes:
    """An event as a provider sends it."""
    data = json.dumps(as_json(event), ensure_ascii=False, separators=(",", ":"))
    return f"event: {event.type}\ndata: {data}\n\n".encode()


class EventReader:
    """Splits a stream of bytes into the data of its events."""

    def __init__(self) -> None:
        self._line = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the data of each event that a piece completes."""
        *lines, self._line = (self._line + piece).split(b"\n")
        for line in lines:
            line = line.rstrip(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                yield b"\n".join(self._data)
                self._data = []


class EventStream:
    """The events of a provider's answer, in the form of an SDK stream."""

    def __init__(self, answer: httpx2.Response) -> None:
        self._answer = answer
        self._events = self._read()

    async def _read(self) -> AsyncIterator[Any]:
        reader = EventReader()
        async for piece in self._answer.aiter_raw():
            for data in reader.feed(piece):
                yield event_of(data)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        return await anext(self._events)

    async def close(self) -> None:
        """Stop reading."""
        await self._answer.aclose()
