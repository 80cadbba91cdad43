"""The proxy's ASGI application: `/proxy/KEY/[manage/]anthropic/…`, `/proxy/KEY/openai/…`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from contextlab.client.events import parsed
from contextlab.proxy.calls import ManagedCall, Send, kept, streamed, untouched
from contextlab.proxy.forms import ApiForm, form_of
from contextlab.proxy.inserted import with_inserted
from contextlab.proxy.keys import TOKEN, KnownKeys
from contextlab.proxy.recognized import recognized, with_summary
from contextlab.proxy.recorder import Recorder
from contextlab.proxy.sessions import ProxySessions, SeenCall
from contextlab.proxy.spool import Came, Copy, Spool
from contextlab.proxy.upstream import PROVIDERS, Upstream, forwarded

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
KEY_HEADER, MODE_HEADER = "x-contextlab-key", "x-contextlab-mode"
MOST_BODY = 64 * 1024 * 1024
_OF_NO_FORM = (ValueError, TypeError, AttributeError, RecursionError)
"""What reading a request raises that is of no form that we know."""
THREADS = 32
"""Calls that wait for our server at once; others wait for a turn, or pass untouched."""


class TooLarge(Exception):
    """A body above MOST_BODY."""


class NotAccepted(Exception):
    """A key that our server does not accept."""


class Proxy:
    """What requests share."""

    def __init__(
        self, sessions: ProxySessions, upstreams: dict[str, Upstream], spool: Spool | None
    ) -> None:
        self.sessions, self.upstreams, self.spool = sessions, upstreams, spool
        self.threads = ThreadPoolExecutor(THREADS, "manage")
        self.seen = 0
        """Model calls that came in a form that we know."""
        self.keys, self.recorder = KnownKeys(sessions, self.threads), Recorder()

    def record(
        self, key: str, seen: SeenCall, came: Came, answer: bytes, copy: Copy | None = None
    ) -> None:
        """Store a call in the background."""
        self.sessions.answered(key, seen, answer)
        session = self.sessions.observed(key, seen)

        def work() -> None:
            self.sessions.settle(key, seen)
            session.record(seen, answer)

        size = len(came.body) + len(answer)
        self.recorder.add(session, size, work, copy or self._copy(key, came, answer))

    def missed(
        self, key: str, seen: SeenCall, came: Came, answer: bytes, copy: Copy | None = None
    ) -> None:
        """Store a call to be managed that went on as it came, in the background."""
        self.sessions.answered(key, seen, answer)
        session, reply = self.sessions.managed(key, seen), seen.reply(answer)
        if reply is None:
            return
        size, copy = len(came.body) + len(answer), copy or self._copy(key, came, answer)
        if self.recorder.add(session, size, session.catch_up, copy):
            session.miss(seen.asked, reply)

    def _copy(self, key: str, came: Came, answer: bytes) -> Copy | None:
        return Copy(self.spool, key, came, answer) if self.spool is not None else None

    async def take_up(self, key: str) -> None:
        """Store what an earlier proxy could not, once its key is used again."""
        if self.spool is None or not self.spool.may_have(key):
            return
        loop = asyncio.get_running_loop()
        for path, came, answer in await loop.run_in_executor(self.threads, self.spool.left, key):
            copy = Copy(self.spool, key, came, answer, path)
            read = _read(came.provider, came.path, came.query, came.body)
            if read is None:
                copy.forget()
                continue
            store = self.missed if came.mode == "manage" else self.record
            store(key, SeenCall(*read, came.call), came, answer, copy)

    async def close(self) -> None:
        """Finish what is being recorded, and close all connections."""
        await self.recorder.close()
        for upstream in self.upstreams.values():
            await upstream.close()
        self.threads.shutdown(wait=False, cancel_futures=True)
        self.sessions.close()


def application(
    server: str,
    providers: Mapping[str, str] = PROVIDERS,
    patience: float = 5.0,
    spool: Path | None = None,
    root: str = "",
) -> Starlette:
    """The proxy in front of `providers`, recording to `server`; a call waits for it at most about
    `patience` seconds. `spool` is a folder for calls while `server` is away; `root` a path prefix
    that addresses may have."""
    upstreams = {name: Upstream(url) for name, url in providers.items()}
    kept = Spool(spool) if spool is not None else None
    proxy = Proxy(ProxySessions(server, patience), upstreams, kept)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await proxy.close()

    async def answer(request: Request) -> Response:
        return await _answer(proxy, request)

    routes = [
        *(Route(f"{at}/proxy/{{rest:path}}", answer, methods=METHODS) for at in {root, ""}),
        Route("/healthz", lambda _: JSONResponse({"status": "ok"})),
    ]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.state.proxy = proxy
    return app


class Address(NamedTuple):
    """What the address and headers of a request say."""

    key: str
    mode: str
    provider: str
    path: str


def address_of(request: Request) -> Address:
    """Read `/proxy/[KEY/][manage/]PROVIDER/PATH`; key and mode may be headers instead."""
    # As it came: escapes belong to the provider.
    rest = request.scope["raw_path"].decode("latin-1").partition("/proxy/")[2]
    key, mode = request.headers.get(KEY_HEADER, ""), request.headers.get(MODE_HEADER, "observe")
    first, _, after = rest.partition("/")
    if first.startswith(TOKEN):
        key, rest = first, after
    first, _, after = rest.partition("/")
    if first in ("manage", "observe"):
        mode, rest = first, after
    provider, _, path = rest.partition("/")
    # A base URL may end in a slash, and an address that begins with two names a host.
    return Address(key, mode, provider, path.lstrip("/"))


async def _answer(proxy: Proxy, request: Request) -> Response:
    at = address_of(request)
    if at.provider not in proxy.upstreams:
        named = ", ".join(proxy.upstreams)
        return problem(
            404,
            f"There is no provider {at.provider!r}. Use one of: {named}. A key may come before it, "
            f"and begins with {TOKEN}.",
        )
    # Known keys are checked again while the call is prepared.
    accepts = asyncio.ensure_future(proxy.keys.accepts(at.key))
    try:
        if not proxy.keys.was_accepted(at.key) and not await accepts:
            raise NotAccepted
        await proxy.take_up(at.key)
        return await _forwarded(proxy, request, at, await _body(request), accepts)
    except NotAccepted:
        return problem(
            401,
            f"A valid ContextLab key is needed, in the address or the header {KEY_HEADER}. "
            "Create one with `contextlab token create --team NAME`.",
        )
    except TooLarge:
        return problem(413, f"The body exceeds {MOST_BODY >> 20} MB.")
    except httpx2.InvalidURL:
        return problem(400, "The path is no valid URL.")
    except httpx2.DecodingError:
        return problem(502, f"The answer of {at.provider} cannot be decompressed.")
    except httpx2.TransportError as error:
        return problem(502, f"{at.provider} did not answer: {type(error).__name__}.")


async def _body(request: Request) -> bytes:
    """A request's body. Raises TooLarge, before all of it is read."""
    if int(request.headers.get("content-length") or 0) > MOST_BODY:
        raise TooLarge
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BODY:
            raise TooLarge
    return bytes(body)


