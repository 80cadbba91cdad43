"""Threads that run requests: the one that was idle for the shortest time works next.

With little load one thread does everything, with its open database connection and that connection's
cache; the others end. They are daemons, so that none can keep the process from ending.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from django.db import connections

log = logging.getLogger(__name__)

IDLE_SECONDS = 10.0
"""How long a thread, and its connection, is kept without work."""


class Threads:
    """Runs each call in a thread, at once; the caller limits how many."""

    def __init__(self) -> None:
        self._idle: list[_Thread] = []

    def run(self, call: Callable[[], None]) -> None:
        """Run a call in an idle thread, or in a new one."""
        try:
            thread = self._idle.pop()
        except IndexError:
            thread = _Thread(self._idle)
            thread.start()
        thread.calls.put(call)


class _Thread(threading.Thread):
    def __init__(self, idle: list[_Thread]) -> None:
        super().__init__(name="request", daemon=True)
        self.calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._idle_threads = idle

    def run(self) -> None:
        while (call := self._next()) is not None:
            try:
                call()
            except Exception:
                log.exception("a request's thread failed")
            self._idle_threads.append(self)
        connections.close_all()

    def _next(self) -> Callable[[], None] | None:
        try:
            return self.calls.get(timeout=IDLE_SECONDS)
        except Empty:
            pass
        try:
            self._idle_threads.remove(self)
        except ValueError:  # just chosen: its call is on the way
            return self.calls.get()
        return None
