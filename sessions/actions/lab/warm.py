"""Warm workers: processes that hold recordings of sessions and simulate policies on them.

The lab asks with every move of a slider, "Why did it forget?" once per text. A worker belongs to
one team, reads the sessions itself, and keeps what it read (`warm_worker`); it exits after some
minutes without a request, and is killed if it does not stop in time. A team may use all
workers, until a team without one asks. Requests and answers are
lines of JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from multiprocessing.connection import Connection
from typing import Any
from uuid import UUID, uuid4

from sessions.actions.lab.warm_worker import CANCEL, END, PREPARE
from sessions.actions.web import forks
from sessions.actions.web.apart import FailedApart, NotInTime

WORKERS = 2
"""Most worker processes of a server, of all teams."""
WAIT_SECONDS = 3.0
"""How long a request may wait for a worker."""
SECONDS = 60.0
"""How long a request may take; what was streamed until then stays valid."""
STOP_SECONDS = 5.0
"""How long a cancelled worker may finish its session before it is killed."""
BEAT_SECONDS = 1.0
"""A blank line is sent this often, because only sending tells whether the page is gone."""

BEAT, GONE, TAKEN = b"\n", b"gone", b"taken"


class NoWorker(Exception):
    """No worker is free in time (`busy`), or the page has sent a newer request."""

    def __init__(self, *, busy: bool) -> None:
        super().__init__("no worker")
        self.busy = busy


def stream(team: UUID, page: str, asked: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the lines that a worker answers to a request, as `DraftFigures.lines` describes them.

    A newer request of the same page ends an older one between two sessions; so does closing this
    generator. Problems are lines too: {"kind": "problem", "title", "detail"}.
    """
    try:
        for line in _lines(team, page, asked, SECONDS):
            if line == GONE:
                line = _problem("The simulation stopped", "Its worker ended twice. Try again.")
            elif line == TAKEN:
                line = _problem(
                    "The simulation stopped", "Another team needed its worker. Try again."
                )
            yield line
    except NoWorker as refused:
        if refused.busy:
            yield _problem("The simulation worker is busy", "Move the setting again in a moment.")


