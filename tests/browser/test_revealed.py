"""A message is revealed in a replay that shows content masked."""

from __future__ import annotations

from typing import Any

from tests.browser.agents import Agent
from tests.browser.replays import line, open_replay
from tests.browser.test_accessibility import axe, faults
from tests.browser.test_by_keyboard import tab_to
from tests.conftest import Server

__all__ = ["axe"]

KEY = "sk-ant-api03-" + "Zq8R" * 20


def test_a_message_is_revealed_until_the_page_is_loaded_again(
    page: Any, served: Server, token: str, axe: str
) -> None:
    agent = Agent(served.address, token, "masked")
    agent.says(f"Ask with {KEY}")
    agent.step()
    page.goto("/settings/masking/")
    page.get_by_role("button", name="Show content masked").click()
    page.get_by_text("Content is shown masked from now on.").wait_for()
    assert faults(page, axe, "settings") == []
    open_replay(page, agent)
    page.get_by_text("You can reveal one message at a time.").wait_for()
    line(page, "Ask with").click()
    content = page.locator(".message .content")
    content.filter(has_text="[API_KEY_").wait_for()
    assert KEY not in page.content()
    assert faults(page, axe, "masked") == []
    tab_to(page, "^Reveal$")
    page.keyboard.press("Enter")
    content.filter(has_text=KEY).wait_for()
    assert faults(page, axe, "revealed") == []
    assert page.get_by_role("button", name="Reveal").count() == 0
    page.reload()
    content.filter(has_text="[API_KEY_").wait_for()
    assert KEY not in page.content()
    page.goto("/settings/audit/")
    assert "content.revealed" in page.locator("main").inner_text()
    page.goto("/settings/masking/")
    page.get_by_role("button", name="Show as stored").click()
    page.get_by_text("Content is shown as stored from now on.").wait_for()
