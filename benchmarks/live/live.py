"""An agent at five steps a second, and open pages that follow it.

    python -m benchmarks.live.live

A step over REST: take the context, report the answer with its usage, then the tool's result. The
pages are websockets that follow the recorded run as the replay page does. Latency: from the moment
at which the result is sent to the moment at which a page has its entry. CPU: of server and job
processes, a step, above what they use with nothing to do; agent and pages run in this process.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import os
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
from benchmarks.processes import percentile, say  # noqa: E402
from benchmarks.record.ingest import bodies, message  # noqa: E402
from benchmarks.server import Agent, Lab, lab  # noqa: E402

RATE = 5.0
STEPS = 100
CASES = ((1_000, 0), (1_000, 1), (1_000, 100), (10_000, 1))
"""Messages that the session has before, and open pages."""


def main() -> None:
    """Run every case on a server of its own."""
    say("an agent at 5 steps a second (to reach: p95 300 ms with 100 pages)")
    say(
        f"{'messages':>9}{'pages':>7}{'step p50':>10}{'step p95':>10}"
        f"{'page p50':>10}{'page p95':>10}{'page max':>10}{'CPU a step':>12}{'missing':>9}"
    )
    for messages, pages in CASES:
        with lab() as started:
            _measure(started, messages, pages)


class Pages:
    """Open pages in a thread of their own: when each had which message, in ms of one clock."""

    def __init__(self, started: Lab, session: str, count: int) -> None:
        self.seen: list[dict[int, float]] = [{} for _ in range(count)]
        self.started, self.session, self.count = started, session, count
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def open(self) -> None:
        """Returns when all follow the session."""
        self.thread.start()
        if not self.ready.wait(60):
            raise RuntimeError("the pages did not open")

    def _run(self) -> None:
        asyncio.run(self._all())

    async def _all(self) -> None:
        cookie = _signed_in(self.started)
        opened = [asyncio.Event() for _ in range(self.count)]
        pages = [self._page(cookie, self.seen[i], opened[i]) for i in range(self.count)]
        tasks = [asyncio.create_task(page) for page in pages]
        for one in opened:
            await one.wait()
        self.ready.set()
        await asyncio.gather(*tasks)

    async def _page(self, cookie: str, seen: dict[int, float], opened: asyncio.Event) -> None:
        whole = await asyncio.to_thread(_manifest, self.started, cookie, self.session, "")
        page = _Page(self.session, whole["next"], whole["session"]["version"], seen)
        reader, writer = await _socket(self.started.server.port, cookie)
        await _send(writer, page.watch())
        texts = _texts(reader, writer)
        asking = asyncio.create_task(self._ask(cookie, page, writer))
        async for said in texts:
            opened.set()
            page.hear(json.loads(said))
        asking.cancel()

    async def _ask(self, cookie: str, page: _Page, writer: asyncio.StreamWriter) -> None:
        """What no delta was brought of within a second is asked for."""
        while True:
            await asyncio.sleep(0.1)
            if page.behind and time.perf_counter() - page.behind > 1:
                got = await asyncio.to_thread(
                    _manifest, self.started, cookie, self.session, page.since
                )
                page.take(got)
                await _send(writer, page.watch())


class _Page:
    """What a page has, as `frontend/src/web/socket.ts` does it."""

    def __init__(self, session: str, since: str, version: int, seen: dict[int, float]) -> None:
        self.session, self.since, self.version, self.seen = session, since, version, seen
        self.behind = 0.0

    def watch(self) -> Any:
        follow = {"session": self.session, "run": "recorded", "since": self.since}
        return {"watch": [f"session:{self.session}"], "follow": follow}

    def hear(self, said: Any) -> None:
        """A version, or what came."""
        if said.get("delta", 0) is None:
            self.behind = time.perf_counter() - 1
        elif "delta" in said:
            if said["delta"]["since"] == self.since:
                self.take(said["delta"])
        elif said["version"] > self.version:
            self.behind = self.behind or time.perf_counter()

    def take(self, manifest: Any) -> None:
        """The whole, or what came of it."""
        now = time.perf_counter()
        for seq in manifest["entries"]["message"]:
            self.seen.setdefault(seq, now)
        self.since, self.version = manifest["next"], manifest["session"]["version"]
        self.behind = 0.0


def _measure(started: Lab, messages: int, pages: int) -> None:
    agent = started.agent()
    agent.ask("PUT", "sessions/run", {"model": "claude-sonnet-4-5", "policy": "offload-first"})
    for body in bodies(0, messages // 100):
        job = json.loads(agent.send("POST", "sessions/run/messages", body))["job"]
    agent.ask("GET", "sessions/run/context")
    started.settle(job)
    session = agent.ask("GET", "sessions/run")["id"]
    watching = Pages(started, session, pages)
    if pages:
        watching.open()
    text = "".join(path.read_text() for path in sorted((ROOT / "compaction").rglob("*.py")))
    for step in range(5):  # warm
        _step(agent, messages + 2 * step, text)
    idle = _idle(started)
    sent: dict[int, float] = {}
    took: list[float] = []
    cpu, began = started.cpu(), time.perf_counter()
    for step in range(STEPS):
        wait = began + step / RATE - time.perf_counter()
        time.sleep(max(wait, 0))
        begun = time.perf_counter()
        seq, at = _step(agent, messages + 2 * (step + 5), text)
        took.append((time.perf_counter() - begun) * 1000)
        sent[seq] = at
    wall = time.perf_counter() - began
    time.sleep(10)  # by then nothing may be missing
    spent = (started.cpu() - cpu - idle * (wall + 10)) / STEPS * 1000
    latencies = [
        (seen[seq] - at) * 1000 for seen in watching.seen for seq, at in sent.items() if seq in seen
    ]
    missing = len(sent) * pages - len(latencies)
    say(
        f"{messages:>9,}{pages:>7}{percentile(took, 0.5):>10.0f}{percentile(took, 0.95):>10.0f}"
        f"{percentile(latencies, 0.5):>10.0f}{percentile(latencies, 0.95):>10.0f}"
        f"{max(latencies, default=float('nan')):>10.0f}{spent:>12.0f}{missing:>9}"
    )


def _idle(started: Lab) -> float:
    """CPU seconds a second with nothing to do."""
    time.sleep(2)
    cpu = started.cpu()
    time.sleep(4)
    return (started.cpu() - cpu) / 4


def _step(agent: Agent, number: int, text: str) -> tuple[int, float]:
    """One step; the number of its last message, and when that was sent."""
    context = agent.ask("GET", "sessions/run/context")
    usage = {"input_tokens": 9, "cache_read_input_tokens": context["tokens"], "output_tokens": 50}
    answer = {
        "messages": [message(number, text)],
        "usage": usage,
        "call": f"call-{number}",
        "context_id": context["context_id"],
    }
    agent.ask("POST", "sessions/run/messages", answer)
    at = time.perf_counter()
    stored = agent.ask("POST", "sessions/run/messages", {"messages": [message(number + 1, text)]})
    return int(stored["last_seq"]), at


# A browser's part, no more of it than is measured


def _signed_in(started: Lab) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", started.server.port, timeout=60)
    address = started.server.login.removeprefix(started.server.address)
    connection.request("GET", address, headers={"Sec-Fetch-Site": "none"})
    response = connection.getresponse()
    response.read()
    cookies = [value.split(";")[0] for name, value in response.getheaders() if name == "Set-Cookie"]
    return "; ".join(cookies)


def _manifest(started: Lab, cookie: str, session: str, since: str) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", started.server.port, timeout=60)
    path = f"/api/v1/sessions/{session}/manifest?since={since}"
    connection.request("GET", path, headers={"Cookie": cookie})
    return json.loads(connection.getresponse().read())


async def _socket(port: int, cookie: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    key = base64.b64encode(os.urandom(16)).decode()
    writer.write(
        f"GET /ws/live/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
        f"Origin: http://127.0.0.1:{port}\r\nCookie: {cookie}\r\n\r\n".encode()
    )
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 101 " not in head:
        raise RuntimeError(f"no websocket: {head[:200]!r}")
    return reader, writer


async def _send(writer: asyncio.StreamWriter, said: Any) -> None:
    data = json.dumps(said).encode()
    # A text frame; with a mask of zeros the data stays as it is.
    writer.write(b"\x81\xfe" + len(data).to_bytes(2, "big") + bytes(4) + data)
    await writer.drain()


async def _texts(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> AsyncIterator[bytes]:
    while head := await reader.read(1):  # nothing once the server has ended
        kind, length = head[0], (await reader.readexactly(1))[0]
        if length == 126:
            length = int.from_bytes(await reader.readexactly(2), "big")
        elif length == 127:
            length = int.from_bytes(await reader.readexactly(8), "big")
        data = await reader.readexactly(length)
        if kind & 15 == 1:
            yield data
        elif kind & 15 == 9:  # a ping, which the server wants back
            writer.write(b"\x8a" + bytes([0x80 | length]) + bytes(4) + data)


if __name__ == "__main__":
    main()
