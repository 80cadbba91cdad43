"""One model call through the proxy: recorded, or with the managed context instead."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, TypeVar

import httpx2
from starlette.responses import JSONResponse, Response, StreamingResponse

from contextlab.client.agent_call import AgentCall
from contextlab.client.connection import OverBudget, Paused
from contextlab.client.events import EventTooLong, data_of, encoded, parsed
from contextlab.client.managed import ManagedSession
from contextlab.client.relay import Relay, relayed_later
from contextlab.proxy.sessions import SeenCall
from contextlab.proxy.upstream import returned

log = logging.getLogger(__name__)

MARK = "x-contextlab"
"""The header that says what we did to a call: managed, recording, or passed and why."""
_REFUSED = frozenset((400, 413, 422))
"""Statuses with which a provider refuses a request that it cannot take."""
MOST_RECORDED = 64 * 1024 * 1024
"""Bytes of an answer that are kept to be recorded; a longer one passes unrecorded."""
MOST_READ = 16 * 1024 * 1024
"""Bytes of an answer that is read before the agent has it; the model may read back in it."""

_READ = frozenset(("", "identity", "gzip", "deflate"))
"""Encodings of answers that are read; we ask for none, but a gateway may compress regardless."""

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
    """A call with the managed context; `original` is the request as it came.

    `missed` gets the answer if the request went on as it came.
    """

    def __init__(
        self,
        seen: SeenCall,
        session: ManagedSession,
        send: Send,
        original: bytes,
        threads: Executor,
        missed: Callable[[bytes], None],
    ) -> None:
        self._form, self._request, self._asked = seen.form, seen.request, seen.asked
        self._session, self._send, self._threads = session, send, threads
        self._original, self._missed = original, missed
        self._made: Future[AgentCall] | None = None

    async def answer(self, betas: str) -> Response:
        """The answer for the agent; `betas` is its own header anthropic-beta.

        If our server fails, or the provider refuses what we made, the request goes on as it came.
        """
        headers = {"extra_headers": {"anthropic-beta": betas}} if betas else {}
        asked = {**self._asked, **headers}
        try:
            self._made = self._threads.submit(AgentCall, self._session, asked)
            call = await asyncio.wait_for(asyncio.wrap_future(self._made), LATE_SECONDS)
        except OverBudget as error:
            return self._over_budget(error)
        except TimeoutError:
            return await self._passed("ContextLab is late")
        except Paused as error:
            return self._paused(error)
        if not call.is_managed:
            return await self._passed("no answer from ContextLab")
        answer = await self._next(call)
        if answer.status_code in _REFUSED:
            await answer.aclose()
            log.warning("the provider refused a managed context: %s", answer.status_code)
            return await self._passed(f"refused with {answer.status_code}")
        if answer.status_code != 200:
            return streamed(answer, "managed", untouched(answer))
        if answer.headers.get("content-encoding", "").lower() not in _READ:
            return streamed(answer, "managed; its answer is compressed", untouched(answer))
        if self._request.get("stream") and "json" not in answer.headers.get("content-type", ""):
            body = self._relayed(answer, call)
            return streamed(answer, "managed", body, decoded=True)
        return await self._whole(answer, call)

    async def _passed(self, why: str) -> Response:
        answer = await self._send({}, self._original)
        mark, is_known = f"passed; {why}", "content-encoding" not in answer.headers
        if answer.status_code != 200 or not is_known:
            return streamed(answer, mark, untouched(answer))
        return streamed(answer, mark, kept(answer, self._store))

    def _store(self, answer: bytes) -> None:
        """Hand over an answer, once nothing stores the shorter history of its request."""
        loop = asyncio.get_running_loop()
        assert self._made is not None
        self._made.add_done_callback(lambda _: loop.call_soon_threadsafe(self._missed, answer))

    async def _next(self, call: AgentCall) -> httpx2.Response:
        if not call.is_managed and self._form.format != "anthropic":
            return await self._send({}, self._original)
        added = call.request.get("extra_headers", {}).items()
        headers = {name: value for name, value in added if name.lower() == "anthropic-beta"}
        return await self._send(headers, encoded(self._form.sent(self._request, call.request)))

    async def _relayed(self, answer: httpx2.Response, call: AgentCall) -> AsyncIterator[bytes]:
        relay = Relay(self._form, call, self._request)

        async def following() -> AsyncIterator[bytes]:
            nonlocal answer
            await answer.aclose()
            answer = await self._next(call)
            if answer.status_code != 200:
                await answer.aread()
            answer.raise_for_status()
            return data_of(answer)

        try:
            async for made in relayed_later(relay, data_of(answer), following):
                yield made
        except httpx2.HTTPStatusError as error:
            yield relay.refused(error.response.content)
        except EventTooLong:
            yield self._unread(relay, "an event of the answer is too long")
        except httpx2.DecodingError:
            yield self._unread(relay, "the answer cannot be decompressed")
        finally:
            await answer.aclose()

    def _unread(self, relay: Relay, why: str) -> bytes:
        return relay.refused(encoded(self._form.error("api_error", f"ContextLab: {why}")))

    async def _whole(self, answer: httpx2.Response, call: AgentCall) -> Response:
        answers: list[dict[str, Any]] = []
        while True:
            body, rest = await _read(answer)
            if rest is not None:
                mark = "managed; its answer is too long to read"
                return streamed(answer, mark, _joined(body, rest, answer), decoded=True)
            found = parsed(body) if answer.status_code == 200 else None
            reply = self._form.known_reply(found)
            if found is None or reply is None:
                break
            answers.append(found)
            if not await self._in_thread(call.again, reply):
                if call.has_hidden:
                    body = encoded(self._form.shown(answers, call))
                break
            answer = await self._next(call)
        headers = {**returned(answer.headers, decoded=True), MARK: "managed"}
        return Response(body, answer.status_code, headers)

    def _in_thread(self, work: Callable[..., Result], *given: Any) -> asyncio.Future[Result]:
        return asyncio.get_running_loop().run_in_executor(self._threads, partial(work, *given))

    def _over_budget(self, error: OverBudget) -> Response:
        said = self._form.error("permission_error", f"ContextLab: {error}")
        return JSONResponse(said, 402, {MARK: "refused"})

    def _paused(self, error: Paused) -> Response:
        said = self._form.error("rate_limit_error", f"ContextLab: {error}")
        headers = {MARK: "paused", "Retry-After": str(round(error.retry_after))}
        return JSONResponse(said, 429, headers)


async def _read(answer: httpx2.Response) -> tuple[bytes, AsyncIterator[bytes] | None]:
    """The body of an answer; what follows MOST_READ is left to be read, None if nothing does."""
    pieces, rest = bytearray(), answer.aiter_bytes()
    async for piece in rest:
        pieces += piece
        if len(pieces) > MOST_READ:
            return bytes(pieces), rest
    await answer.aclose()
    return bytes(pieces), None


async def _joined(
    body: bytes, rest: AsyncIterator[bytes], answer: httpx2.Response
) -> AsyncIterator[bytes]:
    try:
        yield body
        async for piece in rest:
            yield piece
    finally:
        await answer.aclose()
