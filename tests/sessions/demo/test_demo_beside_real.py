"""Demo sessions beside real ones: left out of every list unless asked for, and marked."""

from __future__ import annotations

import pytest

from sessions.actions.accounts import audit
from sessions.actions.accounts.teams import local_team
from sessions.actions.demo.demo_tuning import BASE, DOCUMENT, NAME, NOTE
from sessions.actions.memory.boards import put_note
from sessions.actions.policies.policies import save_version
from sessions.models import Session
from tests.sessions.pages import page_of, signed_in

pytestmark = pytest.mark.django_db


def running(name: str, *, demo: bool = False) -> Session:
    made = Session.objects.create(
        team=local_team(), external_id=name, title=f"work of {name}", source="api",
        step_count=5, demo=demo, ended_at=1_000,
    )  # fmt: skip
    put_note(made, "knowledge", f"The port of {name}.")
    return made


PAGES = ("/sessions/", "/live/", "/memory/", "/memory/?q=port", "/lab/")


@pytest.mark.parametrize("address", PAGES)
def test_a_page_lists_the_demo_alone_or_if_asked_for(address: str) -> None:
    client, mark = signed_in(), "work of made-up"
    running("made-up", demo=True)
    assert mark in page_of(client, address).html, "alone, it is like any other session"
    running("real")
    page = page_of(client, address)
    assert mark not in page.html and "work of real" in page.html
    assert "1 demo session is left out. Show" in page.text
    asked = page_of(client, address.partition("?")[0] + page.links["Show"])
    assert mark in asked.html and "work of real" in asked.html
    assert "1 demo session is shown beside yours." in asked.text


def test_the_policy_of_the_demo_is_left_out_and_marked() -> None:
    client = signed_in()
    version = save_version(local_team(), NAME, DOCUMENT, BASE, NOTE, None, audit.DEMO)
    made = running("made-up", demo=True)
    Session.objects.filter(pk=made.pk).update(policy_version=version)
    assert f"{NAME} demo" in page_of(client, "/policies/").text
    running("real")
    assert NAME not in page_of(client, "/policies/").links
    assert f"{NAME} demo" in page_of(client, "/policies/?demo=1").text


def test_the_audit_log_marks_what_the_demo_did() -> None:
    save_version(local_team(), NAME, DOCUMENT, BASE, NOTE, None, audit.DEMO)
    save_version(local_team(), "own", DOCUMENT, BASE, "", None, audit.COMMAND)
    page = page_of(signed_in(), "/settings/audit/")
    assert page.text.count("policy.saved demo") == 1
    assert page.text.count("policy.saved") >= 2


def test_the_api_leaves_the_demo_out_and_says_what_is_of_it() -> None:
    client = signed_in()
    running("made-up", demo=True)

    def listed(query: str = "") -> dict[str, bool]:
        rows = client.get(f"/api/v1/sessions{query}").json()["sessions"]
        return {row["external_id"]: row["demo"] for row in rows}

    assert listed() == {"made-up": True}
    running("real")
    assert listed() == {"real": False}
    assert listed("?demo=true") == {"real": False, "made-up": True}
