"""Call functions of the engine in processes of their own, which are killed at a deadline.

For work on content that is too long for the web process: no thread can be stopped, and a thread in
C code may hold up all others. The functions are pure, so nothing is lost with a process. Processes
start when first needed, stay warm, and end with the server.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import queue
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

PROCESSES = 2
PACKAGES = ("compaction.",)
"""Where functions may come from: no framework, no database."""
PRELOADED = ["compaction.fold.fold", "compaction.render", "compaction.tokens"]
START_SECONDS = 60.0

_context = multiprocessing.get_context("forkserver")
_slots: queue.LifoQueue[_ProcessApart | None] = queue.LifoQueue()
"""Idle processes, the newest first, and None for each that has not been started."""
for _ in range(PROCESSES):
    _slots.put(None)


class NotInTime(Exception):
    """The call was stopped after `seconds`, or no process was free until then (`busy`)."""

    def __init__(self, seconds: float, *, busy: bool) -> None:
        super().__init__(f"no answer within {seconds:g} seconds")
        self.seconds, self.busy = seconds, busy


class FailedApart(Exception):
    """The call raised an exception, named by its class, or ended its process."""


def call_apart(
    seconds: float, function: Callable[P, T], *arguments: P.args, **named: P.kwargs
) -> T:
    """Call a function of the engine in another process and return its result.

    Arguments and result are pickled. Raises NotInTime after `seconds`, FailedApart for an
    exception, ValueError for a function of another package.
    """
    if not function.__module__.startswith(PACKAGES):
        raise ValueError(f"{function.__module__} is not part of {PACKAGES}")
    end = time.monotonic() + seconds
    try:
        process = _slots.get(timeout=seconds)
    except queue.Empty:
        raise NotInTime(seconds, busy=True) from None
    kept: _ProcessApart | None = None
    try:
        if process is None:
            process = _ProcessApart()
            end = time.monotonic() + seconds  # starting is not the content's fault
        answer = process.answer(pickle.dumps((function, arguments, named)), end)
        kept = process if answer not in (None, _GONE) else None
    finally:
        if kept is None and process is not None:
            process.end()
        _slots.put(kept)
    if answer is None:
        raise NotInTime(seconds, busy=False)
    good, value = pickle.loads(answer)  # noqa: S301 (our own process)
    if not good:
        raise FailedApart(value)
    result: T = value
    return result


class _ProcessApart:
    """A process that calls functions, one after another."""

    def __init__(self) -> None:
        _context.set_forkserver_preload(PRELOADED)
        self._pipe, theirs = _context.Pipe()
        self._process = _context.Process(target=_work, args=(theirs,), name="apart", daemon=True)
        self._process.start()
        theirs.close()
        if not self._pipe.poll(START_SECONDS) or self._received() is None:
            self.end()
            raise FailedApart("its process did not start")

    def answer(self, call: bytes, end: float) -> bytes | None:
        """The pickled answer to a call; None if there is none by then, _GONE if it ended."""
        try:
            self._pipe.send_bytes(call)
        except OSError:
            return _GONE
        if not self._pipe.poll(max(end - time.monotonic(), 0)):
            return None
        return self._received() or _GONE

    def _received(self) -> bytes | None:
        try:
            return self._pipe.recv_bytes()
        except (EOFError, OSError):
            return None

    def end(self) -> None:
        """Kill it, whatever it does."""
        self._process.kill()
        self._process.join()
        self._pipe.close()


_GONE = pickle.dumps((False, "its process ended"))


def _work(pipe: Connection) -> None:
    """Take calls until the other end is closed; runs in the other process."""
    _end_with_server()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the server
    _limit()
    pipe.send_bytes(b"ready")
    while True:
        try:
            call = pipe.recv_bytes()
        except EOFError:
            return
        pipe.send_bytes(_answer(call))


def _end_with_server() -> None:
    # The fork server ends when all ends of a pipe are closed. Ours would keep it running after the
    # server died, and with it this process, which the system ends together with the fork server.
    os.close(forkserver._forkserver._forkserver_alive_fd)  # type: ignore[attr-defined]
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def _limit() -> None:
    os.nice(5)
    if sys.platform == "linux":
        import resource

        limit = int(float(os.environ.get("CONTEXTLAB_JOB_MB") or 4096) * 1024 * 1024)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _answer(call: bytes) -> bytes:
    try:
        function, arguments, named = pickle.loads(call)  # noqa: S301 (our own server)
        return pickle.dumps((True, function(*arguments, **named)))
    except BaseException as error:  # noqa: BLE001 (the message may quote content)
        return pickle.dumps((False, type(error).__name__))
