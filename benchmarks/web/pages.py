"""How soon pages show themselves and answer a key or a click, in Chromium.

Run: python -m benchmarks.web.pages. Needs Chromium and the built pages. Of first visits to every
page of the navigation and of a session, with the demo sessions and those of the logs that
CONTEXTLAB_CORPUS names: the largest contentful paint (LCP), the longest task until then, and the
longest time from an input to the frame after it (INP); as it is, and with a processor slowed four
times.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import django

from benchmarks.figures import figure
from benchmarks.processes import say
from benchmarks.server import environment
from tests.conftest import CHROMIUM, start_server

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextlab.settings")
django.setup()

from sessions.views.web.pages import pages  # noqa: E402 (pages need Django)
from tests.browser.test_every_page import OF_A_SESSION, addresses  # noqa: E402

ROUNDS = 3
SLOWED = 4
REPLAYS = ("replay", "transcript", "treemap")
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

INPUTS = """
  window.longest = null;
  new PerformanceObserver((list) => {
    for (const one of list.getEntries())
      if (one.interactionId) window.longest = Math.max(window.longest ?? 0, one.duration);
  }).observe({ type: 'event', durationThreshold: 16, buffered: true });
"""


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
    logs = os.environ.get("CONTEXTLAB_CORPUS")
    for command in (["migrate"], ["demo"], *([["import", logs]] if logs else [])):
        run = [sys.executable, "-m", "contextlab.cli", *command]
        subprocess.run(run, check=True, cwd=folder, env=env, stdout=subprocess.DEVNULL)


def _pages(chromium: Any, server: Any) -> None:
    page = chromium.new_page(base_url=server.address)
    server.let_in(page.context)  # its link can be used once
    navigation = {one.name for one in pages() if one.link is not None}
    found = [one for one in addresses(page) if one[0] in navigation | OF_A_SESSION.keys()]
    page.close()
    say(f"medians of {ROUNDS} in ms; at the right with a processor slowed {SLOWED} times")
    say(f"{'page':<16}" + f"{'LCP':>8}{'task':>8}{'INP':>8}" * 2)
    for name, where in found:
        rows = [
            [_visit(chromium, server, where, slowed) for _ in range(ROUNDS)]
            for slowed in (1, SLOWED)
        ]
        at = [[_median(taken) for taken in zip(*row, strict=True)] for row in rows]
        say(f"{name:<16}" + "".join(_cell(value) for row in at for value in row))
        lcp, inp = at[0][0], at[1][2]
        assert lcp is not None
        replay = name in REPLAYS
        subject = f"{'replay-page' if replay else 'page'} {name}"
        figure(f"{subject}: LCP, ms", lcp, at_most=1500 if replay else 1200)
        if inp is not None:
            figure(f"{subject}: INP slowed ×{SLOWED}, ms", inp, at_most=100)


def _median(taken: tuple[float | None, ...]) -> float | None:
    known = [value for value in taken if value is not None]
    return statistics.median(known) if known else None


def _cell(value: float | None) -> str:
    return f"{'unknown':>8}" if value is None else f"{value:>8.0f}"


def _visit(
    chromium: Any, server: Any, where: str, slowed: int
) -> tuple[float, float, float | None]:
    """LCP, longest task and INP of a first visit, in ms; INP None if no input was measured."""
    context = chromium.new_context(base_url=server.address)  # its cache is empty
    server.let_in(context)
    context.add_init_script(INPUTS)  # a key may lead to another page, such as the next diff
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": slowed})
    page.goto(where, wait_until="networkidle", timeout=120_000)
    seen = page.evaluate(FIRST_PAINTS)
    longest: list[float] = []
    for key in KEYS:
        page.keyboard.press(key)
        page.wait_for_timeout(200)
        page.wait_for_load_state()
        if (taken := page.evaluate("window.longest")) is not None:
            longest.append(taken)
    context.close()
    return seen["lcp"], seen["task"], max(longest, default=None)


if __name__ == "__main__":
    main()
