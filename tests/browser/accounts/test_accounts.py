"""Joining a team and leaving it, in two browsers, judged by axe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.test_accessibility import axe, faults
from tests.conftest import Server

__all__ = ["axe"]

PASSWORD = "lantern-ferry-42"


@pytest.fixture(scope="module")
def served(own_server: Server) -> Server:
    """Its local user changes, and its log is read."""
    return own_server


@pytest.fixture
def invitation(page: Any) -> str:
    """The address of an invitation of a reviewer."""
    page.goto("/settings/members/")
    page.get_by_label("Role", exact=True).select_option("reviewer")
    page.get_by_role("button", name="Create invitation").click()
    return str(page.locator("#invitation-address").inner_text())


@pytest.fixture
def other(browser: Any, served: Server) -> Iterator[Any]:
    """A page of another browser, not signed in."""
    context = browser.new_context(base_url=served.address)
    yield context.new_page()
    context.close()


def join(page: Any, password: str) -> None:
    section = page.locator("section", has_text="Create an account")
    for field in ("Password", "Repeat password"):
        section.get_by_label(field, exact=True).fill(password)
    page.get_by_role("button", name="Create account").click()


def test_pages_of_an_account_and_a_team(page: Any, axe: str) -> None:
    wrong: list[str] = []
    for address, name in (
        ("/settings/keys/", "keys"), ("/settings/members/", "members"), ("/settings/team/", "team"),
        ("/account/", "account"),
    ):  # fmt: skip
        page.goto(address)
        wrong += faults(page, axe, name)
    assert not wrong, "\n".join(wrong)


def test_an_invited_reviewer_joins_and_signs_in(
    page: Any, other: Any, invitation: str, axe: str
) -> None:
    wrong = faults(page, axe, "an invitation was made")
    other.goto(invitation)
    other.get_by_label("Name", exact=True).fill("jo")
    wrong += faults(other, axe, "an invitation")
    join(other, "short")
    assert "too short" in other.locator(".problem-text").first.inner_text()
    wrong += faults(other, axe, "an invitation, refused")
    join(other, PASSWORD)
    other.goto("/account/")
    other.get_by_role("button", name="Sign out").first.click()
    wrong += faults(other, axe, "not signed in")
    other.get_by_label("Name or email").fill("jo")
    other.get_by_label("Password", exact=True).fill("wrong")
    other.get_by_role("button", name="Sign in").click()
    assert "Incorrect name or password" in other.get_by_role("alert").inner_text()
    other.get_by_label("Password", exact=True).fill(PASSWORD)
    other.get_by_role("button", name="Sign in").click()
    other.goto("/settings/members/")
    assert other.get_by_role("button", name="Create invitation").count() == 0
    assert other.get_by_role("link", name="Audit log").count() == 0
    wrong += faults(other, axe, "members, for a reviewer")
    assert not wrong, "\n".join(wrong)


@pytest.mark.fault("H5")
def test_a_removed_member_sees_nothing_and_the_log_has_no_secret(
    page: Any, other: Any, invitation: str, axe: str, served: Server
) -> None:
    other.goto(invitation)
    other.get_by_label("Name", exact=True).fill("kim")
    join(other, PASSWORD)
    other.goto("/live/")
    other.locator("[data-live-pill]", has_text="live").wait_for()
    page.goto("/settings/members/")
    page.get_by_label("Remove kim from the team").click()
    wrong = faults(page, axe, "members, asked once more")
    page.get_by_role("button", name="Remove kim for good").click()
    page.get_by_text("kim is no longer a member").wait_for()
    other.get_by_role("alert").get_by_text("You no longer have access").wait_for()
    assert other.locator("#live").count() == 0, "its content is gone"
    assert other.locator("[data-live-pill]").inner_text() == "no access"
    page.goto("/settings/audit/")
    actions = page.locator("table.audit tbody code").all_inner_texts()
    assert actions[:3] == ["member.removed", "member.joined", "member.invited"]
    joining = {"member.joined", "member.invited"}  # of the test before
    logins = {"login.used", "login.printed", "login.failed"}
    assert set(actions[3:]) - joining <= logins  # some are of tests before
    wrong += faults(page, axe, "the audit log")
    other.goto("/sessions/")
    assert "in no team (any more)" in other.locator("h1").inner_text()
    other.goto(invitation)
    assert "cannot be used" in other.locator("h1").inner_text()
    wrong += faults(other, axe, "an invitation that was used")
    assert invitation.rstrip("/").rpartition("/")[2] not in served.log
    assert "/invitations/…/" in served.log, "what was refused is in the log, without its secret"
    assert not wrong, "\n".join(wrong)


def test_single_keys_are_switched_off_and_on(page: Any) -> None:
    page.goto("/account/")
    page.keyboard.press("?")
    assert page.get_by_role("dialog").count() == 1
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Turn them off").click()
    page.goto("/jobs/")
    page.keyboard.press("?")
    assert page.get_by_role("dialog").count() == 0
    page.get_by_role("button", name="Keyboard shortcuts").click()
    assert "They are switched off" in page.get_by_role("dialog").inner_text()
    page.keyboard.press("Escape")
    page.goto("/account/")
    page.get_by_role("button", name="Turn them on").click()
    page.get_by_role("status").filter(has_text="saved").wait_for()
    page.get_by_role("button", name="Keyboard shortcuts").wait_for()
    page.keyboard.press("g")
    page.keyboard.press("k")
    page.wait_for_url("**/settings/keys/")


@pytest.mark.parametrize(
    ("address", "button"),
    [("/settings/data/", "Count"), ("/settings/notifications/", "Create channel")],
)
def test_on_a_narrow_page_a_button_stands_below_the_labels(
    page: Any, address: str, button: str
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(address)
    forms = page.locator("form.key-form", has=page.get_by_role("button", name=button, exact=True))
    assert forms.count()
    for form in forms.all():
        label = form.locator("label").last.bounding_box()
        beside = form.get_by_role("button", name=button, exact=True).bounding_box()
        assert beside["y"] >= label["y"] + label["height"]
