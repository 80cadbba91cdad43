"""Writing a policy in a browser: what is said follows the typing, and nothing is lost by it."""

from __future__ import annotations

from typing import Any

from tests.browser.test_accessibility import axe, faults
from tests.conftest import Server

__all__ = ["axe"]


def _value(page: Any, path: str) -> Any:
    return page.locator(f'[name="{path}"]:not([type="hidden"])')


def test_a_policy_is_written_and_its_problems_are_shown(
    page: Any, served: Server, axe: str
) -> None:
    page.goto(f"{served.address}/policies/")
    page.keyboard.press("n")
    page.wait_for_url("**/policies/new/")
    page.goto(f"{served.address}/policies/new/?based_on=offload-first")
    page.fill("#name", "written")

    age = _value(page, "steps[2].parameters.age")
    age.fill("-5")
    page.locator("#field-steps-2-parameters-age.wrong .problem-text").wait_for()
    assert age.evaluate("field => field === document.activeElement"), "typing goes on"
    assert age.input_value() == "-5"
    age.fill("8")
    page.locator("#field-steps-2-parameters-age:not(.wrong) .origin-policy").wait_for()

    page.fill("#note", "eight")
    page.select_option("#strategy", "window")
    page.get_by_role("button", name="Add", exact=True).click()
    primers = _value(page, "steps[4].parameters.primers")
    primers.wait_for()
    page.locator("#policy-form:not([data-asking])").wait_for()
    assert primers.evaluate("field => field === document.activeElement")
    assert (page.input_value("#name"), page.input_value("#note")) == ("written", "eight")
    primers.fill("1")
    _value(page, "steps[4].parameters.recents").fill("60")
    page.locator("#steps-4-parameters-primers-remarks .remark.warning").wait_for()
    assert faults(page, axe, "policy form") == []

    page.get_by_role("button", name="Move window up").click()
    moved = page.get_by_role("button", name="Move window up")
    page.locator('[name="do"][value="up:3"]:focus').wait_for()
    assert moved.get_attribute("value") == "up:3", "the button went with its step"
    page.get_by_role("button", name="Remove window").click()
    page.locator("#steps-4").wait_for(state="detached")

    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/policies/written/1/")
    text = page.locator("main").inner_text()
    assert "eight" in text
    assert page.locator("#steps-2-parameters-age .origin-policy").count() == 1
    assert faults(page, axe, "policy version") == []
    for address in ("/policies/", "/policies/written/"):
        page.goto(f"{served.address}{address}")
        assert faults(page, axe, address) == []


def test_yaml_fills_the_form(page: Any, served: Server) -> None:
    page.goto(f"{served.address}/policies/new/")
    page.locator("#yaml-part > summary").click()
    page.fill("#yaml", "name: pasted\nreserve: lots\n")
    page.get_by_role("button", name="Apply to the form").click()
    problem = page.locator("#yaml-part .problem-text")
    problem.wait_for()
    assert "reserve: must be a whole number" in problem.inner_text()
    assert page.input_value("#yaml").startswith("name: pasted"), "to be mended where it stands"
    page.fill("#yaml", "name: pasted\nbased_on: sliding-window\nreserve: 77\n")
    page.get_by_role("button", name="Apply to the form").click()
    page.locator('[name="reserve"][value="77"]').wait_for()
    assert page.input_value("#name") == "pasted"
    assert page.locator('[name="step"]').count() == 1


def test_leaving_asks_while_something_is_unsaved(page: Any, served: Server) -> None:
    page = (
        page.context.new_page()
    )  # of its own: the console calls the answer to a refused form an error
    asked: list[str] = []

    def stay(dialog: Any) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    def leave() -> None:
        page.get_by_role("link", name="Policies").first.click()

    page.goto(f"{served.address}/policies/new/?based_on=offload-first")
    page.on("dialog", stay)
    leave()
    page.wait_for_url("**/policies/")
    assert not asked, "nothing was changed"

    page.goto(f"{served.address}/policies/new/?based_on=offload-first")
    page.fill("#name", "No Spaces")
    with page.expect_event("dialog"):
        leave()
    assert asked.pop() == "beforeunload"
    assert page.input_value("#name") == "No Spaces"

    # Refused: it comes back with what was entered, which is saved nowhere.
    page.get_by_role("button", name="Save").click()
    page.locator(".notice.error").wait_for()
    with page.expect_event("dialog"):
        leave()
    assert asked.pop() == "beforeunload"

    page.fill("#name", "kept")
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/policies/kept/1/")
    leave()
    page.wait_for_url("**/policies/")
    assert not asked, "it is saved"
