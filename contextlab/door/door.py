"""The door itself: which requests run now, which wait, which are refused."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.conf import settings
from django.db import DatabaseError, close_old_connections
from twisted.internet import reactor

from contextlab.door import callers, metrics
from contextlab.door.callers import Credentials
from contextlab.door.gateway import Gateway, below_root
from contextlab.door.lanes import Full, LaneLimits, Lanes
from contextlab.door.readiness import Readiness
from contextlab.door.threads import Threads
from sessions import metrics as counts

log = logging.getLogger(__name__)

THREADS = 64
"""Requests of all payers that run at once. Most wait, for the disk, the lock of the database or a
summary."""
STRANGERS = 8
"""Requests without valid credentials that run at once from one address."""
WAIT_SECONDS = 20.0
"""How long a request waits for its turn; clients give up after 30 seconds."""
_OK = b'{"status": "ok"}'
_JSON = "application/json"
_STOPPING = "The server is stopping. Try again."


@dataclass(frozen=True, slots=True, eq=False)
class Identify:
    """A check of a request's credentials, which waits like a request."""

    request: Any
    credentials: Credentials
    then: Callable[[str], None]
    size: int = 0


class FrontDoor:
    """Lets requests in, in the order of the lanes; all methods run on the event loop."""

    def __init__(self) -> None:
        self.lanes = Lanes(THREADS)
        self.threads = Threads()
        self.known = callers.Known()
        self.arriving: dict[Any, float] = {}
        self.gateway = Gateway()
        self.readiness = Readiness()
        self.stopping = False

    def start(self) -> None:
        """Look after late requests, every second."""
        reactor.callLater(1, self._look)

    def _look(self) -> None:
        now = reactor.seconds()
        for request in [one for one, until in self.arriving.items() if until < now]:
            del self.arriving[request]
            request.too_slow()
        for _, work in self.lanes.overdue(WAIT_SECONDS):
            _turn_away(work, 503, f"The server was busy for {WAIT_SECONDS:g} seconds.", 2)
        self.start()

    def enter(self, request: Any) -> None:
        """A whole request has arrived."""
        path = below_root(request.path)
        if path == b"/healthz":
            request.plain(200, _JSON, _OK)
        elif self.stopping:
            request.turn_away(503, _STOPPING, 2)
        elif path == b"/readyz":
            self.threads.run(partial(self._check_ready, request))
        elif path == b"/metrics":
            self._show_metrics(request)
        else:
            self._queue(request)

    def _check_ready(self, request: Any) -> None:
        reason = self.readiness.reason()
        if reason:
            reactor.callFromThread(request.simple, 503, reason, ("Retry-After", "5"))
        else:
            reactor.callFromThread(request.plain, 200, _JSON, b'{"status": "ready"}')

    def _show_metrics(self, request: Any) -> None:
        if metrics.allowed(request.authorization()):
            counts.REQUESTS_RUNNING.set(self.lanes.running())
            counts.REQUESTS_WAITING.set(self.lanes.waiting_count())
            self.threads.run(partial(self._read_metrics, request))
        else:
            request.simple(404, "There is nothing at this address.")

    def _read_metrics(self, request: Any) -> None:
        try:
            text = metrics.text()
        except DatabaseError as error:
            log.warning("metrics not read: %s", type(error).__name__)
            reactor.callFromThread(request.simple, 503, "The database does not answer.")
        else:
            reactor.callFromThread(request.plain, 200, metrics.CONTENT_TYPE, text)
        finally:
            close_old_connections()

    def _queue(self, request: Any) -> None:
        credentials = request.credentials()
        payer = self.known.payer(credentials) if credentials is not None else ""
        if payer or credentials is None:
            self._offer(request, payer)
        else:
            self.identify(request, credentials, partial(self._offer, request))

    def identify(self, request: Any, credentials: Credentials, then: Callable[[str], None]) -> None:
        """Check credentials in a thread, in the lane of their address, then call `then(payer)`."""
        self._wait(_address(request), Identify(request, credentials, then))

    def _offer(self, request: Any, payer: str) -> None:
        if not request.gone:
            request.payer = payer or _address(request)
            self._wait(request.payer, request)

    def _wait(self, payer: str, work: Any) -> None:
        try:
            self.lanes.offer(payer, limits_of(payer), work)
        except Full as full:
            detail = f"Too many requests of one sender: {full.limit}. Wait, then retry."
            _turn_away(work, 429, detail, full.seconds)
        else:
            self._next()

    def _next(self) -> None:
        while not self.stopping and (found := self.lanes.take()) is not None:
            payer, work = found
            if isinstance(work, Identify):
                self.threads.run(partial(self._check, payer, work))
            else:
                self.threads.run(partial(self.gateway.answer, work, partial(self._done, payer)))

    def _check(self, lane: str, work: Identify) -> None:
        began, payer = time.thread_time(), None
        try:
            payer = callers.payer_of(work.credentials)
        except DatabaseError as error:
            log.warning("credentials not checked: %s", type(error).__name__)
        finally:
            close_old_connections()
            reactor.callFromThread(self._checked, lane, work, payer, time.thread_time() - began)

    def _checked(self, lane: str, work: Identify, payer: str | None, seconds: float) -> None:
        self._done(lane, seconds)
        if payer is None:
            _turn_away(work, 503, "The database is not responding; nothing was stored.", 2)
            return
        if payer:
            self.known.keep(work.credentials, payer)
        work.then(payer)

    def _done(self, payer: str, seconds: float) -> None:
        self.lanes.done(payer, seconds)
        self._next()

    def forget(self, request: Any) -> None:
        """A client went away: its request need not run."""
        if request.payer:
            self.lanes.forget(request.payer, request)

    def drain(self) -> None:
        """Take no more requests, and refuse those that wait or still arrive."""
        self.stopping = True
        for _, work in self.lanes.overdue(-1):
            _turn_away(work, 503, _STOPPING, 2)
        for request in list(self.arriving):
            _turn_away(request, 503, _STOPPING, 2)


def limits_of(payer: str) -> LaneLimits:
    """What a team or a person may have at once, and what an address without credentials."""
    known = not payer.startswith("address ")
    return LaneLimits(
        running=settings.API_AT_ONCE if known else STRANGERS,
        waiting=settings.API_WAITING,
        bytes_waiting=2 * settings.UPLOAD_LIMIT,
        requests=settings.API_RATE,
        bytes=settings.API_RATE_BYTES,
    )


def _address(request: Any) -> str:
    """The lane of those without credentials: their address, as in `sessions.access.ip_of`."""
    said = ""
    if settings.SECURE_PROXY_SSL_HEADER:
        values = request.requestHeaders.getRawHeaders(b"X-Forwarded-For") or [b""]
        said = values[-1].decode("latin-1").rpartition(",")[2].strip()[:45]
    return f"address {said or request.client.host}"


def _turn_away(work: Any, status: int, detail: str, seconds: float) -> None:
    request = work.request if isinstance(work, Identify) else work
    if not request.gone:
        request.turn_away(status, detail, seconds)
