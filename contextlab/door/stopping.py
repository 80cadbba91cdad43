"""Ending within STOP_SECONDS of SIGTERM, whatever is under way."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from twisted.internet import defer, reactor

log = logging.getLogger(__name__)

STOP_SECONDS = 9.0
"""From the signal to the end, by force if necessary."""
DRAIN_SECONDS = 5.0
"""How long requests in progress may still take."""
_LOOK_SECONDS = 0.05


def on_signal(stop: Callable[[], None]) -> None:
    """Call `stop` at SIGTERM or Ctrl+C; end by force after STOP_SECONDS or at the second one."""
    began: list[float] = []

    def begin(number: int, frame: Any) -> None:  # noqa: ARG001
        if began:
            end_now(1, "stopped at the second signal")
        began.append(time.monotonic())
        # A thread, because the event loop itself may be what does not end.
        threading.Thread(target=_force, name="stop", daemon=True).start()
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, begin)


def _force() -> None:
    time.sleep(STOP_SECONDS)
    end_now(1, f"stopped by force after {STOP_SECONDS:g} seconds")


def end_now(code: int, reason: str) -> None:
    """End the process without waiting for its threads. What was answered is in the store; what was
    not is rolled back, and sent again by its client."""
    log.warning("%s", reason)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def until(done: Callable[[], bool]) -> Any:
    """A Deferred that fires when a condition holds, at the latest after DRAIN_SECONDS."""
    result: Any = defer.Deferred()
    limit = time.monotonic() + DRAIN_SECONDS

    def look() -> None:
        if done() or time.monotonic() > limit:
            result.callback(None)
        else:
            reactor.callLater(_LOOK_SECONDS, look)

    look()
    return result
