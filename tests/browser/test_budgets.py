"""What the first visit of each page weighs and moves, with the demo sessions in the store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sessions.views.web.pages import pages
from tests.browser.test_accessibility import open_session, served
from tests.conftest import Server

__all__ = ["served"]

KB = 1024
DOCUMENT, STYLES, SCRIPT = 60 * KB, 25 * KB, 25 * KB
"""Bytes as sent, of a page; `SCRIPT` without islands."""
WITH_CHARTS, WITH_REPLAY = 90 * KB, 100 * KB
ISLANDS = {
    "chart": WITH_CHARTS,
    "scatter": WITH_CHARTS,
    "lab": WITH_CHARTS,
    "simulation": WITH_CHARTS,
    "replay": WITH_REPLAY,
    "diff": WITH_REPLAY,
    "review": WITH_REPLAY,
}
"""What a page with this island may weigh in script."""
OF_A_SESSION = {
    "replay": "{long}",
    "transcript": "{long}?view=transcript",
    "treemap": "{long}?view=treemap",
    "diff": "{long}diff/128..129/",
    "compaction": "{long}revisions/recorded/1/",
    "why": "{long}why/?text=routes",
    "session tools": "{long}tools/",
    "session policy": "{long}policy/",
    "compare": "/compare/{a}..{b}/",
    "found": "/search/?q=port",
    "all caches": "/cache/?range=all",
    "whole dashboard": "/dashboard/?range=all",
}
"""Pages that need an object or a query; `a` and `b` are sessions, `long` the address of one."""
MOST_REQUESTS = 25
MOST_NODES = {"replay": 1500, "transcript": 1500, "treemap": 1500}
"""Elements of a page; `OTHER_NODES` of one that lists all it has, such as a whole compaction."""
OTHER_NODES = 5000
MOST_SHIFT = 0.02
"""Sum of the layout shifts of a visit without input (CLS)."""
MOST_SHIFT_OF = {"lab": 0.1}
"""Above the goal still: the lab's figures come one by one."""
SHIFT = """() => new Promise((done) => {
  let sum = 0;
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) if (!one.hadRecentInput) sum += one.value;
  }).observe({ type: 'layout-shift', buffered: true });
  requestAnimationFrame(() => setTimeout(() => done(sum)));
})"""


def lines_after_texts(page: Any) -> None:
    """Lines of blocks are held until their texts have been drawn, as a busy machine may do."""
    held: list[Any] = []
    drawn: list[bool] = []

    def texts_are_here(request: Any) -> None:
        if "/texts?" in request.url:
            page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
            drawn.append(True)
            while held:
                held.pop().continue_()

    page.route("**/previews?*", lambda route: route.continue_() if drawn else held.append(route))
    page.on("requestfinished", texts_are_here)


def addresses(page: Any) -> Iterator[tuple[str, str]]:
    """Name and address of every page: those without an object from the records."""
    long = open_session(page, "Move twenty services to the new cluster")
    other = open_session(page, "What can a hostile log file do to us?")
    a, b = (re.search(r"/sessions/([^/]+)/", one)[1] for one in (long, other))  # type: ignore[index]
    for name, address in OF_A_SESSION.items():
        yield name, address.format(long=long, a=a, b=b)
    for one in pages():
        if "<" not in one.route and page.request.get(f"/{one.route}").ok:
            yield one.name, f"/{one.route}"


def faults(page: Any, name: str, address: str) -> list[str]:
    """What one visit with an empty cache has too much of."""
    requests: list[Any] = []
    page.on("requestfinished", lambda one: requests.append(one))
    if name == "transcript":
        lines_after_texts(page)
    answer = page.goto(address, wait_until="networkidle", timeout=120_000)
    assert answer.ok, (name, answer.status)
    islands = page.eval_on_selector_all("ctx-island", "all => all.map((one) => one.dataset.name)")
    script = max((ISLANDS[island] for island in islands), default=SCRIPT)
    budget = {"document": DOCUMENT, "stylesheet": STYLES, "script": script}
    weight = dict.fromkeys(budget, 0)
    for request in requests:
        if request.resource_type in weight:
            weight[request.resource_type] += request.sizes()["responseBodySize"]
    assert all(weight.values()), (name, weight)
    wrong = [f"{name}: {of} {weight[of]} bytes" for of in budget if weight[of] > budget[of]]
    if len(requests) > MOST_REQUESTS:
        wrong.append(f"{name}: {len(requests)} requests")
    nodes = page.evaluate("document.querySelectorAll('*').length")
    if nodes > MOST_NODES.get(name, OTHER_NODES):
        wrong.append(f"{name}: {nodes} elements")
    if (shift := page.evaluate(SHIFT)) > MOST_SHIFT_OF.get(name, MOST_SHIFT):
        wrong.append(f"{name}: layout shift {shift:.3f}")
    return wrong


def test_what_pages_weigh(page: Any, browser: Any, served: Server) -> None:
    wrong = []
    for name, address in addresses(page):
        context = browser.new_context(base_url=served.address)  # its cache is empty
        served.let_in(context)
        wrong += faults(context.new_page(), name, address)
        context.close()
    assert not wrong, "\n".join(wrong)
