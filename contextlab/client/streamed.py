"""Streams of model events without calls of `read_back`; what they read continues the stream."""

from __future__ import annotations

from asyncio import to_thread
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Self

from contextlab.client.agent_call import AgentCall


class _Joined:
    """An SDK stream and those that continue it; their events as those of one message."""

    def __init__(self, stream: Any, call: AgentCall) -> None:
        self._stream, self._call = stream, call
        self._events: list[Any] = []
        self._ready: deque[Any] = deque()
        self._end: list[Any] = []
        self._places: dict[int, int] = {}
        self._blocks = 0
        self._began = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _take(self, event: Any) -> bool:
        """Take an event; return whether the message is complete."""
        self._events.append(event)
        if event.type == "message_start":
            self._ready += [] if self._began else [event]
            self._began = True
        elif event.type in ("message_delta", "message_stop"):
            self._end.append(event)
        elif event.type.startswith("content_block_"):
            self._ready += self._of_block(event)
        else:
            self._ready.append(event)
        return bool(event.type == "message_stop")

    def _of_block(self, event: Any) -> list[Any]:
        starts = event.type == "content_block_start"
        if starts and not self._call.hides(event.content_block):
            self._places[event.index] = self._blocks
            self._blocks += 1
        place = self._places.get(event.index)
        return [] if place is None else [event.model_copy(update={"index": place})]

    def _finish(self) -> None:
        self._ready += [self._ended(event) for event in self._end]

    def _ended(self, event: Any) -> Any:
        if event.type != "message_delta":
            return event
        reason = self._call.stop_reason(event.delta.stop_reason)
        delta = event.delta.model_copy(update={"stop_reason": reason})
        return event.model_copy(update={"delta": delta})

    def _continue(self, stream: Any) -> None:
        self._stream, self._events, self._end, self._places = stream, [], [], {}


class Streamed(_Joined):
    """The stream of a synchronous client; `proceed` opens one that continues it."""

    def __init__(self, stream: Any, call: AgentCall, proceed: Callable[[], Any]) -> None:
        super().__init__(stream, call)
        self._proceed = proceed

    def __next__(self) -> Any:
        while not self._ready:
            if not self._take(next(self._stream)):
                continue
            if self._call.again_after(self._events):
                self._stream.close()
                self._continue(self._proceed())
            else:
                self._finish()
        return self._ready.popleft()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __enter__(self) -> Self:
        self._stream.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stream.__exit__(*error)


class AsyncStreamed(_Joined):
    """The stream of an asynchronous client; `proceed` opens one that continues it."""

    def __init__(self, stream: Any, call: AgentCall, proceed: Callable[[], Awaitable[Any]]) -> None:
        super().__init__(stream, call)
        self._proceed = proceed

    async def __anext__(self) -> Any:
        while not self._ready:
            if not self._take(await anext(self._stream)):
                continue
            if await to_thread(self._call.again_after, self._events):
                await self._stream.close()
                self._continue(await self._proceed())
            else:
                self._finish()
        return self._ready.popleft()

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stream.__aexit__(*error)
