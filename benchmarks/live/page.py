"""From an append to the step that a real page shows: the replay page in Chromium.

    python -m benchmarks.live.page

One agent, one page that follows it, five steps a second at most. The time runs from the moment at
which a message is sent to the frame in which the page names the new step; the script that looks
adds some milliseconds. Needs Chromium and the built pages.
"""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.figures import figure
from benchmarks.processes import percentile, say
from benchmarks.record.ingest import bodies
from benchmarks.server import lab
from tests.conftest import CHROMIUM

STEPS, RATE, STORED = 50, 5.0, 1_000
SHOWN = "n => document.querySelector('.goto')?.textContent.includes('/ ' + n)"


def main() -> None:
    """Follow a session of 1,000 messages."""
    if not Path(CHROMIUM).exists():
        say(f"{CHROMIUM} is not installed: left out")
        return
    from playwright.sync_api import sync_playwright

    with lab() as started, sync_playwright() as playwright:
        agent = started.agent()
        about = {"model": "claude-sonnet-4-5", "policy": "offload-first"}
        session = agent.ask("PUT", "sessions/run", about)["id"]
        for body in bodies(0, STORED // 100):
            agent.send("POST", "sessions/run/messages", body)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(started.server.login)
        page.goto(f"{started.server.address}/sessions/{session}/")
        page.locator("[role=slider]").wait_for()
        latencies = []
        begun = time.perf_counter()
        for step, body in enumerate(bodies(STORED * 10, STEPS, 2)):
            time.sleep(max(0.0, begun + step / RATE - time.perf_counter()))
            sent = time.perf_counter()
            agent.send("POST", "sessions/run/messages", body)
            page.wait_for_function(SHOWN, arg=STORED // 2 + step + 1, timeout=30_000)
            latencies.append((time.perf_counter() - sent) * 1000)
        browser.close()
    said = ", ".join(f"p{share * 100:.0f} {percentile(latencies, share):.0f} ms"
                     for share in (0.5, 0.95))  # fmt: skip
    say(f"append to page in Chromium: {said}, worst {max(latencies):.0f} ms")
    figure("append to live page in Chromium: p95, ms", percentile(latencies, 0.95), at_most=300)


if __name__ == "__main__":
    main()
