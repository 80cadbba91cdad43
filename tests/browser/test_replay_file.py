"""A replay in a file, opened from the disk: no server, no request, and a log is text only."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.agents import Agent
from tests.browser.replays import assert_shows_step, line
from tests.browser.test_accessibility import axe, faults
from tests.conftest import Server

__all__ = ["axe"]  # a fixture

HOSTILE = (
    "<script>window.broken = 1</script><svg onload='window.broken = 1'><img src=x "
    "onerror='window.broken = 1'></script>\x1b[31mred\u2028\u202e end-of-hostile"
)
SECRET = "sk-ant-api03-" + "Zq8R" * 20


@pytest.fixture
def opened(browser: Any, served: Server, token: str, tmp_path: Path) -> Iterator[Any]:
    """A page with the file of a session; the server is not asked, and nothing is said or wrong."""
    agent = Agent(served.address, token, "hostile")
    agent.says(HOSTILE)
    for number in range(1, 6):
        agent.step()
        agent.says(f"Ask {number} {SECRET} {HOSTILE}")
    address = f"{served.address}/api/v1/sessions/{agent.id}/export?format=html"
    asked = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
    file = tmp_path / "replay.html"
    file.write_bytes(urllib.request.urlopen(asked).read())
    assert not any((served.data_dir / "exports").iterdir())
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda said: wrong.append(said.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda one: wrong.append(one.url) if one.url != file.as_uri() else None)
    page.goto(file.as_uri())
    yield page
    context.close()
    assert not wrong, wrong


@pytest.mark.fault("G1", "G3")
def test_it_scrubs_reads_and_finds_from_the_disk(opened: Any, axe: str) -> None:
    line(opened, "Ask 4").wait_for()
    for _ in range(3):
        opened.keyboard.press("ArrowLeft")
    step = opened.locator(".goto input").input_value()
    opened.wait_for_function("step => location.hash.includes(`#steps/${step}/`)", arg=step)
    opened.reload()  # its address opens it where it was
    assert_shows_step(opened, int(step))
    line(opened, "<script>").click()
    opened.locator(".message .content", has_text="end-of-hostile").wait_for()
    assert opened.evaluate("window.broken === undefined && !document.querySelector('.replay img')")
    opened.get_by_role("button", name="JSON").click()
    opened.locator(".message .content", has_text='"type": "text"').wait_for()
    opened.locator("[data-filter]").fill("end-of-hostile ask")
    line(opened, "Ask 1").wait_for()
    opened.wait_for_function("!document.querySelector('.context').innerText.includes('Read')")
    opened.locator("[data-filter]").fill("")
    for view in ("Transcript", "Treemap", "Table"):
        opened.get_by_role("button", name=view, exact=True).first.click()
    line(opened, "[API_KEY_1]").wait_for()
    assert SECRET not in opened.content()
    assert faults(opened, axe, "file") == []
    opened.set_viewport_size({"width": 390, "height": 844})
    assert faults(opened, axe, "file, narrow") == []
    assert opened.evaluate("document.documentElement.scrollWidth") <= 390
