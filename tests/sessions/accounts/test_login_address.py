"""The printed address: signs in once, on a local server, while no account has a password."""

from __future__ import annotations

import re
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone

from sessions.actions.accounts import addresses
from sessions.actions.accounts.teams import local_team, team_called
from sessions.models import LoginAddress
from tests.sessions.people import acts, browser, person, shown

pytestmark = pytest.mark.django_db

PERSON = {"sec-fetch-site": "none"}
"""The header of an address that a person typed, pasted or clicked in a terminal."""


def open_address(token: str, client: Client | None = None, **headers: str) -> Any:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return (client or browser()).get(f"/login/{token}/", headers={**PERSON, **given})


def test_it_signs_in_once_and_is_audited_in_every_team_of_the_local_user():
    ops, _ = team_called("ops")
    token = addresses.renew_address()
    client = browser()
    assert open_address(token, client)["Location"] == "/"
    assert client.get("/start/").status_code == 200
    again = browser()
    page = shown(open_address(token, again), 403)
    assert "contextlab login" in page.text
    assert "contextlab_session" not in again.cookies
    assert acts(local_team())[-2:] == [
        ("login.printed", "command line", ""), ("login.used", "local", "printed address"),
    ]  # fmt: skip
    assert acts(ops)[-1] == ("login.used", "local", "printed address")


def test_only_the_newest_works_and_only_for_a_day():
    first, second = addresses.renew_address(), addresses.renew_address()
    assert open_address(first).status_code == 403
    LoginAddress.objects.update(expires=timezone.now() - timedelta(seconds=1))
    assert open_address(second).status_code == 403
    assert addresses.renew_address() not in str(LoginAddress.objects.values())


@pytest.mark.fault("H6")
@pytest.mark.parametrize("site", ["cross-site", "same-site", "nonsense"])
def test_another_site_cannot_use_it(site: str):
    token = addresses.renew_address()
    assert open_address(token, sec_fetch_site=site).status_code == 403
    posted = browser().post(f"/login/{token}/", headers={"sec-fetch-site": site})
    assert posted.status_code == 403
    assert open_address(token).status_code == 302, "it was not used up"


@pytest.mark.parametrize("headers", [{}, {**PERSON, "sec-purpose": "prefetch;prerender"}])
def test_what_may_be_a_preview_gets_a_button(headers: dict[str, str]):
    token = addresses.renew_address()
    strict = Client(SERVER_NAME="127.0.0.1", enforce_csrf_checks=True)
    page = shown(strict.get(f"/login/{token}/", headers=headers))
    assert "contextlab_session" not in strict.cookies
    address = f"/login/{token}/"
    assert strict.post(address).status_code == 403, "without the page's CSRF token"
    proof = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.html)
    assert proof
    ours = {"sec-fetch-site": "same-origin"}
    answer = strict.post(address, {"csrfmiddlewaretoken": proof[1]}, headers=ours)
    assert answer["Location"] == "/"
    assert strict.get(address, headers=headers).status_code == 403


def test_it_is_off_where_others_can_reach_the_server(settings: Any):
    token = addresses.renew_address()
    settings.PUBLIC = "it listens on 0.0.0.0"
    page = shown(open_address(token), 403)
    assert "contextlab invite" in page.text
    assert "it listens on 0.0.0.0" in page.text
    assert browser().get(f"/login/{token}/").status_code == 403, "not even a button"


def test_it_is_off_once_an_account_has_a_password():
    token = addresses.renew_address()
    mara = person("mara")
    assert open_address(token).status_code == 403
    mara.is_active = False
    mara.save()
    User.objects.create_user("guest", password=None)
    assert open_address(token).status_code == 302


@pytest.mark.parametrize("token", ["wrong", "%00%FF", "é", "x" * 3000])
def test_another_token_is_refused(token: str):
    addresses.renew_address()
    assert open_address(token).status_code == 403


@pytest.mark.django_db(transaction=True)
def test_two_at_once_cannot_both_use_it():
    token = addresses.renew_address()
    together, used = threading.Barrier(4), []

    def use() -> None:
        together.wait()
        used.append(addresses.use_address(token, "127.0.0.1"))
        connection.close()

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([one for one in used if one is not None]) == 1
