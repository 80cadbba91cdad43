"""Pages whose texts no line has room for: none scrolls sideways."""

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
    """The widths at which a page scrolls sideways, and what is beyond its edge."""
    before = page.viewport_size
    wrong = []
    for width in WIDTHS:
        page.set_viewport_size({**before, "width": width})
        if found := page.evaluate(BEYOND):
            wrong.append(f"{name}, {width} px: beyond the edge: {', '.join(found)}")
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
