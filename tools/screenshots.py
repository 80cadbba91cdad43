"""Screenshots of the pages that the docs show, light and dark, from demo data: `make screenshots`
writes docs/screenshots/."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.conftest import CHROMIUM, start_server  # noqa: E402

OUT = ROOT / "docs" / "screenshots"
SIZE = {"width": 1440, "height": 900}
LOG = ROOT / "tests" / "sessions" / "importers" / "samples" / "claude-code" / "claude-code.jsonl"
SIMULATION = "main a[href^='/lab/']:not([href*='?'])"
LONG = "Move twenty services to the new cluster"
COMPACTION = 129
"""Its step after the compaction; 14 steps later the agent says what it lacks."""

RUNNING = "Late ships in two languages"


@dataclass
class Visit:
    """A signed-in browser in one theme."""

    page: Any
    theme: str

    def shoot(self, name: str) -> None:
        """Take a screenshot of the current page."""
        self.page.wait_for_load_state("networkidle")
        self.page.mouse.move(0, 0)
        self.page.screenshot(path=OUT / f"{name}-{self.theme}.png")

    def at(self, address: str, name: str, wanted: str = "h1") -> None:
        """Take a screenshot of a URL, once an element is there."""
        self.page.goto(address)
        self.page.locator(wanted).first.wait_for()
        self.shoot(name)

    def replay(self, title: str) -> str:
        """Open a session; return its URL."""
        self.page.goto("/sessions/")
        self.page.get_by_role("link", name=title).first.click()
        self.page.locator("[role=slider]").wait_for()
        return re.sub(r"(steps/\d+/)?(\?.*)?$", "", str(self.page.url))

    def read(self, text: str) -> None:
        """Open the message that contains a text."""
        self.page.locator("[role=row]", has_text=text).first.click()
        self.page.locator(".message .content").wait_for()


def starting(visit: Visit) -> None:
    """The start page of a new team."""
    visit.at("/start/", "first-run")
    visit.at("/sessions/", "sessions")
    visit.at("/live/", "live")


def replaying(visit: Visit) -> None:
    """The long session around its compaction, recorded and simulated."""
    page, long = visit.page, visit.replay(LONG)
    page.goto(f"{long}steps/{COMPACTION - 1}/")
    page.locator("[role=grid]").wait_for()
    # An early read that is about to be removed.
    visit.read("Read /home/mara/harbor/docs/cluster.md →")
    visit.shoot("replay")
    page.goto(f"{long}steps/{COMPACTION + 14}/")
    page.locator("[role=grid]").wait_for()
    visit.shoot("what-was-lost")
    page.goto(f"{long}steps/{COMPACTION + 20}/?run=offload-first")
    page.get_by_text("[offloaded").first.wait_for()
    page.get_by_role("heading", name="Recall").wait_for()
    visit.shoot("replay-simulated")
    page.locator("[role=row]", has_text="[offloaded").first.click()
    page.get_by_role("button", name="Compare with original").click()
    page.locator(".comparison .text-diff").wait_for()
    visit.shoot("versions")


def compacting(visit: Visit) -> None:
    """A compaction, what it lost, and its diff."""
    page, long = visit.page, visit.replay(LONG)
    visit.at(f"{long}revisions/recorded/1/", "compaction")
    page.locator("#quality").evaluate("one => one.scrollIntoView()")
    visit.shoot("compaction-measures")
    page.goto(f"{long}revisions/recorded/1/")
    page.get_by_role("link", name="Diff").first.click()
    page.locator(".summary-diff .text-diff").wait_for()
    visit.shoot("diff")


def other_sessions(visit: Visit) -> None:
    """Cache breaks, and sub-agents."""
    broken = visit.replay("Why does the replay page take four seconds?")
    visit.at(f"{broken}steps/18/", "cache-break", ".happened")
    visit.replay("What can a hostile log file do to us?")
    visit.page.locator(".lanes, .lane").first.wait_for()
    visit.shoot("sub-agents")


def running(visit: Visit) -> None:
    """A live agent: budget, board, tools, and policy."""
    page, notices = visit.page, visit.replay(RUNNING)
    page.goto(f"{notices}steps/8/")
    page.get_by_role("button", name="Peak").first.click()
    page.get_by_text("retries step 7").first.wait_for()
    visit.shoot("retry")
    visit.at(f"{notices}tools/", "session-tools")
    visit.at(f"{notices}policy/", "session-policy")
    visit.at("/tools/", "tools")
    visit.at("/budgets/", "budgets")
    visit.at("/memory/", "memory")
    page.get_by_role("link", name="demo: late ships").first.click()
    page.locator(".notes").first.wait_for()
    visit.shoot("memory-board")


def tuning(visit: Visit) -> None:
    """Policies, the lab, and a simulation."""
    page = visit.page
    visit.at("/policies/", "policies")
    visit.at("/policies/careful/", "policy")
    visit.at("/policies/careful/1/", "policy-version")
    visit.at("/policies/careful/edit/", "policy-edit")
    visit.at("/lab/", "lab", ".frontier, main svg")
    page.goto("/policies/careful/")
    page.locator(SIMULATION).first.click()
    page.locator("main .scatter").first.wait_for()
    visit.shoot("simulation")
    page.goto("/lab/")
    page.locator("main a[href^='/lab/searches/']").first.click()
    page.locator("main .scatter").first.wait_for()
    visit.shoot("search")


def rolling_out(visit: Visit) -> None:
    """A rollout; the first visit proposes and starts it."""
    page = visit.page
    page.goto("/rollouts/")
    if not page.locator("main a[href^='/rollouts/']").count():
        page.goto("/policies/careful/")
        page.locator(SIMULATION).first.click()
        page.get_by_role("link", name="Propose careful@1").click()
        page.get_by_role("button", name="Propose").click()
        page.wait_for_url("**/rollouts/*/")
        page.get_by_role("button", name="Accept").click()
        page.wait_for_load_state("networkidle")
    visit.at("/rollouts/", "rollouts")
    page.locator("main a[href^='/rollouts/']").first.click()
    visit.shoot("rollout")


def looking_over(visit: Visit) -> None:
    """All sessions of a week, what breaks the cache, a search, and the tour."""
    visit.at("/dashboard/", "dashboard", ".chart canvas")
    visit.at("/cache/", "cache")
    visit.at("/search/?q=8417", "search-text", "mark")
    page, long = visit.page, visit.replay(LONG)
    visit.at(f"{long}why/?text=8417", "why")
    visit.at(
        f"{long}steps/{COMPACTION - 1}/?view=transcript",
        "transcript",
        "[role=feed], .transcript, main",
    )
    visit.at(f"{long}steps/{COMPACTION - 1}/?view=treemap", "treemap", "main svg, .treemap, main")
    first = long.rstrip("/").rpartition("/")[2]
    broken = (
        visit.replay("Why does the replay page take four seconds?").rstrip("/").rpartition("/")[2]
    )
    visit.at(f"/compare/{first}..{broken}/", "compare")
    page.wait_for_load_state("networkidle")


def reviewing(visit: Visit) -> None:
    """The review queue, and a compaction next to what it replaced."""
    visit.at("/review/", "reviews")
    visit.at("/review/next/", "review", "main ctx-island > *")
    visit.at("/review/rules/", "review-rules")


def settings(visit: Visit) -> None:
    """Members, team, keys, notifications, ingestion, and the audit log."""
    for name in ("keys", "members", "team", "audit", "notifications", "ingestion"):
        visit.at(f"/settings/{name}/", f"settings-{name}")
    visit.at("/account/", "account")


def importing(visit: Visit) -> None:
    """An upload with its report, and jobs."""
    page = visit.page
    page.goto("/imports/")
    page.set_input_files("input[type=file]", str(LOG))
    page.get_by_role("button", name="Import").click()
    page.get_by_text("done").first.wait_for()
    visit.shoot("import")
    visit.at("/jobs/", "jobs")
    page.locator("main table a").first.click()
    visit.shoot("job")


FAMILIES: tuple[Callable[[Visit], None], ...] = (
    *(starting, replaying, compacting, other_sessions),
    *(running, tuning, rolling_out, looking_over, reviewing, settings, importing),
)


def main() -> None:
    """Load the demo into a temporary store, serve it, and visit every page in both themes.

    Pass names of page families to visit only these.
    """
    from playwright.sync_api import sync_playwright

    wanted = [one for one in FAMILIES if not sys.argv[1:] or one.__name__ in sys.argv[1:]]
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "CONTEXTLAB_DATA_DIR": folder, "DATABASE_URL": ""}
        for command in ("migrate", "demo"):
            subprocess.run(  # noqa: S603 (our own command)
                [sys.executable, "-m", "contextlab.cli", command], check=True, cwd=ROOT, env=env
            )
        server = start_server(Path(folder))
        try:
            with sync_playwright() as playwright:
                chromium = playwright.chromium.launch(
                    executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
                )
                visits = []
                for theme in ("light", "dark"):
                    context = chromium.new_context(
                        viewport=SIZE, color_scheme=theme, base_url=server.address
                    )
                    server.let_in(context)
                    visits.append(Visit(context.new_page(), theme))
                # Family by family: what an import brings in, which is last, hides the demo.
                for family in wanted:
                    for visit in visits:
                        family(visit)
                chromium.close()
        finally:
            server.stop()


if __name__ == "__main__":
    main()
