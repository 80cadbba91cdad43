"""Stores calls in the background: those of one session in their order, and no more than fit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from contextlab.client.connection import Refused, Unreachable
from contextlab.proxy.spool import Copy

log = logging.getLogger(__name__)

THREADS = 4
WAITING_BYTES = 256 * 1024 * 1024
"""Bytes of requests and answers that may wait to be stored; more are dropped, with a warning. The
next call of the session brings its history again, only usage is lost."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 10.0
"""Seconds until an absent server is asked again: the first pause, doubled up to the longest."""
LAST_SECONDS = 10.0
"""How long the end of the proxy waits for what is being stored."""


class Recorder:
    """Stores calls in threads of its own, so that calls in progress never wait for them.

    While our server is away, they wait for it.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "record")
        self._waiting: set[asyncio.Task[None]] = set()
        self._newest: dict[Hashable, asyncio.Task[None]] = {}
        self._bytes = 0
        self._closing = asyncio.Event()

    def add(
        self, session: Hashable, size: int, work: Callable[[], None], copy: Copy | None = None
    ) -> bool:
        """Do `work`, which stores a call of `size` bytes, after the earlier ones of its session;
        again if it raises Unreachable. Return whether there is room. While the call waits for our
        server, it has a `copy` on disk."""
        if self._bytes + size > WAITING_BYTES:
            log.warning("a call was not stored: %s MB wait", self._bytes >> 20)
            return False
        self._bytes += size
        task = asyncio.create_task(self._store(self._newest.get(session), work, copy))
        self._newest[session] = task
        self._waiting.add(task)
        task.add_done_callback(partial(self._stored, session, size))
        return True

    async def _store(
        self, before: asyncio.Task[None] | None, work: Callable[[], None], copy: Copy | None
    ) -> None:
        # A history that is stored after a longer one would count as a rewind.
        if before is not None:
            await asyncio.wait([before], timeout=None if copy is None else FIRST_PAUSE)
            if copy is not None and not before.done():
                await self._in_thread(copy.keep)
            await asyncio.wait([before])
        if await self._is_settled(work, copy) and copy is not None:
            await self._in_thread(copy.forget)

    async def _is_settled(self, work: Callable[[], None], copy: Copy | None) -> bool:
        """Do the work until it is done or refused; False if the proxy ends before."""
        pause = FIRST_PAUSE
        while True:
            is_last = self._closing.is_set()
            try:
                await self._in_thread(work)
            except Unreachable as error:
                if pause == FIRST_PAUSE:
                    log.warning("a call is stored later: %s", error)
                    if copy is not None:
                        await self._in_thread(copy.keep)
                if is_last:
                    log.warning("a call was not stored: %s", error)
                    return False
            except Exception as error:  # noqa: BLE001 (an agent must not notice)
                # The text of other errors may contain what an agent said.
                why = type(error).__name__
                if isinstance(error, Refused):
                    why = f"{error.status} {error.problem.get('title', '')}"
                log.warning("a call was not stored: %s", why)
                return True
            else:
                return True
            await self._pause(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _in_thread(self, work: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def _pause(self, seconds: float) -> None:
        """Wait, but not beyond the end of the proxy."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)

    def _stored(self, session: Hashable, size: int, task: asyncio.Task[None]) -> None:
        self._bytes -= size
        self._waiting.discard(task)
        if self._newest.get(session) is task:
            del self._newest[session]

    async def close(self) -> None:
        """Wait for what is being stored."""
        self._closing.set()
        if self._waiting:
            await asyncio.wait(self._waiting, timeout=LAST_SECONDS)
        self._threads.shutdown(wait=False, cancel_futures=True)
