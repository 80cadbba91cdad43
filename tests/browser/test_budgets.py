"""What the first visit of each main page weighs and moves, with the demo sessions in the store."""

from __future__ import annotations

import re
from typing import Any

from tests.browser.test_accessibility import open_session, served
from tests.conftest import Server

__all__ = ["served"]

KB = 1024
DOCUMENT, STYLES, SCRIPT = 60 * KB, 25 * KB, 25 * KB
WITH_CHARTS, WITH_REPLAY = 90 * KB, 100 * KB
PAGES = {
    "dashboard": ("/dashboard/", WITH_CHARTS),
    "sessions": ("/sessions/", SCRIPT),
    "replay": ("{long}", WITH_REPLAY),
    "transcript": ("{long}?view=transcript", WITH_REPLAY),
    "compaction": ("{long}revisions/recorded/1/", WITH_REPLAY),
    "why": ("{long}why/?text=routes", SCRIPT + KB),
    "compare": ("/compare/{a}..{b}/", SCRIPT),
    "cache": ("/cache/?range=all", SCRIPT),
    "tools": ("/tools/", SCRIPT),
    "lab": ("/lab/", WITH_CHARTS),
    "live": ("/live/", SCRIPT),
    "policies": ("/policies/", SCRIPT),
    "review": ("/review/", SCRIPT),
    "search": ("/search/?q=port", SCRIPT),
}
"""Address, and bytes of script as sent. `a` and `b` are sessions, `long` the address of one."""
MOST_REQUESTS = 25
MOST_NODES = 1500
"""Elements of a replay."""
MOST_SHIFT = 0.02
"""Sum of the layout shifts of a visit without input (CLS)."""
MOST_SHIFT_OF = {"lab": 0.1}
"""Above the goal still: its figures come one session at a time."""
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


def test_what_pages_weigh(page: Any, browser: Any, served: Server) -> None:
    long = open_session(page, "Move twenty services to the new cluster")
    other = open_session(page, "What can a hostile log file do to us?")
    a, b = (re.search(r"/sessions/([^/]+)/", one)[1] for one in (long, other))  # type: ignore[index]
    wrong = []
    for name, (address, script) in PAGES.items():
        context = browser.new_context(base_url=served.address)  # its cache is empty
        served.let_in(context)
        first = context.new_page()
        requests: list[Any] = []
        first.on("requestfinished", lambda one, kept=requests: kept.append(one))
        if name == "transcript":
            lines_after_texts(first)
        where = address.format(long=long, a=a, b=b)
        answer = first.goto(where, wait_until="networkidle", timeout=120_000)
        assert answer.ok, (name, answer.status)
        budget = {"document": DOCUMENT, "stylesheet": STYLES, "script": script}
        weight = dict.fromkeys(budget, 0)
        for request in requests:
            if request.resource_type in weight:
                weight[request.resource_type] += request.sizes()["responseBodySize"]
        assert all(weight.values()), weight
        wrong += [f"{name}: {of} {weight[of]} bytes" for of in budget if weight[of] > budget[of]]
        if len(requests) > MOST_REQUESTS:
            wrong.append(f"{name}: {len(requests)} requests")
        nodes = first.evaluate("document.querySelectorAll('*').length")
        if "{long}?" in f"{address}?" and nodes > MOST_NODES:
            wrong.append(f"{name}: {nodes} elements")
        if (shift := first.evaluate(SHIFT)) > MOST_SHIFT_OF.get(name, MOST_SHIFT):
            wrong.append(f"{name}: layout shift {shift:.3f}")
        context.close()
    assert not wrong, "\n".join(wrong)
