"""Tuning on the demo sessions: settings by keyboard, exact figures, a run, and where it hurts."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.test_accessibility import axe, faults, served

__all__ = ["axe", "served"]

CHOSEN = (
    "Seven passengers were charged twice",
    "Move twenty services to the new cluster",
    "Why does the replay page take four seconds?",
    "Children under four go free",
    "Wrong arrival on the night the clocks change",
)


@pytest.fixture
def lab(page: Any) -> Any:
    """The lab with the figures of the active policy."""
    page.set_default_timeout(30_000)
    page.goto("/lab/")
    simulated(page)
    return page


def simulated(page: Any) -> None:
    """Waits until the draft is simulated on all sessions."""
    page.locator(".lab-state", has_text="Exact simulation").wait_for()
    page.locator(".draft-table table:not(.stale)").wait_for()


def answer_of(page: Any) -> str:
    return str(page.locator(".lab-verdict .answer").inner_text())


def draft_cost(page: Any) -> str:
    """The draft's cost in the table."""
    return str(page.locator(".draft-table tbody tr").first.locator("td").last.inner_text())


def press(page: Any, slider: str, key: str, times: int) -> None:
    """Moves a slider as a keyboard does."""
    page.get_by_role("slider", name=slider).focus()
    for _ in range(times):
        page.keyboard.press(key)


def is_now(page: Any, selector: str, text: str) -> None:
    """Waits until the first of these reads so."""
    page.locator(selector, has_text=re.compile(text)).first.wait_for()


def choose(page: Any) -> None:
    """Chooses five sessions by hand."""
    page.locator(".lab-choice > summary").click()
    page.get_by_role("button", name="By hand").click()
    page.get_by_role("button", name="Choose none").click()
    for title in CHOSEN:
        page.get_by_label("Search the sessions to choose from").fill(title)
        page.locator(".pick-list").get_by_label(title).first.check()
    is_now(page, "[role=status]", "^5 sessions, ")
    page.locator(".lab-choice > summary").click()
    simulated(page)


def test_a_setting_moves_every_figure_and_is_undone(lab: Any) -> None:
    assert answer_of(lab).startswith("Same as balanced@1, the active policy.")
    assert lab.get_by_role("button", name=re.compile("^Propose")).count() == 0
    before = draft_cost(lab)
    slider = lab.get_by_role("slider", name="Offload a result after, slider")
    begun = slider.input_value()
    press(lab, "Offload a result after, slider", "Shift+ArrowRight", 1)
    assert int(slider.input_value()) == int(begun) + 10
    is_now(lab, ".setting.changed .was", "^Active: 2 steps")
    lab.wait_for_function(
        "old => document.querySelector('.draft-table td:last-child').innerText !== old", arg=before
    )
    simulated(lab)
    moved = draft_cost(lab)
    answer = answer_of(lab)
    assert re.search(r"[+−][\d.]+ % cost|same cost", answer)
    assert lab.locator(".lab-verdict [role=status]").inner_text() == answer
    # The change alone is the whole draft, so that its effect is the difference.
    is_now(lab, ".setting.changed .effect", r"^[+−]\$|^same cost")
    address = lab.url
    assert "%3D12" in address
    lab.reload()
    simulated(lab)
    assert (draft_cost(lab), answer_of(lab)) == (moved, answer)

    slider.focus()
    lab.keyboard.press("Backspace")
    expect(slider).to_have_value(begun)
    lab.keyboard.press("z")
    expect(slider).to_have_value(str(int(begun) + 10))
    slider.dblclick()
    expect(slider).to_have_value(begun)
    simulated(lab)
    is_now(lab, ".lab-verdict .answer", r"^\s*Same as balanced@1")


def test_the_picture_holds_every_policy_and_sessions_open_in_replay(lab: Any) -> None:
    picture = lab.locator(".frontier ul")
    for role in ("Draft", "Active balanced@1", "Recorded", "Oracle", "sliding-window"):
        is_now(lab, ".frontier li", rf"^{role}: \$[\d.,]+, [\d.]+ % recall$")
    assert picture.locator("li").count() >= 7
    press(lab, "Shorten results larger than, slider", "Home", 1)
    simulated(lab)
    link = lab.locator(".worst a").first
    link.wait_for()
    bars = lab.locator(".bars.of-cost > span").count()
    assert f"of {bars} cost less" in lab.locator(".by-session header").inner_text()
    link.click()
    lab.wait_for_url(re.compile(r"/sessions/[0-9a-f-]{36}/"))


