"""Wrapper for `anthropic` clients that sends the managed context instead of the whole history."""

from __future__ import annotations

import inspect
from asyncio import to_thread
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from os import PathLike
from typing import Any, Self

from contextlab.client.agent_call import AgentCall
from contextlab.client.managed import ManagedSession
from contextlab.client.sessions import ContextLab
from contextlab.client.streamed import AsyncStreamed, Streamed


def wrap(
    client: Any,
    session: str,
    *,
    server: ContextLab | None = None,
    offloads: str | PathLike[str] | None = None,
    **fields: Any,
) -> Any:
    """Wrap an `anthropic.Anthropic()` or `AsyncAnthropic()` client to use managed contexts.

    Each `messages.create` and `messages.stream` stores its messages, sends the managed context, and
    stores the reply with its usage. The agent keeps building its whole history; known messages are
    recognized. Where the policy edits, the model can read back what stubs name, which the agent
    does not see. With `offloads`, a folder, what stubs name is also written there, as files that
    the agent's own tools can open, and the stubs name their paths. One client is one session. If
    our server does not answer, the call is sent unchanged with a warning, so that the agent never
    stops because of us. Other methods work as before; other ways to call a model go out unchanged,
    with a warning. `fields` as in `ContextLab.session`.
    """
    managed = ManagedSession(server or ContextLab(), session, fields, offloads)
    awaited = inspect.iscoroutinefunction(inspect.unwrap(client.messages.create))
    return _AsyncClient(client, managed) if awaited else _Client(client, managed)


class _Wrapped:
    """Delegates to the wrapped object, with a warning for calls we do not manage."""

    _past_us = frozenset({"with_raw_response", "with_streaming_response"})

    def __init__(self, inner: Any, managed: ManagedSession) -> None:
        self._inner, self._managed = inner, managed

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name in self._past_us:
            self._managed.passed_by(name)
        return found


class _AnyClient(_Wrapped):
    _past_us = _Wrapped._past_us | {"beta", "completions"}

    def with_options(self, **options: Any) -> Self:
        """Like the client's own method; the result is managed, too."""
        return type(self)(self._inner.with_options(**options), self._managed)

    copy = with_options


class _Client(_AnyClient):
    @property
    def messages(self) -> _Messages:
        return _Messages(self._inner.messages, self._managed)

    def __enter__(self) -> Self:
        self._inner.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._inner.__exit__(*error)


class _AsyncClient(_AnyClient):
    @property
    def messages(self) -> _AsyncMessages:
        return _AsyncMessages(self._inner.messages, self._managed)

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._inner.__aexit__(*error)


class _AnyMessages(_Wrapped):
    _past_us = _Wrapped._past_us | {"parse", "batches"}


class _Messages(_AnyMessages):
    def create(self, **request: Any) -> Any:
        """Like `anthropic.Anthropic().messages.create`."""
        call = AgentCall(self._managed, request)
        reply = self._inner.create(**call.request)
        if not call.is_managed:
            return reply
        if request.get("stream"):
            return Streamed(reply, call, lambda: self._inner.create(**call.request))
        while call.again(reply):
            reply = self._inner.create(**call.request)
        return call.reply(reply)

    @contextmanager
    def stream(self, **request: Any) -> Iterator[Any]:
        """Like `anthropic.Anthropic().messages.stream`."""
        call = AgentCall(self._managed, request)

        def proceed() -> Any:
            return self._inner.stream(**call.request).__enter__()._raw_stream

        with self._inner.stream(**call.request) as stream:
            if call.is_managed:
                # The SDK has no public way to put a stream under its own.
                stream._raw_stream = Streamed(stream._raw_stream, call, proceed)
            yield stream


class _AsyncMessages(_AnyMessages):
    async def create(self, **request: Any) -> Any:
        """Like `anthropic.AsyncAnthropic().messages.create`."""
        call = await to_thread(AgentCall, self._managed, request)
        reply = await self._inner.create(**call.request)
        if not call.is_managed:
            return reply
        if request.get("stream"):
            return AsyncStreamed(reply, call, lambda: self._inner.create(**call.request))
        while await to_thread(call.again, reply):
            reply = await self._inner.create(**call.request)
        return call.reply(reply)

    @asynccontextmanager
    async def stream(self, **request: Any) -> AsyncIterator[Any]:
        """Like `anthropic.AsyncAnthropic().messages.stream`."""
        call = await to_thread(AgentCall, self._managed, request)

        async def proceed() -> Any:
            return (await self._inner.stream(**call.request).__aenter__())._raw_stream

        async with self._inner.stream(**call.request) as stream:
            if call.is_managed:
                # The SDK has no public way to put a stream under its own.
                stream._raw_stream = AsyncStreamed(stream._raw_stream, call, proceed)
            yield stream
