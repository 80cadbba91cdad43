"""Ten compactions judged by keys alone, by two people who do not see each other's reviews."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser.reviewers import ITEMS, NAMES, OWNER, PASSWORD
from tests.browser.test_accessibility import axe, faults
from tests.conftest import ROOT, Server, start_server
from tests.empty_store import with_tables

__all__ = ["axe"]

ITEM = re.compile(r"/review/items/[\w-]{36}/$")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose store got reviewers and their queue before it started."""
    data_dir = with_tables(tmp_path_factory.mktemp("reviewing"))
    environment = {
        **os.environ,
        "CONTEXTLAB_DATA_DIR": str(data_dir),
        "DATABASE_URL": "",
        "PYTHONPATH": str(ROOT),
        "DJANGO_SETTINGS_MODULE": "contextlab.settings",
    }
    command = [sys.executable, "-m", "tests.browser.reviewers"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    server = start_server(data_dir)
    yield server
    server.stop()


@pytest.fixture
def sits_down(browser: Any, served: Server) -> Iterator[Callable[[str, str], Any]]:
    """Opens the queue as one of the reviewers, in a theme; errors in the console fail the test."""
    wrong: list[str] = []
    opened = []

    def open_as(name: str, theme: str) -> Any:
        context = browser.new_context(
            base_url=served.address, color_scheme=theme, reduced_motion="reduce"
        )
        opened.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda said: wrong.extend(complaints(said)))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto("/login/")
        page.locator("[name=login]").fill(name)
        page.locator("[name=password]").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.goto("/review/")
        return page

    yield open_as
    for context in opened:
        context.close()
    assert not wrong, wrong


def complaints(said: Any) -> list[str]:
    """An error in the console, unless a test broke the connection itself."""
    return [said.text] if said.type == "error" and "net::ERR_FAILED" not in said.text else []


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def arrived(page: Any, left: str = "") -> str:
    """Waits for an item other than the one that was left; its address."""
    page.wait_for_url(lambda url: ITEM.search(url) is not None and url != left)
    page.locator(".review[aria-busy=false] #field-0").wait_for()
    return str(page.url)


def chosen(page: Any, field: int) -> str:
    pressed = page.locator(f"#field-{field} [aria-pressed=true]")
    return str(pressed.inner_text()).strip() if pressed.count() else ""


def fill(page: Any, scores: str, verdict: str, note: str) -> None:
    """The whole form by keys: digits, each going on to the next; in the note keys are letters."""
    press(page, *scores, verdict, "ArrowDown")
    page.keyboard.type(note)
    page.keyboard.press("Escape")


def test_ten_are_judged_by_keys_alone_by_two_who_are_blind(
    sits_down: Callable[[str, str], Any], axe: str
) -> None:
    wrong: list[str] = []
    for name, theme in zip(NAMES, ("light", "dark"), strict=True):
        page = sits_down(name, theme)
        press(page, "s")
        address = arrived(page)
        for number in range(ITEMS):
            assert f"{number}: src/f1.py" in page.locator(".review-summary").inner_text()
            assert "note of ann" not in page.content(), "the other's stays unseen"
            if number == 0:
                wrong += faults(page, axe, f"an item, by {name}")
                page.emulate_media(color_scheme=theme)
            verdict = "1" if name == "ann" or number else "3"
            fill(page, "4352" + "1", verdict, f"note of {name}: 1 y n j → m?")
            press(page, "j", "y", "n")
            assert chosen(page, 0) == "4", "digits in the note chose nothing"
            page.locator("#review-note").focus()
            press(page, "Control+Enter")
            if number < ITEMS - 1:
                address = arrived(page, left=address)
        page.wait_for_url("**/review/")
        assert "All done." in page.locator("main").inner_text()
        wrong += faults(page, axe, f"the queue, done by {name}")
    page.get_by_role("heading", name=f"Results {ITEMS}").wait_for()
    assert "90 %" in page.locator("main").inner_text(), "in one of ten the verdicts differ"
    assert "note of ann" in page.locator("main").inner_text(), "now both may be read"
    press(page, "j", "o")
    page.locator(".review-other").wait_for()
    wrong += faults(page, axe, "a finished item")
    assert not wrong, "\n".join(wrong)


