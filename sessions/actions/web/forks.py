"""Processes for work that may be killed, forked from one warm process: the fork server.

A fork starts within milliseconds, and shares the memory of what is loaded until one of the two
writes to it. Only a process without threads and open connections forks well, so the fork server
does nothing else: it is forked from the server before that starts threads (`begin`), or started
when it is first needed. It ends with its owner, and its processes with it.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from django.conf import settings
from django.utils.module_loading import import_string

ROOT = Path(__file__).resolve().parents[3]
LONGEST = 4096
"""Bytes of a request."""


class ForkFailed(OSError):
    """The fork server or the system could not start a process."""


class Forked:
    """A process that reads from `input` and writes to `output` (file descriptors of ours).

    `environment` is what it was started with.
    """

    def __init__(self, entry: str) -> None:
        self._server = _server()
        self.environment = self._server.environment
        theirs, self.input = os.pipe()
        self.output, their_output = os.pipe()
        self._status, their_status = os.pipe()
        given = [theirs, their_output, their_status]
        try:
            self.pid = self._server.ask(f"fork {entry}", given)
        except OSError:
            self._close()
            raise
        finally:
            for fd in given:
                os.close(fd)
        if not self.pid:
            self._close()
            raise ForkFailed("no process could be started")

    def end(self) -> int | None:
        """Kill the process and its children; return its exit code, negative for a signal, or None
        if the fork server died and took it along. Call it once."""
        with contextlib.suppress(OSError):
            self._server.ask(f"kill {self.pid}")
        said = os.read(self._status, 16)
        self._close()
        return int(said) if said else None

    def _close(self) -> None:
        for fd in (self.input, self.output, self._status):
            os.close(fd)


class _Server:
    """The fork server, as its owner sees it."""

    def __init__(self, pid: int, requests: socket.socket) -> None:
        self.environment = dict(os.environ)
        self._pid, self._requests = pid, requests
        self._asking = threading.Lock()
        self.alive = True
        atexit.register(self.end)

    def ask(self, request: str, fds: list[int] | None = None) -> int:
        """Its answer to a request, a number. Raises ForkFailed if it is gone."""
        with self._asking:
            try:
                socket.send_fds(self._requests, [request.encode()], fds or [])
                if answer := self._requests.recv(16):
                    return int(answer)
            except OSError:
                pass
            self.alive = False
            raise ForkFailed("the fork server is gone")

    def end(self) -> None:
        """End it, and with it all its processes."""
        atexit.unregister(self.end)
        with self._asking:
            self.alive = False
            self._requests.close()
            os.waitpid(self._pid, 0)


_current: _Server | None = None
_choosing = threading.Lock()


def begin() -> None:
    """Fork the fork server from this process, which must not have threads or connections yet."""
    global _current
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if not pid:
        ours.close()
        os.setsid()  # signals of a terminal are for the server
        serve(theirs)
    theirs.close()
    _current = _Server(pid, ours)


def is_running() -> bool:
    """Whether a process could be started at once."""
    return _current is not None and _current.alive


def fits(process: Forked) -> bool:
    """Whether a new process would have the same environment."""
    return process.environment == dict(os.environ)


def _server() -> _Server:
    """The fork server; another one if it is gone or was started in another environment."""
    global _current
    with _choosing:
        if _current and (not _current.alive or _current.environment != dict(os.environ)):
            _current.end()
            _current = None
        if _current is None:
            _current = _started()
        return _current


def _started() -> _Server:
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(  # noqa: S603 (our own command)
            [*settings.FORK_SERVER, str(theirs.fileno())],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    process.returncode = 0  # `_Server.end` waits for it
    return _Server(process.pid, ours)


# In the fork server


def serve(requests: socket.socket) -> NoReturn:
    """Be the fork server: fork and kill on request, until the owner is gone."""
    woken, wake = os.pipe()
    for fd in (woken, wake):
        os.set_blocking(fd, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # systemd sends it to all processes; this one must still report how the others ended.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    running: dict[int, int] = {}
    own = [requests.fileno(), woken, wake]
    watched = select.poll()  # select takes no descriptor above 1,023: each page has one
    for fd in (requests.fileno(), woken):
        watched.register(fd, select.POLLIN)
    while True:
        ready = {fd for fd, _ in watched.poll()}
        if woken in ready:
            os.read(woken, 4096)
            _reap(running)
        if requests.fileno() in ready:
            try:
                asked, fds, _, _ = socket.recv_fds(requests, LONGEST, 3)
            except ConnectionError:
                asked, fds = b"", []
            if not asked:
                os._exit(0)
            verb, what = asked.decode().split()
            if verb == "kill":
                _kill(int(what), running)
                answer = 0
            else:
                answer = _fork(what, fds, running, own)
            with contextlib.suppress(BrokenPipeError):
                requests.send(str(answer).encode())


def _fork(entry: str, fds: list[int], running: dict[int, int], own: list[int]) -> int:
    given, taken, status = fds
    try:
        pid = os.fork()
    except OSError:
        pid = -1
    if not pid:
        for fd in (*own, status, *running.values()):
            os.close(fd)
        _run(entry, given, taken)
    for fd in (given, taken, *([status] if pid < 0 else ())):
        os.close(fd)
    if pid > 0:
        running[pid] = status
    return max(pid, 0)


def _reap(running: dict[int, int]) -> None:
    """Report the exit codes of processes that ended, and end their children."""
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        _kill_group(pid)
        with contextlib.suppress(BrokenPipeError):
            os.write(running[pid], str(os.waitstatus_to_exitcode(status)).encode())
        os.close(running.pop(pid))


def _kill(pid: int, running: dict[int, int]) -> None:
    # One that has ended may have given its number to another process.
    if pid in running:
        _kill_group(pid)
        with contextlib.suppress(ProcessLookupError):  # it has no group of its own yet
            os.kill(pid, signal.SIGKILL)


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


# In a forked process


def _run(entry: str, given: int, taken: int) -> NoReturn:
    """Call a function with the descriptors to read from and to write to, and exit."""
    code = 1
    try:
        _stand_alone()
        work: Callable[[int, int], None] = import_string(entry)
        work(given, taken)
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:  # noqa: BLE001 (nothing is above)
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _stand_alone() -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the server
    parent = os.getppid()
    os.setsid()  # its own group, so that killing it also kills its children
    # What it prints might be content.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.nice(5)
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        limit = int(float(os.environ.get("CONTEXTLAB_JOB_MB") or 4096) * 1024 * 1024)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
