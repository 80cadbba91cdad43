"""Server-sent events of the Messages API, as the SDK's objects and back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
from anthropic._models import construct_type  # accepts events that this version does not know
from anthropic.types import Message, RawMessageStreamEvent


@dataclass(frozen=True, slots=True)
class UnknownEvent:
    """An event that is no JSON object: it goes on as it came."""

    data: bytes
    type: str = ""


def message_in(body: bytes) -> Any:
    """The message in an answer as the SDK's object; None if it has none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("content"), list):
        return None
    return construct_type(type_=Message, value=found)


def event_of(data: bytes) -> Any:
    """An event as the SDK's object."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return UnknownEvent(data)
    if not isinstance(found, dict) or not isinstance(found.get("type"), str):
        return UnknownEvent(data)
    return construct_type(type_=RawMessageStreamEvent, value=found)


def as_json(value: Any) -> Any:
    """An object of the SDK as the JSON it came from."""
    return value.to_dict(mode="json", exclude_unset=True)


def sent_event(event: Any) -> bytes:
    """An event as a provider sends it."""
    if isinstance(event, UnknownEvent):
        return b"".join(b"data: " + line + b"\n" for line in event.data.split(b"\n")) + b"\n"
    data = json.dumps(as_json(event), ensure_ascii=False, separators=(",", ":"))
    return f"event: {event.type}\ndata: {data}\n\n".encode()


class EventReader:
    """Splits a stream of bytes into the data of its events."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the data of each event that a piece completes."""
        first, *lines = piece.split(b"\n")
        self._line.append(first)
        for line in lines:
            whole = b"".join(self._line).rstrip(b"\r")
            self._line = [line]
            if whole.startswith(b"data:"):
                self._data.append(whole[5:].removeprefix(b" "))
            elif not whole and self._data:
                yield b"\n".join(self._data)
                self._data = []


class EventStream:
    """The events of a provider's answer, in the form of an SDK stream."""

    def __init__(self, answer: httpx2.Response) -> None:
        self._answer = answer
        self._events = self._read()

    async def _read(self) -> AsyncIterator[Any]:
        reader = EventReader()
        async for piece in self._answer.aiter_bytes():
            for data in reader.feed(piece):
                yield event_of(data)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        return await anext(self._events)

    async def close(self) -> None:
        """Stop reading."""
        await self._answer.aclose()
