"""Pages whose texts no line has room for: neither they nor their boxes scroll sideways."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from sessions.views.web.pages import pages
from tests.browser.logs import claude_code
from tests.browser.test_accessibility import open_session
from tests.conftest import ROOT, Server, start_server
from tests.empty_store import with_tables

UNBROKEN = "demonstrations__ctf__crypto__" + "Background_process_" * 8
WIDE = f"{UNBROKEN} port\n\n|{'a column |' * 40}\n|{'---|' * 40}\n|{UNBROKEN}|"

WIDTHS = (390, 1024, 1440, 1920)
"""Of windows, in CSS pixels, in which no page scrolls sideways."""
BEYOND = """() => {
  const width = document.documentElement.clientWidth;
  if (document.scrollingElement.scrollWidth <= width) return [];
  const open = (one) => !one || one === document.body
    || (getComputedStyle(one).overflowX === 'visible' && open(one.parentElement));
  const beyond = (one) => one.getBoundingClientRect().right > width + 1;
  const found = [...document.querySelectorAll('body *')]
    .filter((one) => beyond(one) && open(one.parentElement));
  return found.slice(-4).map((one) => `${one.tagName}.${one.className}`);
}"""
SCROLL = "pre, textarea, .text-diff, .content, .chart-table, .tool-graph"
"""What may scroll sideways in itself: code, texts as they were sent, and charts as tables."""
BOXES = """(may) => [...document.querySelectorAll('body *')]
  .filter((one) => one.scrollWidth > one.clientWidth + 1 && one.checkVisibility()
    && ['auto', 'scroll'].includes(getComputedStyle(one).overflowX) && !one.closest(may))
  .map((one) => `${one.className} ${one.querySelector('table')?.className ?? ''}`)"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with one session, whose title, id, paths and table have no place to break."""
    data_dir = with_tables(tmp_path_factory.mktemp("unbroken"))
    log = claude_code(data_dir / f"{UNBROKEN}.jsonl", steps=4, compaction_at=3, asked=WIDE)
    subprocess.run(
        [sys.executable, "-m", "contextlab.cli", "import", log],
        cwd=ROOT,
        env={**os.environ, "CONTEXTLAB_DATA_DIR": str(data_dir), "DATABASE_URL": ""},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    server = start_server(data_dir)
    yield server
    server.stop()


def sideways(page: Any, name: str) -> list[str]:
    """The widths at which a page or a box in it scrolls sideways, and what is beyond the edge."""
    before = page.viewport_size
    wrong = []
    for width in WIDTHS:
        page.set_viewport_size({**before, "width": width})
        if found := page.evaluate(BEYOND):
            wrong.append(f"{name}, {width} px: beyond the edge: {', '.join(found)}")
        if found := page.evaluate(BOXES, SCROLL):
            wrong.append(f"{name}, {width} px: boxes scroll: {', '.join(found)}")
    page.set_viewport_size(before)
    return wrong


def found(page: Any) -> str:
    """Waits until search has the session; returns the address of its replay."""
    replay = open_session(page, UNBROKEN[:40])
    page.goto("/search/?q=port")
    for _ in range(100):
        if page.locator(".search-group").count():
            return replay
        page.reload()
    raise AssertionError("search does not find the session")


CUT = """() => [...document.querySelectorAll('.table-scroll')]
  .filter((one) => one.scrollWidth > one.clientWidth)
  .map((one) => one.querySelector('table').className)"""


def test_on_a_phone_imports_and_comparisons_show_every_column(page: Any) -> None:
    replay = found(page)
    session = replay.rstrip("/").rpartition("/")[2]
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/imports/")
    assert page.evaluate(CUT) == []
    page.locator("a[data-open]").click()
    page.locator("td[data-name=skipped]").first.wait_for()
    assert page.evaluate(CUT) == []
    page.goto(f"/compare/{session}..{session}/")
    page.locator(".compared-figures").wait_for()
    assert page.evaluate(CUT) == []
    page.set_viewport_size({"width": 1024, "height": 768})
    page.goto("/imports/")
    assert page.evaluate(CUT) == []


def test_a_typed_step_is_shown_before_it_is_gone_to(page: Any) -> None:
    page.goto(found(page))
    page.locator("[role=grid] [role=row]").first.wait_for()
    page.keyboard.press("2")
    page.get_by_role("status").filter(has_text="Go to step 2: Enter").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url("**/steps/2/**")
    page.keyboard.press("3")
    page.keyboard.press("Escape")
    field = page.locator(".goto input")
    assert (field.input_value(), page.locator(".goto .typed").count()) == ("2", 0)
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**/steps/1/**")


def test_no_page_scrolls_sideways(page: Any) -> None:
    replay = found(page)
    wrong = sideways(page, "search with hits")
    page.goto(replay)
    page.locator("[role=grid] [role=row]").first.wait_for()
    page.keyboard.press("j")
    page.locator(".message .content").wait_for()
    wrong += sideways(page, "replay with a message")
    for part in ("diff/1..2/", "tools/", "policy/", "revisions/recorded/1/"):
        page.goto(f"{replay}{part}")
        page.wait_for_load_state("networkidle")
        wrong += sideways(page, part)
    for one in pages():
        if "<" not in one.route and page.request.get(f"/{one.route}").ok:
            page.goto(f"/{one.route}")
            page.wait_for_load_state("networkidle")
            wrong += sideways(page, one.name)
    assert not wrong, "\n".join(wrong)
