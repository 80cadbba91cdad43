"""Every page with the demo sessions, folded parts open: no box in it scrolls sideways."""

from __future__ import annotations

from typing import Any

from tests.browser.test_accessibility import DISCLOSE, served
from tests.browser.test_budgets import addresses
from tests.browser.test_unbroken import sideways

__all__ = ["served"]


def opened_from_the_lab(page: Any) -> list[tuple[str, str]]:
    """Name and address of a simulation and of a search of the auto-tuner."""
    page.goto("/lab/")
    links = {
        "simulation": page.locator(".recent-simulations [data-open]").first,
        "search": page.locator("main a[href^='/lab/searches/']").first,
    }
    return [(name, link.get_attribute("href")) for name, link in links.items()]


def test_no_box_scrolls_sideways(page: Any) -> None:
    page.set_default_timeout(120_000)
    wrong = []
    for name, address in [*addresses(page), *opened_from_the_lab(page)]:
        page.goto(address, wait_until="networkidle")
        page.evaluate(DISCLOSE)
        wrong += sideways(page, name)
    assert not wrong, "\n".join(wrong)