def answer(team: UUID, asked: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """The one line that a worker answers to a request. One such request at a time leaves a worker
    to the lab. Raises NotInTime, FailedApart."""
    if not _one.acquire(timeout=WAIT_SECONDS):
        raise NotInTime(WAIT_SECONDS, busy=True)
    try:
        with contextlib.closing(_lines(team, uuid4().hex, asked, seconds)) as lines:
            found = next((line for line in lines if line != BEAT), None)
    except NoWorker:
        raise NotInTime(WAIT_SECONDS, busy=True) from None
    finally:
        _one.release()
    if found is None or found == TAKEN:
        raise NotInTime(seconds, busy=found == TAKEN)
    line = {"kind": "failed", "error": "its process ended"} if found == GONE else json.loads(found)
    if line["kind"] == "failed":
        raise FailedApart(line["error"])
    return dict(line)


def prepare(team: UUID) -> None:
    """Start a worker for a team that has none, if a place is free: its page will soon ask."""
    if forks.is_running():  # a page does not wait for the fork server
        with contextlib.suppress(OSError):
            _workers.prepare(team)


def _lines(
    team: UUID, page: str, asked: Mapping[str, Any], seconds: float
) -> Generator[bytes, None, None]:
    """Yield the lines of an answer; last GONE if its worker ended twice, TAKEN if another team got
    it. Raises NoWorker."""
    worker = _workers.take(team, page)
    call = json.dumps({**asked, "team": str(team)}).encode()
    end = time.monotonic() + seconds
    try:
        for attempt in (1, 2):
            for line in worker.lines(call, end):
                if line != GONE or attempt == 2:
                    yield line
            if worker.alive:
                break
        if worker.taken:
            yield TAKEN
    finally:
        _workers.put(worker)


def _problem(title: str, detail: str) -> bytes:
    said = {"kind": "problem", "title": title, "detail": detail}
    return json.dumps(said).encode() + b"\n"


class _WarmWorker:
    """A worker as the server sees it; its process starts with the first request."""

    def __init__(self, team: UUID, entry: str) -> None:
        self.team, self.page, self.busy, self.taken = team, "", False, False
        self._entry = entry
        self._process: forks.Forked | None = None
        self._sending = threading.Lock()

    @property
    def alive(self) -> bool:
        """Whether its process has not ended, as far as we know."""
        return self._process is not None

    def lines(self, call: bytes, end: float) -> Iterator[bytes]:
        """Yield the lines of an answer; GONE if the process ended instead."""
        over = False
        try:
            if self._process is None:
                self._start()
            self._send(call)
            while time.monotonic() < end:
                if not self._answers.poll(min(BEAT_SECONDS, max(end - time.monotonic(), 0))):
                    yield BEAT
                    continue
                line = self._answers.recv_bytes()
                if over := line == END:
                    return
                yield line
        except (EOFError, OSError):
            over = True
            self.end()
            yield GONE
        finally:
            if not over:
                self._stop()

    def prepare(self) -> None:
        """Start its process, and let it load what every request needs."""
        if self._process is None:
            self._start()
            self._send(PREPARE)

    def cancel(self) -> None:
        """Ask it to end the current answer after this session."""
        with contextlib.suppress(OSError):
            self._send(CANCEL)

    def end(self) -> None:
        """Kill its process, if there is one."""
        if self._process is not None:
            self._calls.close()
            self._answers.close()
            self._process.end()
            self._process = None

    def _start(self) -> None:
        self._process = forks.Forked(self._entry)
        self._calls = Connection(os.dup(self._process.input), readable=False)
        self._answers = Connection(os.dup(self._process.output), writable=False)

    def _send(self, call: bytes) -> None:
        with self._sending:
            self._calls.send_bytes(call)

    def _stop(self) -> None:
        """End an answer early; kill the process if it does not stop."""
        end = time.monotonic() + STOP_SECONDS
        self.cancel()
        try:
            while self._answers.poll(max(end - time.monotonic(), 0)):
                if self._answers.recv_bytes() == END:
                    return
        except (EOFError, OSError):
            pass
        self.end()


class WarmWorkers:
    """The workers of this server, each for one request at a time."""

    def __init__(self, most: int, entry: str = "sessions.actions.lab.warm_worker.work") -> None:
        self._most, self._entry = most, entry
        self._workers: list[_WarmWorker] = []
        self._changed = threading.Condition()
        self._newest: dict[tuple[UUID, str], object] = {}
        self._waiting: list[UUID] = []

    def take(self, team: UUID, page: str) -> _WarmWorker:
        """A worker, if possible the one that this page had. Raises NoWorker."""
        mine, key = object(), (team, page)
        end = time.monotonic() + WAIT_SECONDS
        with self._changed:
            self._newest[key] = mine
            self._waiting.append(team)
            try:
                for worker in self._workers:
                    if worker.busy and (worker.team, worker.page) == key:
                        worker.cancel()
                self._changed.notify_all()
                while (found := self._free(team, page)) is None:
                    self._take_from_others(team)
                    waited = self._changed.wait(max(end - time.monotonic(), 0))
                    if self._newest.get(key) is not mine or not waited:
                        raise NoWorker(busy=not waited)
            finally:
                self._waiting.remove(team)
                if self._newest.get(key) is mine:
                    del self._newest[key]
            found.busy, found.page = True, page
            return found

    def prepare(self, team: UUID) -> None:
        """Start a worker for a team that has none, if a place is free."""
        with self._changed:
            if all(one.team != team for one in self._workers) and len(self._workers) < self._most:
                self._workers.append(_WarmWorker(team, self._entry))
                self._workers[-1].prepare()

    def put(self, worker: _WarmWorker) -> None:
        """Give it back."""
        with self._changed:
            worker.busy = False
            if worker.taken:
                worker.end()
                self._workers.remove(worker)
            self._changed.notify_all()

    def end(self) -> None:
        """End the idle workers."""
        with self._changed:
            for worker in self._workers:
                if not worker.busy:
                    worker.end()

    def _free(self, team: UUID, page: str) -> _WarmWorker | None:
        own = [one for one in self._workers if one.team == team]
        if any(one.busy and one.page == page for one in own):
            return None  # it is cancelled, and warm
        if any(one.busy for one in own) and self._others_wait(team):
            return None
        idle = [one for one in own if not one.busy]
        if idle:
            return next((one for one in idle if one.page == page), idle[0])
        if len(self._workers) == self._most:
            others = [one for one in self._workers if not one.busy]
            if not others:
                return None
            others[0].end()
            self._workers.remove(others[0])
        self._workers.append(_WarmWorker(team, self._entry))
        return self._workers[-1]

    def _others_wait(self, team: UUID) -> bool:
        """Whether another team waits that has no worker."""
        return bool({*self._waiting} - {team} - {one.team for one in self._workers})

    def _take_from_others(self, team: UUID) -> None:
        """For a team without a worker: end the newest request of a team that uses several."""
        held = [one.team for one in self._workers]
        several = [one for one in self._workers if held.count(one.team) > 1]
        if team not in held and several and not any(one.taken for one in self._workers):
            several[-1].taken = True
            several[-1].cancel()


_workers = WarmWorkers(WORKERS)
_one = threading.BoundedSemaphore()