def test_digits_and_letters_judge_one_fact_after_another(
    sits_down: Callable[[str, str], Any],
) -> None:
    page = sits_down("cat", "light")
    press(page, "s")
    arrived(page)
    press(page, "4", "Control+Enter")
    missing = page.get_by_text("Still missing: Constraints, State of work")
    assert missing.inner_text().endswith("Next steps, Invents nothing, Verdict.")
    assert page.evaluate("document.activeElement.closest('fieldset').id") == "field-1"

    press(page, "j", "h")  # the weightiest that is wrong: a path that was lost
    assert page.locator("#fact-list li.here code").inner_text() == "src/f2.py"
    page.locator(".review-source mark.here").wait_for()
    press(page, "4")
    row = page.locator("#fact-list li")
    assert row.nth(0).locator(".fact-mark").inner_text() == "is unsupported"
    assert row.nth(1).get_attribute("class") == "here", "a digit goes on to the next fact"
    press(page, "h", "h")
    page.locator(".review-source, .review-summary").locator(".flash mark.here").first.wait_for()
    press(page, "n")
    assert row.nth(1).locator(".fact-mark").inner_text() == "is kept? 1–4", (
        "a digit may say otherwise"
    )
    press(page, "3")
    assert row.nth(1).locator(".fact-mark").inner_text() == "is lost"
    assert "here" in str(row.nth(2).get_attribute("class"))
    press(page, "ArrowDown", "2")
    assert chosen(page, 1) == "2", "an arrow leads back to the field one was at"
    assert page.evaluate("document.activeElement.closest('fieldset').id") == "field-2"
    page.locator("mark", has_text="f1.py").first.hover()
    assert page.locator("mark.pointed").count() > 1, "in the summary, and in the ledger's row"
    assert page.locator("#fact-list li.pointed code").inner_text() == "src/f1.py"


def test_added_facts_and_a_draft_outlive_a_reload(sits_down: Callable[[str, str], Any]) -> None:
    page = sits_down("cat", "light")
    press(page, "s")
    arrived(page)
    row = page.locator("#fact-list li")
    press(page, "4", "j", "h")
    page.locator(".review-source mark.here").wait_for()
    press(page, "4", "n", "3", "ArrowDown", "2")
    page.evaluate("""() => {
        const text = document.querySelector('.review-source .source-text').firstChild.parentNode;
        getSelection().selectAllChildren(text);
    }""")
    press(page, "m")
    page.locator("#fact-list li code", has_text="Please read the files.").wait_for()
    added = page.locator("#fact-list li").first
    assert added.locator("code").inner_text() == "Please read the files."
    assert added.locator(".fact-mark").inner_text() == "lost"

    press(page, "]")
    assert page.evaluate("document.activeElement.className") == "summary-body"
    page.evaluate("getSelection().removeAllRanges()")
    press(page, "m")
    page.keyboard.type("no port before 1 j")
    press(page, "Enter")
    assert row.first.locator("code").inner_text() == "Please read the files."
    assert row.nth(1).locator("code").inner_text() == "no port before 1 j"
    assert "here" in str(row.nth(1).get_attribute("class"))

    page.reload()
    arrived(page)
    assert (chosen(page, 0), chosen(page, 1)) == ("4", "2"), "a draft outlives a reload"
    assert page.locator("#fact-list li .fact-mark", has_text="lost").count() == 3


def test_a_held_key_skips_once_and_a_failed_submit_keeps_the_note(
    sits_down: Callable[[str, str], Any],
) -> None:
    page = sits_down("cat", "light")
    press(page, "s")
    first = arrived(page)
    page.keyboard.down("ArrowRight")
    second = arrived(page, left=first)
    page.keyboard.down("ArrowRight")  # held: it repeats
    press(page, "3")
    assert chosen(page, 0) == "3" and page.url == second
    page.keyboard.up("ArrowRight")

    fill(page, "22221", "3", "the port is gone")
    other = sits_down("dan", "dark")
    other.goto(second)
    other.get_by_text("Someone else is reviewing this").wait_for()
    page.route("**/submit/", lambda route: route.abort())
    press(page, "Control+Enter")
    page.get_by_text("The server cannot be reached").wait_for()
    assert page.locator("#review-note").input_value() == "the port is gone"
    page.unroute("**/submit/")
    press(page, "Control+Enter")
    page.wait_for_url("**/review/")
    assert "You skipped 1." in page.locator("main").inner_text()


def test_rules_are_tried_by_an_owner_and_results_are_on_the_compaction(
    sits_down: Callable[[str, str], Any], axe: str
) -> None:
    page = sits_down(OWNER, "light")
    page.goto("/review/rules/")
    page.get_by_label("At random").fill("50")
    page.get_by_role("button", name="Try").click()
    page.get_by_text(f"of the last {ITEMS} compactions").wait_for()
    wrong = faults(page, axe, "the rules")
    first = page.request.get("/api/v1/sessions").json()["sessions"][0]
    page.goto(f"/sessions/{first['id']}/revisions/recorded/1/")
    page.get_by_role("heading", name="Reviews").wait_for()
    wrong += faults(page, axe, "reviews on the page of a compaction")
    assert not wrong, "\n".join(wrong)
