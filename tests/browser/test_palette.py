"""The command palette finds sessions by title and by id, and pages by what they are about."""

from __future__ import annotations

import re
from typing import Any

from tests.browser.agents import Agent
from tests.conftest import Server


def found(page: Any, typed: str) -> Any:
    """The rows of a new palette for what was typed."""
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    page.keyboard.press("Control+k")
    page.keyboard.type(typed)
    return page.get_by_role("dialog", name="Commands").get_by_role("option")


def test_it_finds_sessions_and_pages(page: Any, served: Server, token: str) -> None:
    running = Agent(served.address, token, "zebra-nightly-1")
    running.step()
    for name in ("twin-1", "twin-2"):
        Agent(served.address, token, name, title="Zebra stripes", outcome="succeeded")

    rows = found(page, "zebra")
    rows.nth(3).wait_for()
    assert rows.all_inner_texts() == [
        "zebra-nightly-1\nrunning · tester",
        "Zebra stripes\ntester · twin-2",
        "Zebra stripes\ntester · twin-1",
        "Search every session for “zebra”",
    ]
    assert rows.first.get_attribute("aria-selected") == "true"
    field = page.get_by_role("combobox", name="Command")
    assert field.get_attribute("aria-activedescendant") == rows.first.get_attribute("id")

    found(page, "nightly-1").filter(has_text="running").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/sessions/{running.id}/**")

    assert re.match("Go to Tools", found(page, "unused tools").first.inner_text())
    page.keyboard.press("Enter")
    page.wait_for_url("**/tools/**")
