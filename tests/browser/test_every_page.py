"""Every page with the demo sessions in the store, opened once with an empty cache: what it weighs
and moves, what axe says of it, and that no box in it scrolls sideways, folded parts open."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sessions.views.web.pages import pages
from tests.browser.test_accessibility import DISCLOSE, axe, faults, open_session, served
from tests.browser.test_unbroken import sideways
from tests.conftest import Server, watched

__all__ = ["axe", "served"]

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


def too_much(page: Any, name: str, address: str) -> list[str]:
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


def inaccessible(page: Any, name: str, axe: str) -> list[str]:
    """What axe finds wrong in either theme, in a window in which nothing is under the bars."""
    before = page.viewport_size
    page.set_viewport_size({"width": 1280, "height": 4000})
    page.wait_for_load_state("networkidle")
    wrong = faults(page, axe, name)
    page.emulate_media(color_scheme="light", reduced_motion="no-preference")
    page.set_viewport_size(before)
    return wrong


def opened_from_the_lab(page: Any) -> list[tuple[str, str]]:
    """Name and address of a simulation and of a search of the auto-tuner."""
    page.goto("/lab/")
    links = {
        "simulation": page.locator(".recent-simulations [data-open]").first,
        "search": page.locator("main a[href^='/lab/searches/']").first,
    }
    return [(name, link.get_attribute("href")) for name, link in links.items()]


def test_what_pages_weigh_who_can_read_them_and_how_wide_they_are(
    page: Any, browser: Any, served: Server, axe: str
) -> None:
    """Pages that need no object are from the records, so that a new one is judged without a line
    here."""
    wrong = []
    for name, address in addresses(page):
        with watched(browser, served) as shown:
            wrong += too_much(shown, name, address)
            if name not in OF_A_SESSION:
                wrong += inaccessible(shown, name, axe)
            shown.evaluate(DISCLOSE)
            wrong += sideways(shown, name)
    for name, address in opened_from_the_lab(page):
        page.goto(address, wait_until="networkidle", timeout=120_000)
        page.evaluate(DISCLOSE)
        wrong += sideways(page, name)
    assert not wrong, "\n".join(wrong)
