"""Watching agents that run: the first key and message, following, policies."""

from __future__ import annotations

import re
from typing import Any

from tests.browser.agents import Agent
from tests.browser.replays import POLICY, assert_shows_step, line, open_replay
from tests.browser.test_accessibility import axe, faults
from tests.conftest import Server

__all__ = ["axe"]


def number(page: Any) -> int:
    """The step that the page shows."""
    return int(page.get_by_label("Go to step").input_value())


def follows(page: Any) -> bool:
    """Whether it goes along with the session."""
    return page.locator(".follow").get_attribute("aria-pressed") == "true"


def test_the_first_page_makes_a_key_and_waits_for_the_first_message(page: Any, axe: str) -> None:
    page.set_default_timeout(20_000)
    page.goto("/start/")
    page.get_by_role("button", name="Create key").click()
    page.get_by_text("it is not shown again").wait_for()
    token = page.locator("#made-token").inner_text()
    assert token in page.locator("#rest").inner_text()
    assert token in page.locator("#client").inner_text()
    assert not faults(page, axe, "first run with a key")
    page.wait_for_function(
        "() => document.querySelector('[data-live-pill]').dataset.state === 'live'"
    )
    running = page.context.new_page()
    running.goto("/live/")
    running.get_by_text("No agent is running").wait_for()
    agent = Agent(page.url.split("/start")[0], token, "first", **POLICY)
    agent.says("Find out why <b>it</b> fails.")
    running.locator("tbody tr").wait_for()
    running.close()
    page.get_by_role("link", name=re.compile("^Watch")).click()
    line(page, "why <b>it</b> fails").wait_for()
    assert follows(page)
    agent.step()
    assert_shows_step(page, 2)
    page.locator(".run-menu > summary", has_text="Recorded").wait_for()
    # From the first call with a managed context on, an open page shows these.
    agent.get("/context?format=anthropic")
    agent.step()
    page.locator(".run-menu > summary", has_text="Managed").wait_for()


def test_the_replay_goes_along_until_the_reader_looks_back(
    page: Any, token: str, served: Server, axe: str
) -> None:
    agent = Agent(served.address, token, "followed", **POLICY)
    agent.says("Find out where the port is set.")
    agent.step()
    open_replay(page, agent)
    assert (number(page), follows(page)) == (2, True)
    for _ in range(3):
        agent.step()
    assert_shows_step(page, 5)
    line(page, "part_4.py → ").wait_for()
    page.locator(".news", has_text=re.compile(r"^Next call, step 5 · [\d,]+ tokens")).wait_for()
    assert not faults(page, axe, "live replay")

    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert (number(page), follows(page)) == (3, False)
    page.wait_for_url(re.compile("/steps/3/"))
    agent.step()
    page.locator(".follow", has_text=re.compile(r"\+\d+ new")).wait_for()
    page.locator(".goto", has_text="/ 5").wait_for()
    assert number(page) == 3

    page.keyboard.press("End")
    assert (number(page), follows(page)) == (6, True)
    page.wait_for_url(re.compile(f"/sessions/{agent.id}/$"))
    agent.says("And why is it ignored?")
    line(page, "why is it ignored").wait_for()


def test_only_a_reader_who_scrolls_ends_the_following(
    page: Any, token: str, served: Server
) -> None:
    agent = Agent(served.address, token, "scrolled", **POLICY)
    agent.says("Read all parts.")
    for _ in range(20):
        agent.step()
    open_replay(page, agent)
    grid = page.locator("[role=grid]")
    at_end = "grid => grid.scrollTop > 0 && grid.scrollTop + grid.clientHeight >= grid.scrollHeight"
    page.wait_for_function(f"() => ({at_end})(document.querySelector('[role=grid]'))")
    # As when a context shrinks and grows before the next frame.
    grid.evaluate(
        "grid => new Promise((done) => { grid.onscrollend = done; grid.scrollTop -= 100 })"
    )
    assert follows(page)
    agent.step()
    assert_shows_step(page, 22)
    grid.hover()
    page.mouse.wheel(0, -200)
    page.locator(".follow[aria-pressed=false]").wait_for()
    assert number(page) == 22


