"""A system that is measured beside others, and what was found of it."""

from __future__ import annotations

import http.client
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from benchmarks.live.upstream import Json, Upstream
from benchmarks.processes import cpu_seconds, say

KEEP_SECONDS = 2.0
"""How long a connection may wait for the next request."""
HEADERS = {
    "content-type": "application/json",
    "x-api-key": "sk-ant-none",
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "claude-code-20250219",
    "user-agent": "claude-cli/2.1.197 (external, cli)",
}


@dataclass
class System:
    """A system under test, and what was found."""

    name: str
    up: Upstream
    address: str
    pids: Sequence[int]
    harness: Any
    latencies: list[float] = field(default_factory=list)
    sums: Counter[str] = field(default_factory=Counter)
    marks: Counter[str] = field(default_factory=Counter)
    cpu: float = 0.0

    def __post_init__(self) -> None:
        self.begin()
        where = urlsplit(self.address)
        self._last = 0.0
        self._path = f"{where.path.rstrip('/')}/v1/messages"
        self._http = http.client.HTTPConnection(where.netloc, timeout=120)

    def begin(self) -> None:
        """Begin another session."""
        self.cache, self.bound = self.harness.Cache(), self.harness.Bound()

    def spent(self) -> float:
        """CPU seconds so far."""
        return sum(cpu_seconds(pid) for pid in self.pids)

    def ask(self, request: Json, data: bytes, headers: Mapping[str, str]) -> None:
        """Send a request, and measure until the first byte of its answer."""
        self.up.expect(request["reply"], self.cache, request["at"])
        if time.monotonic() - self._last > KEEP_SECONDS:
            self._http.close()  # they tire of waiting, too; the next request opens it
        try:
            answer, first = self._answer(data, headers)
        except (OSError, http.client.HTTPException):  # it closed the connection meanwhile
            self._http.close()
            self.sums["again"] += 1
            try:
                answer, first = self._answer(data, headers)
            except (OSError, http.client.HTTPException) as error:
                say(f"{self.name}: {error}")
                self._http.close()
                self.sums["failed"] += 1
                return
        self._last = time.monotonic()
        self.latencies.append(1000 * (first - self.up.seconds))
        self.sums["refused"] += answer.status != 200
        self.marks[answer.headers.get("x-contextlab", str(answer.status))] += 1

    def _answer(
        self, data: bytes, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPResponse, float]:
        self.up.sent, self.up.seconds = [], 0.0
        begun = time.perf_counter()
        self._http.request("POST", self._path, data, {**HEADERS, **headers})
        answer = self._http.getresponse()
        answer.read(1)
        first = time.perf_counter() - begun
        answer.read()
        return answer, first

    def score(self, questions: Any, number: int, reply: Json, body: Json) -> None:
        """Judge what reached the provider by the harness's measures."""
        self.sums["unsent"] += not self.up.sent
        if not self.up.sent:
            return
        harness, (sent, units, _) = self.harness, self.up.sent[-1]
        for name in ("cost", "strict"):
            self.sums[name] += sum(use[name] for _, _, use in self.up.sent)
        self.sums["tokens"] += sum(unit.tokens for unit in units)
        self.sums["invalid"] += bool(harness.faults(sent))
        self.sums["bound"] += self.bound.broken(units, harness.head_of(sent), reply)
        self.sums["same"] += sent["messages"] == body["messages"]
        names = ("needs", "inc", "_", "edits", "edit_ok")
        self.sums.update(dict(zip(names, harness.score(questions, number, units), strict=True)))
