"""Watching agents that run: the first key and message, following, coming back, the live list."""

from __future__ import annotations

import re
import urllib.error
from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.agents import Agent
from tests.browser.test_accessibility import axe, faults
from tests.conftest import Server, wait_until

__all__ = ["axe"]

POLICY = {"policy": "offload-first", "window": 200_000}


def token_of(page: Any) -> str:
    """A new key, made on its page."""
    page.goto("/settings/keys/")
    page.get_by_role("button", name="Make a key").click()
    return str(page.locator("#token").inner_text())


@pytest.fixture
def token(page: Any) -> str:
    page.set_default_timeout(20_000)
    return token_of(page)


def number(page: Any) -> int:
    """The step that the page shows."""
    return int(page.get_by_label("Go to step").input_value())


def shows_step(page: Any, step: int) -> None:
    """Waits until it does."""
    page.wait_for_function(
        "step => document.querySelector('.goto input')?.value === String(step)", arg=step
    )


def line(page: Any, text: str) -> Any:
    """The row of the context that begins with a text."""
    return page.locator("[role=row] .line", has_text=text).first


def follows(page: Any) -> bool:
    """Whether it goes along with the session."""
    return page.locator(".follow").get_attribute("aria-pressed") == "true"


def open_replay(page: Any, agent: Agent) -> None:
    page.goto(f"/sessions/{agent.id}/")
    page.locator("[role=slider]").wait_for()


def test_the_first_page_makes_a_key_and_waits_for_the_first_message(page: Any, axe: str) -> None:
    page.set_default_timeout(20_000)
    page.goto("/start/")
    page.get_by_role("button", name="Make a key").click()
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
    # Whichever was there first, page or policy: it shows what the policy makes of the session.
    agent.step()
    shows_step(page, 2)
    page.get_by_role("button", name=re.compile("^managed"), pressed=True).wait_for()


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
    shows_step(page, 5)
    line(page, "part_4.py → ").wait_for()
    page.locator(".news", has_text=re.compile(r"^Next call, S5 · [\d,]+ tokens")).wait_for()
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


def test_the_policy_is_watched_overruled_and_taken_back(
    page: Any, token: str, served: Server, axe: str
) -> None:
    agent = Agent(served.address, token, "managed", policy="offload-first", window=64_000)
    agent.says("Read all parts.")
    for _ in range(16):
        agent.step(120)
        agent.get("/context?format=anthropic")
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

    page.locator("[role=grid]").focus()
    page.keyboard.press("Escape")
    page.keyboard.press("End")
    page.get_by_role("button", name="Compact now").click()
    page.locator(".news", has_text="compaction").wait_for()
    page.locator("[role=row].k-summary").wait_for()
    page.wait_for_function("() => !document.querySelector('[role=row] .skeleton')")
    assert not faults(page, axe, "after a compaction")
    lines = page.locator("[role=row] .line").all_inner_texts()
    page.reload()
    page.locator("[role=row].k-summary").wait_for()
    page.wait_for_function("() => !document.querySelector('[role=row] .skeleton')")
    assert page.locator("[role=row] .line").all_inner_texts() == lines

    page.get_by_role("link", name="open compaction").last.click()
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("heading", name=re.compile("Undo")).wait_for()
    assert agent.get("/revisions")["revisions"][-1]["trigger"] == "undo"

    # Two compactions of one step, alike in all they say: the page stands nevertheless.
    open_replay(page, agent)
    page.get_by_role("button", name="Compact now").click()
    page.locator(".happened .event.compaction").nth(1).wait_for()
    page.locator(".happened .event.undo").wait_for()
    page.locator("[role=row].k-summary").wait_for()
    page.get_by_role("button", name="recorded").wait_for()
    page.locator("[data-figure=peak]", has_text="vs recorded").wait_for()
    page.get_by_role("link", name=re.compile("^Compare with")).click()
    page.locator(".page-head .badge.managed").wait_for()
    page.goto("/sessions/?flag=compacted")
    row = page.locator("tr", has_text="Read all parts")
    row.locator(".events", has_text="◆2").wait_for()
    page.set_viewport_size({"width": 390, "height": 844})
    for name in ("peak", "steps", "cost"):
        box = row.locator(f"td[data-name={name}]").bounding_box()
        assert box is not None and box["x"] + box["width"] <= 390, name


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
    agent = Agent(served.address, token, "raw", **POLICY)
    agent.says("Say <i>hello</i>.")
    agent.step()
    open_replay(page, agent)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.keyboard.press("t")
    page.locator(".raw-request", has_text="Say <i>hello</i>.").wait_for()
    assert any("/context?format=anthropic&at=2" in url for url in asked)
    assert not faults(page, axe, "raw request")
    page.get_by_role("button", name="OpenAI").click()
    page.locator(".raw-request", has_text='"tool_calls"').wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename.endswith("-S2.openai.json")
    page.keyboard.press("t")
    page.locator("[role=grid]").wait_for()


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
    shows_step(page, 3)
    page.locator("[data-live-pill][data-state=live]").wait_for()
    agent.step()
    shows_step(page, 4)
    page.context.close()


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
    shows_step(page, 3)
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


def test_rows_stay_in_place_while_somebody_points_at_them(
    page: Any, token: str, served: Server
) -> None:
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
    offer = page.get_by_role("button", name="Something new")
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
