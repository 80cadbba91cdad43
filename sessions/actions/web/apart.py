"""Call functions of the engine in processes of their own, which are killed at a deadline.

For work on content that is too long for the web process: no thread can be stopped, and a thread in
C code may hold up all others. The functions are pure, so nothing is lost with a process. Processes
are forked when first needed, stay warm, and end with the server.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable
from multiprocessing.connection import Connection
from typing import ParamSpec, TypeVar

from sessions.actions.web import forks

P = ParamSpec("P")
T = TypeVar("T")

PROCESSES = 2
PACKAGES = ("compaction.",)
"""Where functions may come from: no framework, no database."""

WAIT_SECONDS, WAITING, WAITING_OF_ONE = 3.0, 8, 3
"""How long a call may wait for a process: each holds a thread of the server. How many may wait at
once, in all and of one owner."""


class NotInTime(Exception):
    """The call was stopped after `seconds`, or no process was free (`busy`)."""

    def __init__(self, seconds: float, *, busy: bool) -> None:
        super().__init__(f"no answer within {seconds:g} seconds")
        self.seconds, self.busy = seconds, busy


class FailedApart(Exception):
    """The call raised an exception, named by its class, or ended its process."""


def call_apart(
    owner: Hashable,
    seconds: float,
    function: Callable[P, T],
    *arguments: P.args,
    **named: P.kwargs,
) -> T:
    """Call a function of the engine in another process and return its result.

    Arguments and result are pickled. Calls of one `owner`, such as a team, leave a process to
    others. Raises NotInTime after `seconds`, or sooner if no process is free; FailedApart for an
    exception, ValueError for a function of another package.
    """
    if not function.__module__.startswith(PACKAGES):
        raise ValueError(f"{function.__module__} is not part of {PACKAGES}")
    end = time.monotonic() + seconds
    pool = _pool
    process = pool.take(owner, min(seconds, WAIT_SECONDS))
    kept: _ProcessApart | None = None
    call = pickle.dumps((function, arguments, named))
    try:
        answer: bytes | None = _GONE
        if process is not None:
            answer = process.answer(call, end)
        if answer == _GONE:  # there was none, or it ended while it was idle
            if process is not None:
                process.end()
            process = None
            process = _ProcessApart()
            end = time.monotonic() + seconds  # starting is not the content's fault
            answer = process.answer(call, end)
        kept = process if answer not in (None, _GONE) else None
    finally:
        if kept is None and process is not None:
            process.end()
        pool.put(owner, kept)
    if answer is None:
        raise NotInTime(seconds, busy=False)
    good, value = pickle.loads(answer)  # noqa: S301 (our own process)
    if not good:
        raise FailedApart(value)
    result: T = value
    return result


class Pool:
    """Processes for calls, one call at a time in each; one owner never has them all."""

    def __init__(self, processes: int) -> None:
        # The newest last; None for each that has not been started.
        self._idle: list[_ProcessApart | None] = [None] * processes
        self._most = max(processes - 1, 1)
        self._running: Counter[Hashable] = Counter()
        self._waiting: Counter[Hashable] = Counter()
        self._changed = threading.Condition()

    def take(self, owner: Hashable, seconds: float) -> _ProcessApart | None:
        """An idle process, or None to start one. Raises NotInTime if none is free in time, or too
        many wait already."""
        with self._changed:
            if not self._free(owner):
                full = self._waiting.total() >= WAITING or self._waiting[owner] >= WAITING_OF_ONE
                if full or not self._freed(owner, seconds):
                    raise NotInTime(seconds, busy=True)
            self._running[owner] += 1
            return self._idle.pop()

    def put(self, owner: Hashable, process: _ProcessApart | None) -> None:
        """Give it back; None if it ended."""
        with self._changed:
            self._idle.append(process)
            self._running -= Counter([owner])
            self._changed.notify_all()

    def _free(self, owner: Hashable) -> bool:
        return bool(self._idle) and self._running[owner] < self._most

    def _freed(self, owner: Hashable, seconds: float) -> bool:
        self._waiting[owner] += 1
        try:
            return self._changed.wait_for(lambda: self._free(owner), seconds)
        finally:
            self._waiting -= Counter([owner])

    def end(self) -> None:
        """End the idle processes."""
        with self._changed:
            for process in filter(None, self._idle):
                process.end()
            self._idle = [None] * len(self._idle)


class _ProcessApart:
    """A process that calls functions, one after another."""

    def __init__(self) -> None:
        try:
            self._forked = forks.Forked(f"{__name__}.work")
        except OSError:
            raise FailedApart("its process did not start") from None
        self._calls = Connection(os.dup(self._forked.input), readable=False)
        self._answers = Connection(os.dup(self._forked.output), writable=False)

    def answer(self, call: bytes, end: float) -> bytes | None:
        """The pickled answer to a call; None if there is none by then, _GONE if it ended."""
        try:
            self._calls.send_bytes(call)
            if not self._answers.poll(max(end - time.monotonic(), 0)):
                return None
            return self._answers.recv_bytes()
        except (EOFError, OSError):
            return _GONE

    def end(self) -> None:
        """Kill it, whatever it does."""
        self._calls.close()
        self._answers.close()
        self._forked.end()


_GONE = pickle.dumps((False, "its process ended"))
_pool = Pool(PROCESSES)


def work(given: int, taken: int) -> None:
    """Take calls until the other end is closed; runs in the other process."""
    calls, answers = Connection(given, writable=False), Connection(taken, readable=False)
    with contextlib.suppress(EOFError):
        while True:
            answers.send_bytes(_answer(calls.recv_bytes()))


def _answer(call: bytes) -> bytes:
    try:
        function, arguments, named = pickle.loads(call)  # noqa: S301 (our own server)
        return pickle.dumps((True, function(*arguments, **named)))
    except BaseException as error:  # noqa: BLE001 (the message may quote content)
        return pickle.dumps((False, type(error).__name__))