def managed(served: Server, token: str, name: str) -> Agent:
    """An agent whose context a policy edits, after 16 steps."""
    agent = Agent(served.address, token, name, policy="offload-first", window=64_000)
    agent.says("Read all parts.")
    for _ in range(16):
        agent.step(120)
        agent.get("/context?format=anthropic")
    return agent


def test_facts_at_risk_stay_while_the_session_moves_on(
    page: Any, token: str, served: Server
) -> None:
    agent = managed(served, token, "at-risk")
    open_replay(page, agent)
    page.get_by_text("Facts at risk").click()
    risk = page.locator("#facts-at-risk", has_text=re.compile("At step 16, simulated: by the "))
    risk.wait_for(timeout=20_000)
    for _ in range(2):
        with page.expect_response(re.compile(r"/forecast/\?listed_at=16$")) as asked:
            agent.step(120)
        asked.value.finished()
    version = agent.get("")["version"]
    page.locator(f"#forecast[data-version='{version}']").wait_for()
    assert risk.is_visible()
    page.get_by_text(re.compile("Listed 2 steps ago; the session is at step 18")).wait_for()
    page.get_by_role("button", name="List again").click()
    page.locator("#facts-at-risk", has_text="At step 18, simulated: by the ").wait_for()
    page.get_by_text("Up to date: the session is at step 18").wait_for()


def compact(page: Any) -> None:
    page.get_by_role("button", name="Compact now").click()
    page.locator(".news", has_text="compaction").wait_for()
    page.locator("[role=row].k-summary").wait_for()
    page.wait_for_function("() => !document.querySelector('[role=row] .skeleton')")


def test_what_a_policy_offloaded_is_read_and_pinned(page: Any, token: str, served: Server) -> None:
    agent = managed(served, token, "pinned")
    open_replay(page, agent)
    page.locator(".budget", has_text="trigger").wait_for()
    page.get_by_label("Filter the rows").fill("is:replaced")
    page.locator("[role=row]", has=page.locator(".replaced")).first.click()
    page.locator(".message .content", has_text="[offloaded:").wait_for()
    page.keyboard.press("p")
    page.get_by_role("button", name=re.compile("^Unpin")).wait_for()
    assert len(agent.get("/pins")["pins"]) == 1
    page.get_by_label("Filter the rows").fill("")
    page.locator("[role=row] .pin").first.wait_for()
    page.locator(".news", has_text="pin +").wait_for()


def test_a_requested_compaction_outlives_a_reload(
    page: Any, token: str, served: Server, axe: str
) -> None:
    agent = managed(served, token, "compacted")
    open_replay(page, agent)
    page.locator("[role=grid]").focus()
    page.keyboard.press("End")
    compact(page)
    assert not faults(page, axe, "after a compaction")
    lines = page.locator("[role=row] .line").all_inner_texts()
    page.reload()
    page.locator("[role=row].k-summary").wait_for()
    page.wait_for_function("() => !document.querySelector('[role=row] .skeleton')")
    assert page.locator("[role=row] .line").all_inner_texts() == lines


