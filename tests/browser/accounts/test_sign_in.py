"""Sign-in with passwords in real browsers: mailed links, second factors, browsers signed out."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from email import message_from_string
from typing import Any

import pytest
from allauth.mfa.totp.internal import auth

from tests.browser.test_accessibility import axe, faults
from tests.conftest import Server, wait_until
from tests.sessions.notifications.receivers import MailReceiver, mail_receiver

__all__ = ["axe"]

FIRST, SECOND = "lantern-ferry-42", "harbour-lantern-7"


@pytest.fixture
def post() -> Iterator[MailReceiver]:
    with mail_receiver() as there:
        yield there


@pytest.fixture
def server(post: MailReceiver, server_with: Callable[..., Server]) -> Server:
    return server_with(
        CONTEXTLAB_SMTP_HOST="127.0.0.1",
        CONTEXTLAB_SMTP_PORT=str(post.port),
        CONTEXTLAB_SMTP_TLS="none",
    )


@pytest.fixture
def open_page(browser: Any, server: Server) -> Iterator[Callable[[], Any]]:
    """Opens pages, each in a browser of its own; the test fails on what the content policy or a
    script refuses."""
    contexts: list[Any] = []
    wrong: list[str] = []

    def opened() -> Any:
        context = browser.new_context(base_url=server.address)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: wrong.append(said.text) if "Security" in said.text else 0)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not wrong, wrong


def link_in(post: MailReceiver, number: int, to: str) -> str:
    """The link in the mail with that number, once it has arrived."""
    wait_until(lambda: len(post.mails) > number)
    recipients, text = post.mails[number]
    assert recipients == [to]
    body = message_from_string(text).get_payload(decode=True)
    assert isinstance(body, bytes)
    found = re.search(r"https?://\S+", body.decode())
    assert found, text
    return found[0]


def sign_in(page: Any, password: str) -> None:
    page.goto("/login/")
    page.get_by_label("Name or email").fill("mara")
    page.get_by_label("Password", exact=True).fill(password)
    page.get_by_role("button", name="Sign in").click()


def join(owner: Any, page: Any) -> None:
    """Invite a member, who makes an account with an address."""
    owner.goto("/settings/members/")
    owner.get_by_label("Role", exact=True).select_option("owner")
    owner.get_by_role("button", name="Create invitation").click()
    page.goto(owner.locator("#invitation-address").inner_text())
    page.get_by_label("Name", exact=True).fill("mara")
    page.get_by_label("Email (optional)").fill("Mara@example.org")
    page.get_by_label("Password", exact=True).first.fill(FIRST)
    page.get_by_label("Repeat password").fill(FIRST)
    page.get_by_role("button", name="Create account").click()
    page.get_by_role("navigation", name="Main").wait_for()


@pytest.fixture
def mara(open_page: Callable[[], Any], server: Server) -> Any:
    owner, page = open_page(), open_page()
    owner.goto(server.login)
    join(owner, page)
    return page


def test_addresses_are_confirmed_and_passwords_reset_by_mail(
    open_page: Callable[[], Any], mara: Any, post: MailReceiver, axe: str, server: Server
):
    confirm = open_page()
    confirm.goto(link_in(post, 0, "mara@example.org"))
    wrong = faults(confirm, axe, "an address to confirm")
    confirm.get_by_role("button", name="Confirm").click()
    assert "is confirmed" in confirm.locator("main").inner_text()
    other = open_page()
    other.goto("/login/")
    other.get_by_role("link", name="Forgot your password?").click()
    wrong += faults(other, axe, "a forgotten password")
    other.get_by_role("textbox", name="Email").fill("mara@example.org")
    other.get_by_role("button", name="Send a link").click()
    assert "is on its way" in other.locator("main").inner_text()
    link = link_in(post, 1, "mara@example.org")
    other.goto(link)
    wrong += faults(other, axe, "a new password")
    other.get_by_role("textbox", name="New password").fill(SECOND)
    other.get_by_role("textbox", name="Repeat password").fill(SECOND)
    other.get_by_role("button", name="Set password").click()
    other.get_by_role("heading", name="Password changed").wait_for()
    assert mara.goto("/account/").status == 403, "signed out"
    sign_in(other, SECOND)
    other.goto("/account/")
    assert "is not confirmed" not in other.locator("main").inner_text()
    wrong += faults(other, axe, "an account with browsers")
    assert link.rstrip("/").rpartition("/")[2] not in server.log
    assert not wrong, "\n".join(wrong)


def code_of(secret: str, at: int) -> str:
    """The code for the period before, at or after now: the server takes all three, each once."""
    return auth.format_hotp_value(auth.hotp_value(secret, int(time.time()) // 30 + at))


def test_a_required_factor_is_set_up_used_and_a_browser_signed_out(
    open_page: Callable[[], Any], mara: Any, axe: str, server: Server
):
    owner = mara
    owner.goto("/settings/team/")
    owner.get_by_role("button", name="Require a second factor").click()
    owner.goto("/sessions/")
    owner.get_by_role("heading", name="Is it you?").wait_for()
    wrong = faults(owner, axe, "asked for the password again")
    owner.get_by_role("textbox", name="Password").fill(FIRST)
    owner.get_by_role("button", name="Go on").click()
    owner.get_by_text("A team of yours requires a second factor.").wait_for()
    wrong += faults(owner, axe, "a second factor to set up")
    assert owner.locator("img.qr-code").evaluate("image => image.naturalWidth") > 100
    secret = owner.locator("#totp-secret").inner_text().strip()
    owner.get_by_label("Authenticator code").fill(code_of(secret, 0))
    owner.get_by_role("button", name="Turn on").click()
    owner.get_by_role("heading", name="Recovery codes").wait_for()
    wrong += faults(owner, axe, "recovery codes")
    codes = owner.locator("#recovery-codes").inner_text().split()
    owner.goto("/account/second-factor/")
    wrong += faults(owner, axe, "a second factor")
    other = open_page()
    sign_in(other, FIRST)
    wrong += faults(other, axe, "a code at sign-in")
    other.get_by_role("textbox", name="Code").fill(codes[0])
    other.get_by_role("button", name="Sign in").click()
    other.get_by_role("navigation", name="Main").wait_for()
    closed: list[bool] = []
    other.on("websocket", lambda socket: socket.on("close", lambda _: closed.append(True)))
    with other.expect_websocket():
        other.goto("/sessions/")
    owner.goto("/account/")
    owner.get_by_role("button", name="Sign out everywhere else").click()
    owner.get_by_text("1 other browser is signed out.").wait_for()
    wait_until(lambda: other.wait_for_timeout(100) or closed)
    assert other.goto("/sessions/").status == 403
    assert not wrong, "\n".join(wrong)
