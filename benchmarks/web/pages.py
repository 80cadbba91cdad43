"""How soon pages show themselves and answer a key or a click, in Chromium.

Run: python -m benchmarks.web.pages. Needs Chromium and the built pages. Of first visits to pages
with the demo sessions: the largest contentful paint (LCP), the longest task until then, and the
longest time from an input to the frame after it (INP); as it is, and with a processor slowed four
times.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.figures import figure
from benchmarks.processes import say
from benchmarks.server import environment
from tests.browser.test_accessibility import open_session
from tests.browser.test_budgets import PAGES
from tests.conftest import CHROMIUM, start_server

ROUNDS = 5
SLOWED = 4
KEYS = ("ArrowRight", "ArrowRight", "ArrowLeft", "j", "k", "End", "Home", "?", "Escape")

FIRST_PAINTS = """() => new Promise((done) => {
  const seen = { lcp: 0, task: 0 };
  const watch = (type, take) => new PerformanceObserver((list) => {
    for (const one of list.getEntries()) take(one);
  }).observe({ type, buffered: true });
  watch('largest-contentful-paint', (one) => { seen.lcp = Math.max(seen.lcp, one.startTime); });
  watch('longtask', (one) => { seen.task = Math.max(seen.task, one.duration); });
  requestAnimationFrame(() => setTimeout(() => done(seen), 50));
})"""

INPUTS = """() => {
  window.longest = 0;
  new PerformanceObserver((list) => {
    for (const one of list.getEntries())
      if (one.interactionId) window.longest = Math.max(window.longest, one.duration);
  }).observe({ type: 'event', durationThreshold: 16, buffered: true });
}"""


def main() -> None:
    """Serve the demo, then open each page and press keys."""
    from playwright.sync_api import sync_playwright

    if not Path(CHROMIUM).exists():
        say(f"{CHROMIUM} is not installed: nothing measured")
        return
    with tempfile.TemporaryDirectory() as folder:
        _demo(folder)
        server = start_server(Path(folder))
        try:
            with sync_playwright() as playwright:
                chromium = playwright.chromium.launch(
                    executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
                )
                _pages(chromium, server)
                chromium.close()
        finally:
            server.stop()


def _demo(folder: str) -> None:
    env = environment(Path(folder))
    for command in ("migrate", "demo"):
        run = [sys.executable, "-m", "contextlab.cli", command]
        subprocess.run(run, check=True, cwd=folder, env=env, stdout=subprocess.DEVNULL)


def _pages(chromium: Any, server: Any) -> None:
    page = chromium.new_page(base_url=server.address)
    page.goto(server.login)
    long = open_session(page, "Move twenty services to the new cluster")
    other = open_session(page, "What can a hostile log file do to us?")
    a, b = (re.search(r"/sessions/([^/]+)/", one)[1] for one in (long, other))  # type: ignore[index]
    page.close()
    say(f"medians of {ROUNDS} in ms; at the right with a processor slowed {SLOWED} times")
    say(f"{'page':<14}" + f"{'LCP':>8}{'task':>8}{'INP':>8}" * 2)
    for name, (address, _) in PAGES.items():
        where = address.format(long=long, a=a, b=b)
        rows = [
            [_visit(chromium, server, where, slowed) for _ in range(ROUNDS)]
            for slowed in (1, SLOWED)
        ]
        at = [[statistics.median(taken) for taken in zip(*row, strict=True)] for row in rows]
        say(f"{name:<14}" + "".join(f"{value:>8.0f}" for row in at for value in row))
        figure(f"{name}: LCP, ms", at[0][0], at_most=1500 if "{long}" in address else 1200)
        figure(f"{name}: INP, processor slowed {SLOWED} times, ms", at[1][2], at_most=100)


def _visit(chromium: Any, server: Any, where: str, slowed: int) -> tuple[float, float, float]:
    """LCP, longest task and INP of a first visit, in ms."""
    context = chromium.new_context(base_url=server.address)  # its cache is empty
    server.let_in(context)
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": slowed})
    page.goto(where, wait_until="networkidle", timeout=120_000)
    seen = page.evaluate(FIRST_PAINTS)
    page.evaluate(INPUTS)
    for key in KEYS:
        page.keyboard.press(key)
        page.wait_for_timeout(60)
    page.wait_for_timeout(200)
    longest = page.evaluate("window.longest")
    context.close()
    return seen["lcp"], seen["task"], longest


if __name__ == "__main__":
    main()
