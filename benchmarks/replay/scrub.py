"""Scrubbing a session of 10,000 messages in Chromium with its processor slowed four times.

Run: python -m benchmarks.replay.scrub. Needs Chromium and the built pages.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
from tests.conftest import CHROMIUM, start_server  # noqa: E402

MESSAGES, STEPS_SCRUBBED, SLOWED = 10_000, 80, 4

FILL = f"""
import django; django.setup()
from benchmarks.record.manifest import _count, _session
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.actions.accounts.teams import local_team
made = append(local_team(), _session({MESSAGES}), _count, source="benchmark").session
measure(made)
print(made.pk)
"""

# From a key to the frame that shows its step, many times, in the page itself.
SCRUB = """async (count) => {
  const taken = [];
  for (let i = 0; i < count; i++) {
    const begun = performance.now();
    document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft', bubbles: true }));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    taken.push(performance.now() - begun);
  }
  return taken;
}"""


def main() -> None:
    """Fill a store, serve it, open the replay and scrub back through it."""
    from playwright.sync_api import sync_playwright

    if not Path(CHROMIUM).exists():
        print(f"{CHROMIUM} is not installed: nothing measured")
        return
    with tempfile.TemporaryDirectory() as folder:
        env = {
            **os.environ,
            "CONTEXTLAB_DATA_DIR": folder,
            "DATABASE_URL": "",
            "DJANGO_SETTINGS_MODULE": "contextlab.settings",
            "PYTHONPATH": str(ROOT),
        }
        migrate = [sys.executable, "-m", "contextlab.cli", "migrate"]
        subprocess.run(migrate, check=True, cwd=ROOT, env=env, stdout=subprocess.DEVNULL)
        filled = subprocess.run(
            [sys.executable, "-c", FILL],
            check=True,
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
        )
        server = start_server(Path(folder))
        try:
            with sync_playwright() as playwright:
                chromium = playwright.chromium.launch(
                    executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
                )
                page = chromium.new_page(base_url=server.address)
                page.goto(server.login)
                _measure(page, f"/sessions/{filled.stdout.strip()}/")
                chromium.close()
        finally:
            server.stop()


def _measure(page: Any, address: str) -> None:
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWED})
    page.goto(address)
    page.locator("[role=grid]").wait_for()
    opened = page.evaluate("performance.now()")
    before = page.url
    taken = sorted(page.evaluate(SCRUB, STEPS_SCRUBBED))
    page.wait_for_timeout(300)
    assert page.url != before, "the keys did not move the page"
    nodes = page.evaluate("document.querySelectorAll('*').length")
    print(f"{MESSAGES:,} messages, processor slowed {SLOWED} times")
    print(f"  open to a usable table      {opened:>8.0f} ms")
    print(f"  scrub one step, median      {statistics.median(taken):>8.1f} ms")
    print(f"  scrub one step, p95         {taken[int(len(taken) * 0.95)]:>8.1f} ms  (to reach: 50)")
    print(f"  elements on the page        {nodes:>8,}     (to reach: 1,500)")


if __name__ == "__main__":
    main()
