"""Runs Django for a request in a thread, and sends its answer from the event loop.

Django's synchronous handler does everything in one thread: a request costs one hop there and one
back.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote_to_bytes

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http.response import HttpResponseBase
from twisted.internet import reactor

from sessions import tracing
from sessions.log_context import with_ids
from sessions.views.web.headers import ROUTE

log = logging.getLogger(__name__)

Headers = list[tuple[str, str]]

PIECES_AHEAD = 8
"""Pieces of a streamed answer that may be on the way to the event loop."""


class Gateway:
    """Answers requests with Django's WSGI application."""

    def __init__(self) -> None:
        self.application = get_wsgi_application()

    def answer(self, request: Any, done: Any) -> None:
        """Answer a request, in its thread; then call `done(CPU seconds)` on the event loop."""
        began = time.thread_time()
        try:
            if not request.gone:
                with with_ids(request=request.id), tracing.span("request") as span:
                    self._answer(request)
                    span.update_name(f"{request.method.decode('latin-1')} {request.route}")
                    span.set_attribute("http.route", request.route)
        except Exception:  # before or after Django, which answers its own errors
            log.exception("a request failed outside Django")
            reactor.callFromThread(request.fail)
        finally:
            request.body.close()
            reactor.callFromThread(done, time.thread_time() - began)

    def _answer(self, request: Any) -> None:
        started: list[Any] = []

        def start_response(status: str, headers: Headers, *_: Any) -> Any:
            started.extend((int(status[:3]), headers))

        environ = environ_of(request)
        result: Any = self.application(environ, start_response)
        request.route = environ.get(ROUTE, "")
        try:
            if isinstance(result, HttpResponseBase) and not result.streaming:
                reactor.callFromThread(request.reply, *started, result.content)  # type: ignore[attr-defined]
            else:
                _stream(request, started, result)
        finally:
            result.close()


def _stream(request: Any, started: list[Any], pieces: Iterable[bytes]) -> None:
    """Send pieces as fast as the client takes them; stop once it is gone."""
    flow = Flow(request)
    reactor.callFromThread(request.begin, *started, flow)
    for piece in pieces:
        if not flow.wait():
            return
        reactor.callFromThread(request.send, piece, flow)
    reactor.callFromThread(request.end)


class Flow:
    """A push producer for Twisted: holds the thread while the client does not read."""

    def __init__(self, request: Any) -> None:
        self._request = request
        self._open = threading.Event()
        self._open.set()
        self._ahead = threading.Semaphore(PIECES_AHEAD)

    def wait(self) -> bool:
        """Wait until the client can take another piece; False once it is gone."""
        while not self._request.gone:
            if self._open.wait(1) and self._ahead.acquire(timeout=1):
                return True
        return False

    def sent(self) -> None:
        """The event loop has taken a piece."""
        self._ahead.release()

    def pauseProducing(self) -> None:
        """The send buffer is full."""
        self._open.clear()

    def resumeProducing(self) -> None:
        """The send buffer has room."""
        self._open.set()

    def stopProducing(self) -> None:
        """The connection is lost."""
        self._open.set()


def environ_of(request: Any) -> dict[str, Any]:
    """A request as PEP 3333 describes it."""
    path, _, query = request.uri.partition(b"?")
    secure = request.isSecure()
    environ = {
        "REQUEST_METHOD": request.method.decode("latin-1"),
        "SCRIPT_NAME": settings.FORCE_SCRIPT_NAME or "",
        "PATH_INFO": unquote_to_bytes(below_root(path)).decode("latin-1"),
        "QUERY_STRING": query.decode("latin-1"),
        "SERVER_NAME": str(request.host.host),
        "SERVER_PORT": str(request.host.port),
        "SERVER_PROTOCOL": request.clientproto.decode("latin-1"),
        "REMOTE_ADDR": str(request.client.host),
        "CONTENT_LENGTH": str(request.size),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "https" if secure else "http",
        "wsgi.input": request.body,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, values in request.requestHeaders.getAllRawHeaders():
        if name == b"Content-Type":
            environ["CONTENT_TYPE"] = values[0].decode("latin-1")
        elif b"_" not in name and name != b"Content-Length":
            # A name with "_" could pass for one with "-" (CVE-2015-0219).
            joint = b"; " if name == b"Cookie" else b","
            key = "HTTP_" + name.decode("latin-1").upper().replace("-", "_")
            environ[key] = joint.join(values).decode("latin-1")
    return environ


def below_root(path: bytes) -> bytes:
    """A path without CONTEXTLAB_ROOT_PATH, which a proxy in front may keep or remove."""
    root = (settings.FORCE_SCRIPT_NAME or "").rstrip("/").encode()
    inside = root and path.startswith(root) and path[len(root) : len(root) + 1] in (b"/", b"")
    return (path[len(root) :] or b"/") if inside else path
