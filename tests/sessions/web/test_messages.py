"""Messages of the last action: shown once, escaped, kept on the server."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.sessions.pages import page_of, signed_in

pytestmark = pytest.mark.django_db

BUDGET = {"scope": "agent", "name": "<b>x</b>", "mode": "soft", "tokens": "9", "warn": "80"}


@pytest.fixture
def client() -> Client:
    return signed_in()


def test_a_message_is_shown_once_as_text_and_is_in_no_cookie(client: Client) -> None:
    answer = client.post("/budgets/", BUDGET)
    assert answer.status_code == 302
    assert not any("was created" in cookie.value for cookie in client.cookies.values())
    page = page_of(client, "/budgets/")
    made = "The budget of agent <b>x</b> was created."
    assert made in page.text and "<b>x" not in page.html
    assert made not in page_of(client, "/budgets/").text


def test_a_page_that_reads_its_own_news_takes_no_message_away(client: Client) -> None:
    client.post("/budgets/", BUDGET)
    assert "was created" not in client.get("/budgets/", headers={"Sec-Fetch-Dest": "empty"}).text
    assert "was created" in client.get("/budgets/", headers={"Sec-Fetch-Dest": "document"}).text
