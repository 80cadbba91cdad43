"""Streams of model events, passed through; a callback gets all events of a complete message."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Self

Told = Callable[[list[Any]], None]


class _Gathered:
    """An SDK stream, with the events received so far."""

    def __init__(self, stream: Any, answer: Told) -> None:
        self._stream, self._told = stream, answer
        self._events: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _is_whole(self, event: Any) -> bool:
        self._events.append(event)
        return bool(event.type == "message_stop")


class Streamed(_Gathered):
    """The stream of `messages.create(stream=True)`."""

    def __next__(self) -> Any:
        event = next(self._stream)
        if self._is_whole(event):
            self._told(self._events)
        return event

    def __iter__(self) -> Iterator[Any]:
        return self

    def __enter__(self) -> Self:
        self._stream.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stream.__exit__(*error)


class AsyncStreamed(_Gathered):
    """The stream of `messages.create(stream=True)` of an asynchronous client."""

    async def __anext__(self) -> Any:
        event = await anext(self._stream)
        if self._is_whole(event):
            await to_thread(self._told, self._events)
        return event

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stream.__aexit__(*error)
