"""A replay in a browser: its step, its rows, and whether it follows."""

from __future__ import annotations

from typing import Any

from tests.browser.agents import Agent

POLICY = {"policy": "offload-first", "window": 200_000}


def token_of(page: Any) -> str:
    """A new key, made on its page."""
    page.goto("/settings/keys/")
    page.get_by_role("button", name="Create key").click()
    return str(page.locator("#token").inner_text())


def assert_shows_step(page: Any, step: int) -> None:
    """Wait until it does; the time limit is the failure."""
    page.wait_for_function(
        "step => document.querySelector('.goto input')?.value === String(step)", arg=step
    )


def line(page: Any, text: str) -> Any:
    """The row of the context that begins with a text."""
    return page.locator("[role=row] .line", has_text=text).first


def open_replay(page: Any, agent: Agent) -> None:
    page.goto(f"/sessions/{agent.id}/")
    page.locator("[role=slider]").wait_for()
