"""Python processes that begin with the packages of others loaded: half of what a start takes.

`start` and `run` take the arguments of a Python, `-m MODULE …` or `-c CODE …`. One server per
process of the tests has loaded what needs no settings and forks for each. What belongs to the
product, `compaction` excepted, each process loads itself, with its own environment. Where the
start itself is tested, use `subprocess`.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
LARGEST = 1 << 18
"""Bytes of a request: arguments and environment."""
OURS = ("contextlab", "sessions", "tests")
NOT_BEFORE = ("allauth", "autobahn", "daphne", "django.contrib", "ninja", "twisted")
"""They read settings, or open what forks may not share."""
NEEDED = """
import json, sys, django
django.setup()
from contextlab import cli
for name in cli.COMMANDS:
    if name not in ("mcp", "new"):
        cli.loaded(name)
import boto3.s3.transfer, psycopg, sessions.api
sys.stdout.write(json.dumps(sorted(sys.modules)))
"""


_one_starts = threading.Lock()


class Process:
    """A started process, as `subprocess.Popen` shows one."""

    def __init__(self, status: int, stdout: IO[str] | None) -> None:
        self._status, self.stdout = status, stdout
        self.pid = int(os.read(status, 16))
        self.returncode: int | None = None
        self._one_reads = threading.Lock()

    def __del__(self) -> None:
        os.close(self._status)

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal, or None while it runs."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code. Raises subprocess.TimeoutExpired."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return code

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            with self._one_reads:
                if self.returncode is None:
                    self.returncode = int(os.read(self._status, 16))
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


def start(
    arguments: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    cwd: Path = ROOT,
    stdout: int = subprocess.DEVNULL,
    stderr: int = subprocess.DEVNULL,
) -> Process:
    """Start a Python with these arguments; `stdout` and `stderr` are descriptors, or PIPE."""
    status, their_status = os.pipe()
    read = None
    with tempfile.TemporaryFile() as nothing:
        fds = [nothing.fileno() if fd == subprocess.DEVNULL else fd for fd in (stdout, stderr)]
        if stdout == subprocess.PIPE:
            end, fds[0] = os.pipe()
            read = os.fdopen(end, "r")
        asked = {"arguments": [*map(str, arguments)], "env": dict(env), "cwd": str(cwd)}
        socket.send_fds(_server(), [json.dumps(asked).encode()], [*fds, their_status])
        if stdout == subprocess.PIPE:
            os.close(fds[0])
    os.close(their_status)
    return Process(status, read)


def run(
    arguments: Sequence[str | Path], *, env: Mapping[str, str], cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run a Python with these arguments; return its exit code and what it wrote."""
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as complained:
        process = start(
            arguments, env=env, cwd=cwd, stdout=said.fileno(), stderr=complained.fileno()
        )
        code = process.wait()
        said.seek(0)
        complained.seek(0)
        return subprocess.CompletedProcess([*arguments], code, said.read(), complained.read())


def _server() -> socket.socket:
    with _one_starts:
        return _started()


@cache
def _started() -> socket.socket:
    """Where to ask the server; it ends when this end is closed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LARGEST)
    subprocess.Popen(
        [sys.executable, "-m", "tests.preloaded", str(theirs.fileno())],
        cwd=ROOT,
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
    ).returncode = 0  # it is not waited for
    theirs.close()
    atexit.register(ours.close)
    return ours


def _load() -> None:
    """Load what the product loads, of others and of `compaction`."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "CONTEXTLAB_DATA_DIR": folder, "DATABASE_URL": "", "REDIS_URL": ""}
        env["DJANGO_SETTINGS_MODULE"] = "contextlab.settings"
        listed = subprocess.run(
            [sys.executable, "-c", NEEDED], env=env, check=True, capture_output=True
        )
    # What reads settings when it is loaded is in NOT_BEFORE.
    os.environ.pop("DJANGO_SETTINGS_MODULE", None)
    for name in json.loads(listed.stdout):
        if name.partition(".")[0] not in OURS and not name.startswith(NOT_BEFORE):
            with suppress(ModuleNotFoundError):  # made by others while they were loaded
                import_module(name)
    from compaction import tokens
    from compaction.prices import prices

    tokens.count("")
    prices.price("claude")
    gc.collect()
    gc.freeze()  # forks neither look through it nor copy it


def _serve(control: socket.socket) -> dict[str, object]:
    """Fork for every request; returns in the new process, with what it is to run."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system forgets who waited for it
    while True:
        asked, fds, _, _ = socket.recv_fds(control, LARGEST, 3)
        if not asked:
            os._exit(0)
        if not os.fork():
            control.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _wait_for_it(fds[2])
            for to, fd in enumerate(fds[:2], 1):
                os.dup2(fd, to)
            for fd in fds:
                os.close(fd)
            return dict(json.loads(asked))
        for fd in fds:
            os.close(fd)


def _wait_for_it(status: int) -> None:
    """Fork once more; return in the child, whose id and exit code the parent says."""
    child = os.fork()
    if child:
        os.write(status, f"{child:16}".encode())
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.write(status, str(code).encode())
        os._exit(0)


def _become(arguments: list[str], env: Mapping[str, str], cwd: str) -> None:
    """Run as a Python with these arguments does."""
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    kind, what, *rest = arguments
    sys.argv = [kind if kind == "-c" else what, *rest]
    if kind == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    _load()
    _become(**_serve(socket.socket(fileno=int(sys.argv[1]))))  # type: ignore[arg-type]
