"""The main job by keyboard alone: a session, its replay, a compaction, why a fact was lost, and
back; the palette, and the lab's sliders. Every focus on the way is visible."""

from __future__ import annotations

import re
from typing import Any

from tests.browser.policies.test_lab import simulated
from tests.browser.replays import assert_shows_step
from tests.browser.test_accessibility import served

__all__ = ["served"]

SESSION = "Move twenty services to the new cluster"
MOST_TABS = 90
FOCUSED = """() => {
  const one = document.activeElement;
  if (one === document.body) return { text: '', ringed: true, seen: true };  // after the last one
  const { left, top, width, height, bottom } = one.getBoundingClientRect();
  const at = document.elementFromPoint(left + width / 2, top + height / 2);
  const style = getComputedStyle(one);
  return {
    text: (one.getAttribute('aria-label') ?? one.innerText).replace(/\\s+/g, ' ').trim(),
    inside: Boolean(one.closest('main')),
    ringed: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0,
    seen: bottom > 0 && top < innerHeight && (one.contains(at) || at?.contains(one)),
  };
}"""
"""Which element has the focus, whether one sees that, and whether nothing covers it."""


def focused(page: Any) -> Any:
    """What has the focus, in the open."""
    found = page.evaluate(FOCUSED)
    assert found["ringed"] and found["seen"], found
    return found


def tab_to(page: Any, wanted: str, most: int = MOST_TABS) -> None:
    """Press Tab until an element whose name matches has the focus."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if re.search(wanted, focused(page)["text"]):
            return
    raise AssertionError(f"{most} tabs lead to nothing called {wanted}")


def into_the_page(page: Any) -> None:
    """Skip the navigation, as the first Tab of every page offers."""
    tab_to(page, "^Skip to content$", 1)
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert focused(page)["inside"]


def test_the_main_job(page: Any) -> None:
    page.set_default_timeout(60_000)
    tab_to(page, "^Sessions$")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sessions/**")
    into_the_page(page)
    tab_to(page, f"^{SESSION}")
    page.keyboard.press("Enter")
    page.locator("[role=grid] [role=row]").first.wait_for()
    page.keyboard.press("Home")
    assert_shows_step(page, 1)
    page.keyboard.type("129")
    page.keyboard.press("Enter")
    assert_shows_step(page, 129)
    page.keyboard.press("Escape")
    tab_to(page, "^open compaction$")
    page.keyboard.press("Enter")
    page.wait_for_url("**/revisions/recorded/1/")
    into_the_page(page)
    tab_to(page, r"^Why\?$")
    page.keyboard.press("Enter")
    page.wait_for_url("**/why/**")
    tab_to(page, "^Skip to content$", 1)
    page.go_back()
    page.wait_for_url("**/revisions/recorded/1/**")
    page.go_back()  # before the skip within the page
    page.go_back()
    page.wait_for_url("**/steps/129/**")


def test_the_palette_opens_goes_and_closes(page: Any) -> None:
    tab_to(page, "^Sessions$")
    page.keyboard.press("Control+k")
    page.get_by_role("dialog", name="Commands").wait_for()
    assert focused(page)["text"].startswith("Command")
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    assert focused(page)["text"] == "Sessions"
    page.keyboard.press("Control+k")
    page.keyboard.type("lab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/lab/")


VALUE = "document.activeElement.value"
"""Of the slider that has the focus."""


def test_a_slider_of_the_lab(page: Any) -> None:
    page.set_default_timeout(60_000)
    page.goto("/lab/")
    simulated(page)
    into_the_page(page)
    tab_to(page, "^Offload a result after, slider$")
    before = page.evaluate(VALUE)
    page.keyboard.press("ArrowRight")
    page.locator(".setting.changed").wait_for()
    assert page.evaluate(VALUE) != before
    page.keyboard.press("Backspace")
    page.locator(".setting.changed").wait_for(state="detached")
    assert page.evaluate(VALUE) == before
    page.keyboard.press("Tab")
    focused(page)
