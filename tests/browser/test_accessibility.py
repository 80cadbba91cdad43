"""What pages show in use against axe, light and dark, with the demo sessions in the store."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.logs import claude_code
from tests.conftest import ROOT, Server, start_server, unavailable

AXE = ROOT / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
RULES = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
OF_COLOUR = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
"""All that a theme can change: its document is the other one's."""
RUN = """async (rules) => {
  const found = await axe.run(document, { runOnly: rules, resultTypes: ['violations'] });
  const line = (node) => `    ${node.target}: ${node.any.map((check) => check.message).join('; ')}`;
  return found.violations
    .filter((one) => ['serious', 'critical'].includes(one.impact))
    .map((one) => [`${one.id}: ${one.help}`, ...one.nodes.slice(0, 4).map(line)].join('\\n'));
}"""

DISCLOSE = "document.querySelectorAll('details').forEach((one) => (one.open = true))"


@pytest.fixture(scope="module")
def served(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose store got the demo sessions before it started."""
    data_dir = tmp_path_factory.mktemp("shown")
    shutil.copytree(demo, data_dir, dirs_exist_ok=True)
    server = start_server(data_dir)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def axe() -> str:
    """The source of the program that judges."""
    if not AXE.exists():
        unavailable("axe-core is not installed: npm --prefix frontend ci")
    return AXE.read_text()


def faults(page: Any, axe: str, name: str) -> list[str]:
    """What is wrong with a page as it is now, in either theme."""
    # Evaluated by the browser itself, so that the policy for the page's scripts stays as it is.
    page.evaluate(axe)
    wrong = []
    for theme, rules in (("light", RULES), ("dark", OF_COLOUR)):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        wrong += [f"{name}, {theme}: {one}" for one in page.evaluate(RUN, rules)]
    return wrong


@pytest.fixture
def judged(page: Any, axe: str) -> Iterator[Any]:
    """A page with a method that judges what it shows; the test fails at its end, with all."""
    page.set_default_timeout(20_000)
    wrong: list[str] = []

    def assert_accessible(name: str) -> None:
        page.wait_for_load_state("networkidle")
        wrong.extend(faults(page, axe, name))

    page.assert_accessible = assert_accessible
    yield page
    assert not wrong, "\n".join(wrong)


def open_session(page: Any, title: str) -> str:
    """Opens the replay of a session from the list; returns its address without step and query."""
    page.goto("/sessions/")
    page.get_by_role("link", name=title).first.click()
    page.locator("[role=grid]").wait_for()
    return re.sub(r"(steps/\d+/)?(\?.*)?$", "", str(page.url))


def test_the_replay_recorded_and_simulated(judged: Any) -> None:
    long = open_session(judged, "Move twenty services to the new cluster")
    judged.goto(f"{long}steps/112/")
    judged.locator("[role=grid] [role=row]").first.wait_for()
    judged.keyboard.press("j")
    judged.locator(".message .content").wait_for()
    judged.keyboard.press("r")
    judged.assert_accessible("replay with a message and what was removed")
    judged.goto(f"{long}steps/112/?run=offload-first")
    judged.get_by_role("heading", name="Recall").wait_for()
    judged.assert_accessible("replay, simulated")
    judged.get_by_role("row", name=re.compile("offloaded: Read")).first.click()
    judged.get_by_role("button", name=re.compile("^Compare with")).first.click()
    judged.locator(".comparison .text-diff").wait_for()
    judged.assert_accessible("replay, an original against its stub")
    open_session(judged, "What can a hostile log file do to us?")
    judged.locator(".lane").first.hover()
    judged.assert_accessible("replay with sub-agents")
    judged.get_by_role("link", name=re.compile("Which limits exist")).first.click()
    judged.get_by_text("no usage reported").wait_for()
    judged.assert_accessible("replay without usage")


def test_a_stale_note_leaves_its_button_within_a_phone(page: Any) -> None:
    page.goto("/memory/")
    page.get_by_role("link", name="demo: late ships, both languages").click()
    page.locator(".note-foot .badge.warning").wait_for()
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.scrollingElement.scrollWidth") == 390
    cut = "(one) => one.scrollWidth > one.clientWidth"
    assert not page.locator(".table-scroll").last.evaluate(cut)


def test_the_diff_and_the_revision(judged: Any) -> None:
    long = open_session(judged, "Move twenty services to the new cluster")
    judged.goto(f"{long}revisions/recorded/1/")
    judged.evaluate(DISCLOSE)
    judged.assert_accessible("revision, all of it")
    judged.get_by_role("link", name="Diff").first.click()
    judged.locator(".summary-diff .text-diff").wait_for()
    judged.assert_accessible("diff")
    judged.goto(f"{long}diff/10..11/?run=offload-first")
    judged.locator(".diff-row.replaced .diff-head").first.click()
    judged.locator(".text-diff").wait_for()
    judged.assert_accessible("diff, simulated")
    judged.locator(".diff-line .revision").first.click()
    judged.get_by_role("heading", name=re.compile("Original → stub")).wait_for()
    judged.assert_accessible("revision, simulated")


def test_what_an_agent_at_work_may_spend_knows_and_uses(judged: Any) -> None:
    running = open_session(judged, "Late ships in two languages")
    judged.assert_accessible("replay of a running session, with a retry")
    judged.goto(f"{running}tools/")
    judged.assert_accessible("tools of a session")
    judged.goto(f"{running}policy/")
    judged.assert_accessible("policy of a session")
    judged.goto("/tools/")
    judged.assert_accessible("tools of the team")
    judged.goto("/live/")
    # Shown of the demo as long as nothing else is stored: before the test that imports a log.
    judged.get_by_text("Waiting for a person").wait_for()
    judged.assert_accessible("live, an approval waits")
    judged.goto("/budgets/")
    judged.assert_accessible("budgets")
    judged.goto("/memory/?q=message")
    judged.assert_accessible("memory, searched")
    judged.goto("/memory/")
    judged.get_by_role("link", name="demo: late ships").first.click()
    judged.locator(".notes").first.wait_for()
    judged.assert_accessible("board of a task")
    judged.goto("/lab/")
    judged.locator("main a[href^='/lab/searches/']").first.click()
    judged.locator("main .scatter").first.wait_for()
    judged.assert_accessible("search")


def test_the_pages_that_the_server_draws(judged: Any, tmp_path: Path) -> None:
    judged.goto("/start/")
    judged.assert_accessible("first run")
    judged.goto("/dashboard/")
    judged.locator(".chart canvas").first.wait_for()
    judged.locator("#more-figures > summary").click()
    judged.evaluate("scrollTo(0, 0)")
    judged.assert_accessible("dashboard")
    judged.goto("/dashboard/?from=2020-01-01&to=2020-01-02")
    judged.assert_accessible("dashboard, nothing in this range")
    judged.goto("/sessions/")
    judged.assert_accessible("list")
    judged.goto("/sessions/?q=nothing-is-called-this")
    judged.assert_accessible("list, nothing matches")
    judged.goto("/imports/")
    judged.assert_accessible("imports")
    log = claude_code(tmp_path / "accessible.jsonl", steps=4, compaction_at=3)
    judged.set_input_files("input[type=file]", str(log))
    judged.get_by_role("button", name="Import").click()
    judged.get_by_role("link", name=re.compile("Find out where")).wait_for()
    judged.assert_accessible("import report")
    judged.goto("/api/v1/docs")
    judged.assert_accessible("the API")
    judged.goto("/jobs/")
    judged.assert_accessible("jobs")
    judged.locator("main table a").first.click()
    judged.assert_accessible("job")


def test_without_a_user_and_without_a_page(browser: Any, axe: str, served: Server) -> None:
    """On a page of its own: the console calls the state of these answers an error."""
    other = browser.new_context(base_url=served.address).new_page()
    other.goto("/sessions/")
    wrong = faults(other, axe, "signed out")
    other.goto("/api/v1/docs")
    wrong += faults(other, axe, "the API's page, signed out")
    served.let_in(other.context)
    other.goto("/sessions/nothing-is-here/")
    wrong += faults(other, axe, "not found")
    other.context.close()
    assert not wrong, "\n".join(wrong)