async def _forwarded(
    proxy: Proxy, request: Request, at: Address, body: bytes, accepts: Awaitable[bool]
) -> Response:
    async def send(more: Mapping[str, str], content: bytes) -> httpx2.Response:
        if not await accepts:
            raise NotAccepted
        own = [one for one in forwarded(request.headers, at.key) if one[0] not in more]
        upstream = proxy.upstreams[at.provider]
        return await upstream.send(request, at.path, [*own, *more.items()], content)

    query = request.url.query
    seen = _seen(proxy, request, at, body)
    if seen is None:
        return await _passed(send, body, "passed")
    unmanaged = seen.form.unmanaged(seen.request)
    if at.mode == "manage" and not unmanaged and not seen.call.is_side_call:
        session = proxy.sessions.managed(at.key, seen)
        came = Came("manage", at.provider, at.path, query, seen.call, body)
        missed = partial(proxy.missed, at.key, seen, came)
        managed = ManagedCall(seen, session, send, body, proxy.threads, missed)
        return await managed.answer(request.headers.get("anthropic-beta", ""))
    answer = await send({}, body)
    if answer.status_code != 200:
        return streamed(answer, "passed", untouched(answer))
    if "content-encoding" in answer.headers:
        return streamed(answer, "passed; its answer is compressed", untouched(answer))
    mark = f"recording; {unmanaged}" if unmanaged and at.mode == "manage" else "recording"
    came = Came("observe", at.provider, at.path, query, seen.call, body)
    store = partial(proxy.record, at.key, seen, came)
    return streamed(answer, mark, kept(answer, store))


async def _passed(send: Send, body: bytes, mark: str) -> Response:
    answer = await send({}, body)
    return streamed(answer, mark, untouched(answer))


def _seen(proxy: Proxy, request: Request, at: Address, body: bytes) -> SeenCall | None:
    """A call that we know; None if it is none, such as one for a list of models."""
    if request.method != "POST":
        return None
    if (read := _read(at.provider, at.path, request.url.query, body)) is None:
        return None
    form, found, asked = read
    try:
        call = recognized(request.headers, asked)
    except _OF_NO_FORM:
        return None
    proxy.seen += 1
    return proxy.sessions.continued(at.key, SeenCall(form, found, asked, call))


def _read(
    provider: str, path: str, query: str, body: bytes
) -> tuple[ApiForm, dict[str, Any], dict[str, Any]] | None:
    """The API of a request, its fields, and these as for the Messages API; None if it is of no API
    that we know."""
    known = form_of(provider, path, query)
    found = parsed(body) if known is not None else None
    if known is None or found is None:
        return None
    form, fields = known
    found |= fields
    try:
        return form, found, with_summary(with_inserted(form.asked(found)))
    except _OF_NO_FORM:
        return None


def problem(status: int, detail: str) -> Response:
    """A problem of our own, in a form that SDKs of providers can show, too."""
    said = {"type": "error", "error": {"type": "contextlab_error", "message": detail}}
    return JSONResponse({**said, "status": status, "detail": detail}, status)
