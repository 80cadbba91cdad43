"""Live lists, and pages that come back after a loss."""

from __future__ import annotations

import re
import urllib.error
from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.agents import Agent
from tests.browser.replays import POLICY, assert_shows_step, open_replay, token_of
from tests.browser.test_accessibility import axe, faults
from tests.conftest import Server, wait_until

__all__ = ["axe"]


@pytest.fixture(scope="module")
def served(own_server: Server) -> Server:
    """Its pages show every team of a person."""
    return own_server


def test_the_live_list_has_the_fullest_first_and_keeps_up(
    page: Any, token: str, served: Server, axe: str
) -> None:
    small = Agent(served.address, token, "small", title="A small one", window=200_000)
    full = Agent(served.address, token, "full", title="A full one", window=20_000)
    for agent in (small, full):
        agent.says("Go.")
        agent.step(200)
    page.goto("/live/")
    names = page.locator("table.live [data-open]")
    names.first.wait_for()
    listed = [name for name in names.all_inner_texts() if name in ("A small one", "A full one")]
    assert listed == ["A full one", "A small one"]
    assert not faults(page, axe, "live list")
    steps = page.locator("tr", has_text="A small one").locator("td").nth(3)
    assert steps.inner_text() == "1"
    small.step()
    page.locator("tr", has_text="A small one").locator("td", has_text=re.compile("^2$")).wait_for()
    full.send("", {"outcome": "succeeded"}, "PUT")
    page.locator("tr", has_text="A full one").wait_for(state="detached")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.locator("[role=slider]").wait_for()


def test_a_page_is_right_again_after_the_server_was_away(
    browser: Any, server_with: Callable[..., Server]
) -> None:
    """Without the page fixture: a lost connection is an error in the console."""
    first = server_with()
    page = browser.new_context(base_url=first.address).new_page()
    page.set_default_timeout(30_000)
    page.goto(first.login)
    token = token_of(page)
    agent = Agent(first.address, token, "patient", **POLICY)
    agent.says("Wait for me.")
    agent.step()
    open_replay(page, agent)
    assert first.stop() == 0, first.log
    page.locator("[data-live-pill][data-state=waiting]").wait_for()
    server_with(PORT=str(first.port))
    agent.step()
    assert_shows_step(page, 3)
    page.locator("[data-live-pill][data-state=live]").wait_for()
    agent.step()
    assert_shows_step(page, 4)
    page.context.close()


@pytest.mark.fault("J5")
def test_a_socket_that_died_in_silence_is_noticed(
    browser: Any, server_with: Callable[..., Server]
) -> None:
    """Hints go nowhere, and no close says so: the page feels its own pulse."""
    server = server_with()
    page = browser.new_context(base_url=server.address).new_page()
    page.set_default_timeout(30_000)
    mute = {"on": False}

    def pass_on(route: Any) -> None:
        line = route.connect_to_server()
        route.on_message(lambda said: None if mute["on"] else line.send(said))
        line.on_message(lambda said: None if mute["on"] else route.send(said))

    page.route_web_socket(re.compile("/ws/live/"), pass_on)
    page.goto(server.login)
    agent = Agent(server.address, token_of(page), "unheard", **POLICY)
    agent.says("Can you hear me?")
    agent.step()
    open_replay(page, agent)
    page.locator("[data-live-pill][data-state=live]").wait_for()
    mute["on"] = True
    agent.step()
    page.locator("[data-live-pill][data-state=waiting]").wait_for()
    mute["on"] = False
    assert_shows_step(page, 3)
    page.context.close()


def test_a_key_is_shown_once_and_revoked_at_once(
    page: Any, token: str, served: Server, axe: str
) -> None:
    assert not faults(page, axe, "a new key")
    agent = Agent(served.address, token, "keyed")
    prefix = token[4:12]
    scripts: list[str] = []
    page.on("request", lambda request: scripts.append(request.url))
    page.goto("/settings/keys/", wait_until="networkidle")
    assert not [url for url in scripts if "fragments" in url]  # nothing on this page keeps up
    assert token not in page.content()
    row = page.get_by_role("row", name=re.compile(prefix))
    used = page.locator("th", has_text="Last used").first.evaluate("cell => cell.cellIndex")
    assert row.locator("th, td").nth(used).inner_text() != "never"
    row.get_by_role("button", name="Revoke").click()
    page.locator("details", has_text="Ended").wait_for()
    with pytest.raises(urllib.error.HTTPError, match="401"):
        agent.says("Still there?")


def test_rows_stay_in_place_while_pointed_at(page: Any, token: str, served: Server) -> None:
    first, second = (
        Agent(served.address, token, name.lower(), title=name, window=40_000)
        for name in ("Fuller", "Emptier")
    )
    for agent, lines in ((first, 400), (second, 40)):
        agent.says("Go.")
        agent.step(lines)
    page.goto("/live/")
    page.locator("table.live [data-open]").first.wait_for()

    def order() -> list[str]:
        names = page.locator("table.live [data-open]").all_inner_texts()
        return [name for name in names if name in ("Fuller", "Emptier")]

    def wait_for_step(name: str, step: int) -> None:
        cell = page.locator("tr", has_text=name).locator("td").nth(3)
        cell.filter(has_text=re.compile(f"^{step}$")).wait_for()

    assert order() == ["Fuller", "Emptier"]
    page.locator("tr", has_text="Emptier").hover()
    second.step(800)
    wait_for_step("Emptier", 2)
    assert order() == ["Fuller", "Emptier"]
    page.mouse.move(0, 0)
    first.step(1)
    wait_for_step("Fuller", 2)
    assert order() == ["Emptier", "Fuller"]


def test_the_list_of_sessions_offers_what_is_new(page: Any, token: str, served: Server) -> None:
    Agent(served.address, token, "there-already").says("Be listed before.")
    page.goto("/sessions/")
    page.locator("[data-live-pill][data-state=live]").wait_for()
    page.get_by_role("searchbox").fill("not sent yet")
    offer = page.get_by_role("button", name="The list has changed")
    Agent(served.address, token, "offered").says("Show me only when asked.")
    offer.wait_for()
    assert page.get_by_role("link", name="Show me only when asked.").count() == 0
    offer.click()
    page.get_by_role("link", name="Show me only when asked.").wait_for()

    def all_shown() -> bool:
        """What is done in the background after an append is offered too."""
        page.evaluate("document.querySelector('[data-offer]:not([hidden])')?.click()")
        return not offer.is_visible()

    wait_until(all_shown)
    assert page.get_by_role("searchbox").input_value() == "not sent yet"
