"""Tuning on the demo sessions: thresholds by keyboard, a run, its results, and where it hurts."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.browser.test_accessibility import axe, faults, served

__all__ = ["axe", "served"]

CHOSEN = (
    "Seven passengers were charged twice",
    "Write a reference of all modules",
    "Why does the replay page take four seconds?",
    "Children under four go free",
    "Wrong arrival on the night the clocks change",
)


@pytest.fixture
def lab(page: Any) -> Any:
    """The lab with its first estimate."""
    page.set_default_timeout(30_000)
    page.goto("/lab/?draft=offload-first")
    page.locator(".estimates").wait_for()
    return page


def sent(page: Any) -> str:
    """The estimate of tokens that the draft sends."""
    return str(page.locator(".estimates tbody tr").first.locator("td").first.inner_text())


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
    page.get_by_role("button", name="By hand").click()
    page.get_by_role("button", name="Choose none").click()
    for title in CHOSEN:
        page.get_by_label("Search the sessions to choose from").fill(title)
        page.locator(".pick-list").get_by_label(title).first.check()
    is_now(page, "[role=status]", "^5 sessions, ")


def test_a_draft_is_estimated_run_and_followed_to_where_it_hurts(lab: Any) -> None:
    choose(lab)
    before = sent(lab)
    press(lab, "Keep results of the newest, slider", "ArrowRight", 5)
    lab.wait_for_function(
        "old => document.querySelector('.estimates tbody td').innerText !== old", arg=before
    )
    press(lab, "Compact when the window is, slider", "ArrowLeft", 50)
    assert lab.get_by_role("spinbutton", name="Compact when the window is").input_value() == "0.2"
    is_now(lab, ".knob-remark", "Summarizes while most of the window is free")
    lab.wait_for_url(re.compile("trigger%3D0.2"))
    lab.reload()
    is_now(lab, "[role=status]", "^5 sessions, ")
    assert lab.get_by_role("spinbutton", name="Compact when the window is").input_value() == "0.2"

    lab.get_by_label("Save the draft as a version of").fill("leaner")
    lab.get_by_label("Note").fill("A lean context")
    lab.keyboard.press("Control+Enter")
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
    assert re.search(r"[+−][\d.]+ % cost, (same|[+−][\d.]+ points) recall", answer)
    details = lab.locator(".simulation-head").inner_text()
    assert re.search(r"\$[\d.]+ instead of \$[\d.]+ over 5 sessions", details)
    assert re.search(r"Against the recording [+−][\d.]+ % cost, ", details)
    assert re.search(r"\d of 5 sessions get cheaper.* cost of the median session ", details)
    offered = lab.get_by_role("link", name=re.compile("^Propose leaner@1"))
    assert offered.count() == 1
    assert ("primary" in offered.get_attribute("class")) == ("Don't propose." not in answer)

    address = lab.url
    lab.reload()
    lab.locator(".lab-versions").wait_for()
    assert lab.locator(".lab-versions").inner_text() == table
    assert lab.locator(".event-verdict .answer").inner_text() == answer

    lab.get_by_role("button", name=re.compile(r"^Replay at S\d+")).first.click()
    lab.wait_for_url(re.compile(r"/steps/\d+/\?run="))
    lab.get_by_role("button", name=re.compile("^leaner")).wait_for()

    lab.goto(address)
    lab.get_by_role("link", name="Change thresholds").click()
    is_now(lab, "[role=status]", "^5 sessions, ")
    assert lab.locator("#lab-from").input_value() == "leaner@1"
    assert lab.get_by_role("spinbutton", name="Compact when the window is").input_value() == "0.2"


def test_what_cannot_be_is_said_beside_its_cause(lab: Any) -> None:
    age = lab.get_by_role("spinbutton", name="Keep results of the newest")
    run = lab.get_by_role("button", name=re.compile("^Run on"))
    age.fill("10001")
    is_now(lab, ".knob .problem-text", "whole number from 0 to 10000")
    age.fill("7")
    assert lab.locator(".knob .problem-text").count() == 0
    lab.get_by_label("Save the draft as a version of").fill("No Spaces")
    assert run.is_disabled()
    lab.get_by_role("button", name="Reset").click()
    assert run.is_enabled()
    lab.get_by_role("button", name="Sample").click()
    lab.get_by_label("Steps, at least").fill("100000")
    lab.keyboard.press("Tab")
    lab.get_by_text("No session with a model call matches").wait_for()


def test_a_chart_is_read_by_keys_and_as_a_table(lab: Any) -> None:
    chart = lab.locator("figure.chart").first
    chart.locator("canvas").first.wait_for(state="attached")
    slider = chart.get_by_role("slider")
    slider.focus()
    lab.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "S1"
    # The active version is balanced, which sizes cannot tell.
    heard = chart.locator("[aria-live]").inner_text()
    assert re.match(r"draft [\d.k]+, recorded [\d.k]+$", heard)
    lab.keyboard.press("v")
    chart.get_by_text("recorded", exact=True).wait_for(state="detached")
    lab.keyboard.press("v")
    chart.get_by_role("button", name="View as table").click()
    last = chart.locator("tbody tr").last.inner_text().split()
    chart.get_by_role("button", name="View as chart").click()
    slider.focus()
    lab.keyboard.press("End")
    assert slider.get_attribute("aria-valuetext") == last[0]


def test_the_lab_and_a_simulation_without_barriers(lab: Any, axe: str) -> None:
    lab.locator(".lab-knobs details summary").first.click()
    lab.wait_for_load_state("networkidle")
    wrong = faults(lab, axe, "the lab")
    lab.get_by_role("button", name="By hand").click()
    lab.locator("figure.chart").first.get_by_role("button", name="View as table").click()
    wrong += faults(lab, axe, "the lab, by hand, the chart as a table")
    lab.locator(".recent-simulations [data-open]").first.click()
    lab.locator(".lab-versions").wait_for()
    wrong += faults(lab, axe, "a simulation")
    lab.set_viewport_size({"width": 390, "height": 4000})  # nothing under the bars
    wrong += faults(lab, axe, "a simulation, small")
    assert not wrong, "\n".join(wrong)