def test_a_draft_is_kept_and_followed_to_where_it_hurts(lab: Any) -> None:
    lab.goto("/lab/?draft=offload-first")
    simulated(lab)
    choose(lab)
    press(lab, "Compact when the window is, slider", "ArrowLeft", 50)
    compacts = lab.get_by_role("spinbutton", name="Compact when the window is")
    assert compacts.input_value() == "20"
    is_now(lab, ".remark", "Summarizes while most of the window is free")
    lab.wait_for_url(re.compile("trigger%3D0.2"))
    simulated(lab)

    lab.locator(".lab-save > summary").first.click()
    lab.get_by_label("Policy", exact=True).fill("leaner")
    lab.get_by_label("Note").fill("A lean context")
    lab.get_by_role("button", name="Save and run on 5 sessions").click()
    lab.wait_for_url(re.compile(r"/lab/[0-9a-f-]{36}/$"))
    # Results come into the page that stands, without a reload.
    lab.evaluate("window.stayed = true")
    lab.locator(".lab-versions").wait_for()
    lab.locator(".simulation-state .badge.done").wait_for()
    assert lab.evaluate("window.stayed") is True
    table = lab.locator(".lab-versions").inner_text()
    assert "leaner@1" in table
    assert "5 sessions" in table
    answer = lab.locator(".event-verdict .answer").inner_text()
    assert re.search(r"[+−][\d.]+ % cost.*, (same|[+−][\d.]+ points) recall", answer)
    details = lab.locator(".simulation-head").inner_text()
    assert re.search(r"\$[\d.]+ instead of \$[\d.]+ over 5 sessions", details)
    assert re.search(r"Against the recording [+−][\d.]+ % cost", details)
    assert re.search(
        r"\d of 5 sessions get cheaper.* cost including reading back of the median session ",
        details,
    )
    offered = lab.get_by_role("link", name=re.compile("^Propose leaner@1"))
    assert offered.count() == 1
    assert ("primary" in offered.get_attribute("class")) == answer.startswith("Better")

    address = lab.url
    lab.reload()
    lab.locator(".lab-versions").wait_for()
    assert lab.locator(".lab-versions").inner_text() == table
    assert lab.locator(".event-verdict .answer").inner_text() == answer

    lab.get_by_role("button", name=re.compile(r"^Replay at step \d+")).first.click()
    lab.wait_for_url(re.compile(r"/steps/\d+/\?run="))
    lab.get_by_text("leaner").first.wait_for()

    lab.goto(address)
    lab.get_by_role("link", name="Change settings").click()
    is_now(lab, ".lab-choice > summary", "5: 5 chosen by hand")
    assert lab.locator(".lab-head select").first.input_value() == "leaner@1"
    assert compacts.input_value() == "20"


def test_what_cannot_be_is_said_beside_its_cause(lab: Any) -> None:
    after = lab.get_by_role("spinbutton", name="Offload a result after")
    run = lab.get_by_role("button", name=re.compile(r"^(Save and run|Run) on"))
    after.fill("1000001")
    is_now(lab, ".setting .problem-text", "whole number from 0 to")
    after.fill("7")
    assert lab.locator(".setting .problem-text").count() == 0
    simulated(lab)
    lab.locator(".lab-save > summary").first.click()
    lab.get_by_label("Policy", exact=True).fill("No Spaces")
    assert run.is_disabled()
    lab.locator(".lab-head").get_by_role("button", name="Reset").click()
    assert run.is_enabled()
    lab.locator(".lab-choice > summary").click()
    lab.get_by_role("button", name="Sample").click()
    lab.get_by_label("Steps, at least").fill("100000")
    lab.keyboard.press("Tab")
    lab.get_by_text("No session with a model call matches").wait_for()
    assert answer_of(lab) == "No sessions to simulate."


def test_the_lab_and_a_simulation_without_barriers(lab: Any, axe: str) -> None:
    press(lab, "Offload a result after, slider", "ArrowRight", 3)
    lab.locator(".settings details summary").first.click()
    simulated(lab)
    wrong = faults(lab, axe, "the lab")
    lab.locator(".lab-choice > summary").click()
    lab.get_by_role("button", name="By hand").click()
    simulated(lab)
    wrong += faults(lab, axe, "the lab, by hand")
    lab.locator(".recent-simulations [data-open]").first.click()
    lab.locator(".lab-versions").wait_for()
    wrong += faults(lab, axe, "a simulation")
    lab.set_viewport_size({"width": 390, "height": 4000})  # nothing under the bars
    wrong += faults(lab, axe, "a simulation, small")
    assert not wrong, "\n".join(wrong)


def test_versions_that_are_not_compared_come_on_request(lab: Any) -> None:
    lab.locator(".recent-simulations [data-open]").filter(has_not_text="leaner").first.click()
    columns = lab.locator(".lab-versions thead th")
    columns.first.wait_for()
    few = columns.count()
    more = lab.get_by_role("button", name=re.compile("^More columns"))
    others = int(re.sub(r"\D", "", more.inner_text()))
    more.click()
    assert (columns.count(), others > 0) == (few + others, True)
    lab.get_by_role("button", name="Fewer columns").click()
    assert columns.count() == few
