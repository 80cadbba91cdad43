"""The proxy's ASGI application: `/proxy/KEY/[manage/]anthropic/…`, `/proxy/KEY/openai/…`."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from contextlab.client.connection import Refused, Unreachable
from contextlab.proxy.calls import ManagedCall, kept, streamed, untouched
from contextlab.proxy.recognized import recognized
from contextlab.proxy.sessions import ObservedSession, ProxySessions
from contextlab.proxy.upstream import PROVIDERS, Upstream, forwarded

log = logging.getLogger(__name__)

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
KEY_HEADER, MODE_HEADER = "x-contextlab-key", "x-contextlab-mode"
TOKEN = "clk_"  # noqa: S105 (no secret)
"""How a key begins."""
MESSAGES = "v1/messages"
KNOWN_SECONDS = 60.0
"""How long a key that our server accepted is not checked again."""
WAITING = 500
"""Answers that may wait to be recorded; more are dropped, with a warning."""
MOST_BODY = 64 * 1024 * 1024


@dataclass(slots=True)
class Proxy:
    """What requests share: providers, sessions, keys that are known, and answers to record."""

    sessions: ProxySessions
    upstreams: dict[str, Upstream]
    known: dict[str, float] = field(default_factory=dict)
    recording: set[asyncio.Task[None]] = field(default_factory=set)
    newest: dict[ObservedSession, asyncio.Task[None]] = field(default_factory=dict)

    async def accepts(self, key: str) -> bool:
        """Whether our server accepts a key; also if it does not answer, so that calls go on."""
        if not key.startswith(TOKEN):
            return False
        if time.monotonic() < self.known.get(key, 0):
            return True
        try:
            await asyncio.to_thread(self._check, key)
        except Refused as error:
            return error.status not in (401, 403)
        except Unreachable:
            return True
        self.known[key] = time.monotonic() + KNOWN_SECONDS
        return True

    def _check(self, key: str) -> None:
        server = self.sessions.server(key).hurried(1)
        server.request("GET", "sessions", query={"limit": 1})

    def record(self, key: str, call: Any, request: dict[str, Any], answer: bytes) -> None:
        """Store a call in the background."""
        if len(self.recording) >= WAITING:
            log.warning("a call was not stored: %s others wait", WAITING)
            return
        session = self.sessions.observed(key, call)
        before = self.newest.get(session)
        task = asyncio.create_task(_after(before, partial(session.record, request, answer)))
        self.newest[session] = task
        self.recording.add(task)
        task.add_done_callback(partial(self._recorded, session))

    def _recorded(self, session: ObservedSession, task: asyncio.Task[None]) -> None:
        self.recording.discard(task)
        if self.newest.get(session) is task:
            del self.newest[session]

    async def close(self) -> None:
        """Finish what is being recorded, and close all connections."""
        if self.recording:
            await asyncio.wait(self.recording, timeout=10)
        for upstream in self.upstreams.values():
            await upstream.close()
        self.sessions.close()


async def _after(before: asyncio.Task[None] | None, work: Callable[[], None]) -> None:
    """Run work in a thread once what came before it in its session is done.

    A history that is stored after a longer one would count as a rewind.
    """
    if before is not None:
        await asyncio.wait([before])
    await asyncio.to_thread(work)


def application(
    server: str, providers: Mapping[str, str] = PROVIDERS, patience: float = 5.0
) -> Starlette:
    """The proxy in front of `providers`, recording to `server`; a call waits for it at most about
    `patience` seconds."""
    proxy = Proxy(
        ProxySessions(server, patience), {name: Upstream(url) for name, url in providers.items()}
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await proxy.close()

    async def answer(request: Request) -> Response:
        return await _answer(proxy, request)

    routes = [
        Route("/proxy/{rest:path}", answer, methods=METHODS),
        Route("/healthz", lambda _: JSONResponse({"status": "ok"})),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


class Address(NamedTuple):
    """What the address and headers of a request say."""

    key: str
    mode: str
    provider: str
    path: str


def address_of(request: Request) -> Address:
    """Read `/proxy/[KEY/][manage/]PROVIDER/PATH`; key and mode may be headers instead."""
    rest = str(request.path_params["rest"])
    key, mode = request.headers.get(KEY_HEADER, ""), request.headers.get(MODE_HEADER, "observe")
    first, _, after = rest.partition("/")
    if first.startswith(TOKEN):
        key, rest = first, after
    first, _, after = rest.partition("/")
    if first in ("manage", "observe"):
        mode, rest = first, after
    provider, _, path = rest.partition("/")
    return Address(key, mode, provider, path)


async def _answer(proxy: Proxy, request: Request) -> Response:
    at = address_of(request)
    if at.provider not in proxy.upstreams:
        named = ", ".join(proxy.upstreams)
        return problem(404, f"There is no provider {at.provider!r}. Use one of: {named}.")
    if not await proxy.accepts(at.key):
        return problem(
            401,
            f"A valid ContextLab key is needed, in the address or the header {KEY_HEADER}. "
            "Create one with `contextlab token create --team NAME`.",
        )
    body = await request.body()
    if len(body) > MOST_BODY:
        return problem(413, f"The body exceeds {MOST_BODY >> 20} MB.")
    try:
        return await _forwarded(proxy, request, at, body)
    except httpx2.TransportError as error:
        return problem(502, f"{at.provider} did not answer: {type(error).__name__}.")


async def _forwarded(proxy: Proxy, request: Request, at: Address, body: bytes) -> Response:
    async def send(more: Mapping[str, str], content: bytes) -> httpx2.Response:
        own = [(name, value) for name, value in forwarded(request.headers) if name not in more]
        upstream = proxy.upstreams[at.provider]
        return await upstream.send(request, at.path, [*own, *more.items()], content)

    is_ours = at.provider == "anthropic" and request.method == "POST" and at.path == MESSAGES
    parsed = _parsed(body) if is_ours else None
    call = recognized(request.headers, parsed) if parsed is not None else None
    if parsed is not None and call is not None and not call.is_side_call and at.mode == "manage":
        managed = ManagedCall(proxy.sessions.managed(at.key, call), send, parsed, body)
        return await managed.answer(request.headers.get("anthropic-beta", ""))
    answer = await send({}, body)
    if parsed is None or call is None or call.is_side_call or answer.status_code != 200:
        return streamed(answer, "passed", untouched(answer))
    store = partial(proxy.record, at.key, call, parsed)
    return streamed(answer, "recorded", kept(answer, store))


def _parsed(body: bytes) -> dict[str, Any] | None:
    """A request of the Messages API, None if it is none that we know."""
    try:
        parsed = json.loads(body)
    except ValueError:
        return None
    messages = parsed.get("messages") if isinstance(parsed, dict) else None
    return parsed if isinstance(messages, list) and messages else None


def problem(status: int, detail: str) -> Response:
    """A problem of our own, in a form that SDKs of providers can show, too."""
    said = {"type": "error", "error": {"type": "contextlab_error", "message": detail}}
    return JSONResponse({**said, "status": status, "detail": detail}, status)
