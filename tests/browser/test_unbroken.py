"""Pages whose texts no line has room for: none scrolls sideways. And what pages weigh."""

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

KB = 1024
BUDGETS = {
    "/sessions/": {"document": 60 * KB, "stylesheet": 25 * KB, "script": 32 * KB},
    "/search/?q=port": {"document": 60 * KB, "stylesheet": 25 * KB, "script": 25 * KB},
    "/dashboard/": {"document": 60 * KB, "stylesheet": 25 * KB, "script": 90 * KB},
    "a replay": {"document": 60 * KB, "stylesheet": 25 * KB, "script": 100 * KB},
}
"""Bytes of a first visit as sent."""
MOST_REQUESTS = 25
MOST_NODES = 1500
"""Elements of a replay."""


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
    while not page.locator(".search-group").count():
        page.reload()
    return replay


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


def test_what_pages_weigh(page: Any, browser: Any, served: Server) -> None:
    replay = found(page)
    heavy = []
    for name, budget in BUDGETS.items():
        context = browser.new_context(base_url=served.address)  # its cache is empty
        served.let_in(context)
        first = context.new_page()
        requests: list[Any] = []
        first.on("requestfinished", lambda one, kept=requests: kept.append(one))
        first.goto(replay if name == "a replay" else name, wait_until="networkidle")
        weight = dict.fromkeys(budget, 0)
        for request in requests:
            if request.resource_type in weight:
                weight[request.resource_type] += request.sizes()["responseBodySize"]
        nodes = first.evaluate("document.querySelectorAll('*').length")
        heavy += [f"{name}: {of} {weight[of]} bytes" for of in budget if weight[of] > budget[of]]
        if len(requests) > MOST_REQUESTS:
            heavy.append(f"{name}: {len(requests)} requests")
        if name == "a replay" and nodes > MOST_NODES:
            heavy.append(f"{name}: {nodes} elements")
        assert all(weight.values()), weight
        context.close()
    assert not heavy, "\n".join(heavy)
