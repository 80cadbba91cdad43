"""Every page, light and dark, from demo data: `make screenshots` writes docs/screenshots/."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.conftest import CHROMIUM, start_server  # noqa: E402

OUT = ROOT / "docs" / "screenshots"
SIZE = {"width": 1440, "height": 900}
LOG = ROOT / "tests" / "sessions" / "importers" / "samples" / "claude-code.jsonl"


def main() -> None:
    """Load the demo into a store of its own, serve it, and visit every page in both themes."""
    from playwright.sync_api import sync_playwright

    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder)
        env = {**os.environ, "CONTEXTLAB_DATA_DIR": folder, "DATABASE_URL": ""}
        for command in ("migrate", "demo"):
            subprocess.run(  # noqa: S603 (our own command)
                [sys.executable, "-m", "contextlab.cli", command], check=True, cwd=ROOT, env=env
            )
        server = start_server(data_dir)
        try:
            with sync_playwright() as playwright:
                chromium = playwright.chromium.launch(
                    executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
                )
                for theme in ("light", "dark"):
                    context = chromium.new_context(
                        viewport=SIZE, color_scheme=theme, base_url=server.address
                    )
                    page = context.new_page()
                    page.goto(server.login)
                    _visit(page, theme)
                    context.close()
                chromium.close()
        finally:
            server.stop()


def _visit(page: Any, theme: str) -> None:
    def shoot(name: str) -> None:
        page.wait_for_load_state("networkidle")
        page.mouse.move(0, 0)
        page.screenshot(path=OUT / f"{name}-{theme}.png")

    def replay(title: str) -> str:
        page.goto("/sessions/")
        page.get_by_role("link", name=title).first.click()
        page.locator("[role=slider]").wait_for()
        return str(page.url).split("?")[0].rstrip("/") + "/"

    def read(text: str) -> None:
        page.locator("[role=row]", has_text=text).first.click()
        page.locator(".message .content").wait_for()

    page.goto("/start/")
    shoot("first-run")
    page.goto("/sessions/")
    shoot("sessions")
    long = replay("Write a reference of all modules")
    # The demo reads this repository, so its steps move as that grows: go by its events.
    page.goto(f"{long}steps/1/")
    page.locator("[role=grid]").wait_for()
    page.keyboard.press("Shift+ArrowRight")
    page.get_by_role("link", name="open compaction").wait_for()
    compaction = int(page.get_by_label("Go to step").input_value())
    page.keyboard.press("ArrowLeft")
    # What was read first, carried along until here, and is about to go.
    read("Read /home/mara/contextlab/docs/README.md →")
    shoot("replay")
    page.goto(f"{long}steps/{compaction + 4}/")
    read("I knew the port before my context was compacted")
    shoot("what-was-lost")
    page.goto(f"{long}steps/{compaction + 20}/?run=offload-first")
    page.get_by_text("[offloaded").first.wait_for()
    page.get_by_role("heading", name="Recall").wait_for()
    shoot("replay-simulated")
    page.locator("[role=row]", has_text="[offloaded").first.click()
    page.get_by_role("button", name="Compare with original").click()
    page.locator(".comparison .text-diff").wait_for()
    shoot("versions")
    page.goto(f"{long}revisions/recorded/1/")
    shoot("compaction")
    page.get_by_role("link", name="Diff").first.click()
    page.locator(".summary-diff .text-diff").wait_for()
    shoot("diff")
    page.goto(replay("Why does the replay page take four seconds?") + "steps/18/")
    page.locator(".happened").wait_for()
    shoot("cache-break")
    replay("What can a hostile log file do to us?")
    page.locator(".lanes summary").first.click()
    shoot("sub-agents")
    page.goto("/imports/")
    page.set_input_files("input[type=file]", str(LOG))
    page.get_by_role("button", name="Import").click()
    page.get_by_text("done").first.wait_for()
    shoot("import")
    page.goto("/jobs/")
    shoot("jobs")
    page.locator("main table a").first.click()
    shoot("job")


if __name__ == "__main__":
    main()