def test_a_compaction_is_undone_and_asked_for_again(page: Any, token: str, served: Server) -> None:
    agent = managed(served, token, "undone")
    open_replay(page, agent)
    compact(page)
    page.get_by_role("link", name="open compaction").last.click()
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("heading", name=re.compile("Undo")).wait_for()
    assert agent.get("/revisions")["revisions"][-1]["trigger"] == "undo"

    # Two compactions of one step, alike in all they say: the page stands nevertheless.
    open_replay(page, agent)
    compact(page)
    page.locator(".happened .event.compaction").nth(1).wait_for()
    page.locator(".happened .event.undo").wait_for()
    page.locator(".run-menu > summary").click()
    page.locator(".run-menu").get_by_role("button", name=re.compile("^Recorded")).wait_for()
    page.keyboard.press("Escape")
    page.locator("[data-figure=peak]", has_text="vs recorded").wait_for()
    page.get_by_role("link", name=re.compile("^Diff to recorded")).click()
    page.locator(".page-head .badge.managed").wait_for()
    page.goto("/sessions/?flag=compacted")
    row = page.locator("tr", has=page.locator(f"a[href*='{agent.id}']"))
    row.locator(".events", has_text="◆2").wait_for()
    page.set_viewport_size({"width": 390, "height": 844})
    for name in ("peak", "steps", "cost"):
        box = row.locator(f"td[data-name={name}]").bounding_box()
        assert box is not None and box["x"] + box["width"] <= 390, name

    # Nothing of the replay is wider than a narrow screen, and the bar shows where one is.
    open_replay(page, agent)
    page.get_by_role("heading", name="Budget of the next call").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.goto("/settings/keys/")
    entry = page.locator(".rail [aria-current]").bounding_box()
    assert entry is not None and entry["x"] + entry["width"] <= 390


def test_a_message_that_is_read_stays_while_others_arrive(
    page: Any, token: str, served: Server
) -> None:
    agent = Agent(served.address, token, "read", **POLICY)
    agent.says("Read all parts.")
    for _ in range(30):
        agent.step()
    open_replay(page, agent)
    page.keyboard.press("Home")
    page.keyboard.press("PageDown")
    page.keyboard.press("j")
    page.locator(".message .content").wait_for()
    shown = page.locator(".message .content").inner_text()
    grid = page.locator("[role=grid]")
    at = grid.evaluate("grid => grid.scrollTop")
    agent.step()
    page.locator(".goto", has_text="/ 31").wait_for()
    assert page.locator(".message .content").inner_text() == shown
    assert (number(page), grid.evaluate("grid => grid.scrollTop")) == (11, at)


def test_the_raw_request_is_asked_for_when_it_is_looked_at(
    page: Any, token: str, served: Server, axe: str
) -> None:
    # Only the lines in view are in the page: this policy puts no tool before them.
    agent = Agent(served.address, token, "raw", policy="passthrough")
    agent.says("Say <i>hello</i>.")
    agent.step()
    open_replay(page, agent)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.get_by_role("button", name="Request", exact=True).click()
    page.locator(".raw-request", has_text="Say <i>hello</i>.").wait_for()
    assert any("/context?format=anthropic&at=2" in url for url in asked)
    assert not faults(page, axe, "raw request")
    page.get_by_role("button", name="OpenAI").click()
    page.locator(".raw-request", has_text='"tool_calls"').wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename.endswith("-step-2.openai.json")
    page.keyboard.press("t")
    page.locator("[role=grid]").wait_for()


def test_on_a_narrow_screen_a_menu_has_the_links_of_the_session(
    page: Any, token: str, served: Server
) -> None:
    agent = Agent(served.address, token, "narrow", **POLICY)
    agent.says("Read all parts.")
    agent.step()
    page.set_viewport_size({"width": 390, "height": 844})
    open_replay(page, agent)
    # The budget says why its figure is not that of the context below.
    words = page.locator(".budget .aside").inner_text()
    total = page.locator(".composition tfoot th + td").inner_text().lstrip("≈")
    assert f"The context below ({total}) begins with the last prompt" in words

    tools = page.locator("#views a", has_text="Tools")
    assert not tools.is_visible()
    page.get_by_role("button", name="More about this session").click()
    for link in page.locator("#views a").all():
        box = link.bounding_box()
        assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 390
    tools.click()
    page.wait_for_url(f"**/sessions/{agent.id}/tools/")
