"""The dashboard in a browser: it follows, and takes nothing out of one's hands."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.agents import Agent
from tests.browser.replays import token_of
from tests.conftest import Server

STEPS = "[aria-labelledby=tile-steps]"


@pytest.fixture(scope="module")
def served(own_server: Server) -> Server:
    """Its pages show every team of a person."""
    return own_server


def test_it_follows_and_leaves_alone_what_is_in_use(page: Any, served: Server) -> None:
    page.set_default_timeout(20_000)
    agent = Agent(served.address, token_of(page), "watched", policy="offload-first", window=200_000)
    agent.says("Read the files.")
    agent.step()
    page.goto("/")
    assert page.url.endswith("/dashboard/")
    page.wait_for_function(
        "() => document.querySelector('[data-live-pill]').dataset.state === 'live'"
    )
    # What the first call reported is worked out by a worker, and changes the charts once.
    page.wait_for_function(
        "() => !document.querySelector('[aria-labelledby=tile-cache]')"
        ".innerText.includes('unknown')"
    )
    page.locator("#more-figures > summary").click()
    page.locator("[data-props=chart-compactions-props] canvas").last.wait_for()
    page.locator(".dates > summary").click()
    page.locator("#day-from").fill("2026-01-31")
    page.evaluate("""() => {
      window.kept = document.querySelector('[data-props=chart-compactions-props] canvas');
      window.drawn = document.querySelector('[data-props=chart-spend-props] canvas');
      document.querySelector('#more-figures > summary').focus();
    }""")
    assert page.locator(f"{STEPS} .also").last.inner_text().split()[-1] == "1"
    agent.step()
    agent.step()
    page.wait_for_function(
        "row => document.querySelector(`${row} .also:last-of-type`).innerText.trim().endsWith('3')",
        arg=STEPS,
    )
    assert page.locator("#more-figures").get_attribute("open") is not None
    assert page.evaluate("document.activeElement.closest('details')?.id") == "more-figures"
    assert page.locator("#day-from").input_value() == "2026-01-31"
    # The spend was drawn again; unchanged parts were not.
    page.wait_for_function(
        "() => window.drawn !== document.querySelector('[data-props=chart-spend-props] canvas')"
    )
    assert page.evaluate(
        "window.kept === document.querySelector('[data-props=chart-compactions-props] canvas')"
    )


def test_keys_lead_to_it_and_its_links_to_the_sessions(page: Any, served: Server) -> None:
    page.set_default_timeout(20_000)
    agent = Agent(served.address, token_of(page), "linked")
    agent.says("Read one file.")
    agent.step()
    page.goto("/sessions/")
    page.keyboard.press("g")
    page.keyboard.press("d")
    page.wait_for_url("**/dashboard/")
    page.get_by_role("link", name="30 days").click()
    page.wait_for_url("**/dashboard/?range=30d")
    model = page.locator("#split-model option").nth(1).get_attribute("value")
    page.locator("#split-model").select_option(model)
    page.wait_for_url(f"**/dashboard/?range=30d*model={model}*")
    page.locator("#more-figures > summary").click()
    page.locator("#counted-steps").click()
    page.wait_for_url("**/sessions/?*counted=steps*")
    found = page.get_by_role("link", name="Read one file.")
    found.wait_for()
    assert found.count() == 1
