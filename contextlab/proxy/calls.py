"""One model call through the proxy: recorded, or with the managed context instead."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any, TypeVar

import httpx2
from starlette.responses import JSONResponse, Response, StreamingResponse

from contextlab.client.agent_call import AgentCall
from contextlab.client.connection import OverBudget, Paused
from contextlab.client.managed import ManagedSession
from contextlab.client.streamed import AsyncStreamed
from contextlab.proxy.events import EventStream, as_json, message_in, sent_event
from contextlab.proxy.upstream import returned

log = logging.getLogger(__name__)

MARK = "x-contextlab"
"""The header that says what we did to a call: managed, recording, or passed and why."""
_REFUSED = frozenset((400, 413, 422))
"""Statuses with which a provider refuses a request that it cannot take."""
MOST_RECORDED = 64 * 1024 * 1024
"""Bytes of an answer that are kept to be recorded; a longer one passes unrecorded."""

LATE_SECONDS = 8.0
"""How long a call waits for its managed context, with a turn in the threads."""

Result = TypeVar("Result")

Send = Callable[[Mapping[str, str], bytes], Awaitable[httpx2.Response]]
"""Sends a body to the provider, with some more headers."""


def streamed(
    answer: httpx2.Response, mark: str, body: AsyncIterator[bytes], *, decoded: bool = False
) -> Response:
    """A provider's answer on its way to the agent; `decoded` if its compression was undone."""
    headers = {**returned(answer.headers, decoded=decoded), MARK: mark}
    return StreamingResponse(body, answer.status_code, headers)


async def untouched(answer: httpx2.Response) -> AsyncIterator[bytes]:
    """The bytes of an answer."""
    try:
        async for piece in answer.aiter_raw():
            yield piece
    finally:
        await answer.aclose()


async def kept(answer: httpx2.Response, whole: Callable[[bytes], None]) -> AsyncIterator[bytes]:
    """The bytes of an answer; `whole` gets them all, unless the agent left or they are too many."""
    pieces: list[bytes] = []
    size = 0
    async for piece in untouched(answer):
        size += len(piece)
        if size <= MOST_RECORDED:
            pieces.append(piece)
        yield piece
    if size <= MOST_RECORDED:
        whole(b"".join(pieces))


class ManagedCall:
    """A call of the Messages API with the managed context; `original` is the request as it came."""

    def __init__(
        self,
        session: ManagedSession,
        send: Send,
        request: dict[str, Any],
        original: bytes,
        threads: Executor,
    ) -> None:
        self._session, self._send, self._threads = session, send, threads
        # An agent has its own headers; a field of this name would become one.
        self._request = {name: one for name, one in request.items() if name != "extra_headers"}
        self._original = original

    async def answer(self, betas: str) -> Response:
        """The answer for the agent; `betas` is its own header anthropic-beta.

        If our server fails, or the provider refuses what we made, the request goes on as it came.
        """
        headers = {"extra_headers": {"anthropic-beta": betas}} if betas else {}
        try:
            made = self._in_thread(AgentCall, self._session, {**self._request, **headers})
            call = await asyncio.wait_for(made, LATE_SECONDS)
        except OverBudget as error:
            return over_budget(error)
        except TimeoutError:
            return await self._passed("ContextLab is late")
        except Paused as error:
            return paused(error)
        if not call.is_managed:
            return await self._passed("no answer from ContextLab")
        answer = await self._next(call)
        if answer.status_code in _REFUSED:
            await answer.aclose()
            log.warning("the provider refused a managed context: %s", answer.status_code)
            return await self._passed(f"refused with {answer.status_code}")
        if answer.status_code != 200:
            return streamed(answer, "managed", untouched(answer))
        if self._request.get("stream"):
            return streamed(answer, "managed", self._events(answer, call), decoded=True)
        return await self._whole(answer, call)

    async def _passed(self, why: str) -> Response:
        answer = await self._send({}, self._original)
        return streamed(answer, f"passed; {why}", untouched(answer))

    async def _next(self, call: AgentCall) -> httpx2.Response:
        request = dict(call.request)
        added = request.pop("extra_headers", {}).items()
        headers = {name: value for name, value in added if name.lower() == "anthropic-beta"}
        body = json.dumps(request, ensure_ascii=False, separators=(",", ":"))
        return await self._send(headers, body.encode("utf-8", "backslashreplace"))

    async def _events(self, answer: httpx2.Response, call: AgentCall) -> AsyncIterator[bytes]:
        async def proceed() -> EventStream:
            following = await self._next(call)
            if following.status_code != 200:
                await following.aread()
            return EventStream(following.raise_for_status())

        stream = AsyncStreamed(EventStream(answer), call, proceed)
        try:
            async for event in stream:
                yield sent_event(event)
        except httpx2.HTTPStatusError as error:
            yield b"event: error\ndata: " + b"".join(error.response.content.splitlines()) + b"\n\n"
        finally:
            await stream.close()

    async def _whole(self, answer: httpx2.Response, call: AgentCall) -> Response:
        while True:
            body = await answer.aread()
            reply = message_in(body) if answer.status_code == 200 else None
            if reply is None or not await self._in_thread(call.again, reply):
                break
            answer = await self._next(call)
        shown = call.reply(reply) if reply is not None else None
        if shown is not reply:
            body = json.dumps(as_json(shown), ensure_ascii=False).encode()
        headers = {**returned(answer.headers, decoded=True), MARK: "managed"}
        return Response(body, answer.status_code, headers)

    def _in_thread(self, work: Callable[..., Result], *given: Any) -> asyncio.Future[Result]:
        return asyncio.get_running_loop().run_in_executor(self._threads, partial(work, *given))


def over_budget(error: OverBudget) -> Response:
    """A budget's refusal as an error of the Messages API."""
    said = {"type": "permission_error", "message": f"ContextLab: {error}"}
    return JSONResponse({"type": "error", "error": said}, 402, {MARK: "refused"})


def paused(error: Paused) -> Response:
    """A pause as an error of the Messages API that agents try again after."""
    said = {"type": "rate_limit_error", "message": f"ContextLab: {error}"}
    headers = {MARK: "paused", "Retry-After": str(round(error.retry_after))}
    return JSONResponse({"type": "error", "error": said}, 429, headers)
