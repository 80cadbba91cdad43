"""From a log on disk to a replay in the browser: the walk that a new user makes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.browser.logs import claude_code

STEPS, COMPACTION = 40, 30


@pytest.fixture(params=["light", "dark"])
def theme(request: pytest.FixtureRequest, page: Any) -> str:
    page.emulate_media(color_scheme=request.param)
    return str(request.param)


@pytest.fixture
def replay(page: Any, theme: str, tmp_path: Path) -> Any:
    """The replay of a session that was uploaded, at its last step."""
    page.set_default_timeout(60_000)
    log = claude_code(tmp_path / f"walk-{theme}.jsonl", STEPS, COMPACTION)
    page.goto("/imports/")
    page.set_input_files("input[type=file]", str(log))
    page.get_by_role("button", name="Import").click()
    page.get_by_role("link", name=re.compile("Find out where")).click()
    page.locator("[role=slider]").wait_for()
    return page


def number(page: Any) -> int:
    """The step that the page shows."""
    return int(page.get_by_label("Go to step").input_value())


def rows(page: Any) -> int:
    """How many entries stand in the context, by the table's own count."""
    return int(page.locator("[role=grid]").get_attribute("aria-rowcount"))


def test_a_log_becomes_a_replay_that_the_keyboard_walks(replay: Any) -> None:
    assert number(replay) == STEPS
    replay.keyboard.press("Home")
    assert number(replay) == 1
    first = rows(replay)
    replay.keyboard.press("ArrowRight")
    assert (number(replay), rows(replay)) == (2, first + 2)
    replay.wait_for_url(re.compile("/steps/2/"))
    replay.keyboard.press("Shift+ArrowRight")
    assert number(replay) == COMPACTION
    # The compaction left the summary alone standing, where 59 blocks stood a step before.
    after = rows(replay)
    replay.keyboard.press("ArrowLeft")
    assert rows(replay) > 50 > 5 > after
    replay.keyboard.press("j")
    replay.get_by_text("why <b>it</b> is ignored.").first.wait_for()


def test_the_compaction_is_explained_and_compared(replay: Any) -> None:
    replay.keyboard.press("Home")
    replay.keyboard.press("Shift+ArrowRight")
    replay.get_by_role("link", name=re.compile("open compaction")).click()
    replay.get_by_role("heading", name=re.compile("Compaction")).wait_for()
    assert "the port is 8765" in replay.content()
    replay.get_by_role("link", name=re.compile("^Diff")).click()
    replay.get_by_text(re.compile(r"\d+ blocks removed")).first.wait_for()
    replay.get_by_role("heading", name="Find out where the port is set").wait_for()
    replay.get_by_text(re.compile(r"^\s*reported \S+ → \S+\s*$")).wait_for()
    # What matters is open: what was taken out, by name, beside the summary in its place.
    replay.get_by_role("heading", name=re.compile("^− Taken out")).wait_for()
    replay.locator(".diff-group button", has_text="why <b>it</b> is ignored.").wait_for()
    replay.locator(".summary-diff .text-diff", has_text="the port is 8765").wait_for()
    replay.keyboard.press("n")
    assert replay.locator(".diff-row.here .diff-head").count() == 1
    replay.get_by_role("link", name=re.compile("^r1")).click()
    replay.get_by_role("heading", name=re.compile("Compaction")).wait_for()


def test_a_preset_is_simulated_and_shown_as_simulated(replay: Any) -> None:
    replay.locator(".run-menu summary").click()
    replay.get_by_role("button", name=re.compile("offload-first")).click()
    answer = replay.get_by_role("heading", name="What offload-first@1 comes to")
    answer.wait_for(timeout=60_000)
    assert replay.locator(".numbers .badge.simulated").count() == 1
    replay.keyboard.press("Shift+ArrowLeft")
    replay.get_by_text("[offloaded:").first.wait_for()
    replay.reload()
    answer.wait_for()
    replay.goto(replay.url.split("?")[0])
    replay.locator("[role=slider]").wait_for()
    assert replay.locator(".numbers .badge.simulated").count() == 0
