"""Stores calls in the background: those of one session in their order, and no more than fit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from contextlab.proxy.sessions import ObservedSession

log = logging.getLogger(__name__)

THREADS = 4
WAITING_BYTES = 256 * 1024 * 1024
"""Bytes of requests and answers that may wait to be stored; more are dropped, with a warning. The
next call of the session brings its history again, only usage is lost."""
LAST_SECONDS = 10.0
"""How long the end of the proxy waits for what is being stored."""


class Recorder:
    """Stores calls in threads of its own, so that calls in progress never wait for them."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "record")
        self._waiting: set[asyncio.Task[None]] = set()
        self._newest: dict[ObservedSession, asyncio.Task[None]] = {}
        self._bytes = 0

    def add(self, session: ObservedSession, size: int, work: Callable[[], None]) -> None:
        """Do `work`, which stores a call of `size` bytes, after the earlier ones of its session."""
        if self._bytes + size > WAITING_BYTES:
            log.warning("a call was not stored: %s MB wait", self._bytes >> 20)
            return
        self._bytes += size
        task = asyncio.create_task(self._store(self._newest.get(session), work))
        self._newest[session] = task
        self._waiting.add(task)
        task.add_done_callback(partial(self._stored, session, size))

    async def _store(self, before: asyncio.Task[None] | None, work: Callable[[], None]) -> None:
        # A history that is stored after a longer one would count as a rewind.
        if before is not None:
            await asyncio.wait([before])
        await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _stored(self, session: ObservedSession, size: int, task: asyncio.Task[None]) -> None:
        self._bytes -= size
        self._waiting.discard(task)
        if self._newest.get(session) is task:
            del self._newest[session]

    async def close(self) -> None:
        """Wait for what is being stored."""
        if self._waiting:
            await asyncio.wait(self._waiting, timeout=LAST_SECONDS)
        self._threads.shutdown(wait=False, cancel_futures=True)
