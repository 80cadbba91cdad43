"""Waiting requests, one lane per payer: who has used least of the server goes first.

All functions run on the event loop, so nothing here locks.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from time import monotonic
from typing import Protocol

from contextlab.door.rates import Bucket

SECONDS_PER_BYTE = 1e-8
"""Cost of taking in a body, beside the CPU time that the request then uses."""
SECONDS_PER_START = 1e-3
IDLE_SECONDS = 60.0
"""How long an unused lane is remembered."""


class Work(Protocol):
    """A request that waits: bytes of its body."""

    size: int


@dataclass(frozen=True, slots=True)
class LaneLimits:
    """What one lane may have at once (requests running, requests and bytes waiting), and its rates
    per second."""

    running: int
    waiting: int
    bytes_waiting: int
    requests: float
    bytes: float


@dataclass(slots=True)
class Lane:
    """The requests of one payer; `used` is what it has cost so far, in seconds."""

    limits: LaneLimits
    requests: Bucket
    bytes: Bucket
    used: float = 0.0
    running: int = 0
    size: int = 0
    waiting: deque[tuple[float, Work]] = field(default_factory=deque)
    seen: float = field(default_factory=monotonic)


class Full(Exception):
    """A lane takes no more: seconds after which to try again, and which limit was reached."""

    def __init__(self, seconds: float, limit: str) -> None:
        super().__init__(limit)
        self.seconds, self.limit = seconds, limit


class Lanes:
    """The lanes of all payers, sharing a number of threads."""

    def __init__(self, threads: int) -> None:
        self.free = threads
        self.lanes: dict[str, Lane] = {}
        self.waiting: set[str] = set()
        self._clock = 0.0

    def offer(self, payer: str, limits: LaneLimits, work: Work) -> None:
        """Let a request wait. Raises Full."""
        lane = self.lanes.get(payer) or self._open(payer, limits)
        lane.seen = now = monotonic()
        if len(lane.waiting) >= limits.waiting:
            raise Full(1.0, f"{limits.waiting} requests already wait")
        if lane.waiting and lane.size + work.size > limits.bytes_waiting:
            raise Full(1.0, f"{limits.bytes_waiting >> 20} MB already wait")
        if pause := lane.requests.take(1, now):
            raise Full(pause, f"more than {limits.requests:g} requests per second")
        if pause := lane.bytes.take(work.size, now):
            raise Full(pause, f"more than {limits.bytes / 2**20:g} MB per second")
        lane.waiting.append((now, work))
        lane.size += work.size
        self.waiting.add(payer)

    def take(self) -> tuple[str, Work] | None:
        """The next request to run, with its payer; None if none may run now."""
        may = [
            payer
            for payer in self.waiting
            if self.lanes[payer].running < self.lanes[payer].limits.running
        ]
        if not may or self.free <= 0:
            return None
        payer = min(may, key=self._turn)
        lane = self.lanes[payer]
        self._clock = max(self._clock, lane.used)
        _, work = lane.waiting.popleft()
        self._shrink(payer, lane, work)
        lane.used += SECONDS_PER_START + SECONDS_PER_BYTE * work.size
        lane.running += 1
        self.free -= 1
        return payer, work

    def _turn(self, payer: str) -> tuple[float, float]:
        """Who has cost least is next; of equals, to the microsecond, who has waited longest."""
        lane = self.lanes[payer]
        return round(lane.used, 6), lane.waiting[0][0]

    def done(self, payer: str, seconds: float) -> None:
        """A request has ended; it used that many CPU seconds."""
        lane = self.lanes[payer]
        lane.running -= 1
        lane.used += seconds
        self.free += 1

    def forget(self, payer: str, work: Work) -> None:
        """Remove a request whose client went away, if it still waits."""
        lane = self.lanes.get(payer)
        found = next((one for one in lane.waiting if one[1] is work), None) if lane else None
        if lane is not None and found is not None:
            lane.waiting.remove(found)
            self._shrink(payer, lane, work)

    def overdue(self, seconds: float) -> list[tuple[str, Work]]:
        """Remove and return what has waited longer; forget lanes that are no longer used."""
        late, now = [], monotonic()
        for payer, lane in list(self.lanes.items()):
            while lane.waiting and now - lane.waiting[0][0] > seconds:
                _, work = lane.waiting.popleft()
                self._shrink(payer, lane, work)
                late.append((payer, work))
            if not lane.waiting and not lane.running and now - lane.seen > IDLE_SECONDS:
                del self.lanes[payer]
        return late

    def running(self) -> int:
        """How many requests run."""
        return sum(lane.running for lane in self.lanes.values())

    def waiting_count(self) -> int:
        """How many requests wait."""
        return sum(len(self.lanes[payer].waiting) for payer in self.waiting)

    def _open(self, payer: str, limits: LaneLimits) -> Lane:
        # Who comes late neither owes nor is owed for the time before.
        buckets = Bucket(limits.requests), Bucket(limits.bytes)
        lane = self.lanes[payer] = Lane(limits, *buckets, used=self._clock)
        return lane

    def _shrink(self, payer: str, lane: Lane, work: Work) -> None:
        lane.size -= work.size
        if not lane.waiting:
            self.waiting.discard(payer)
