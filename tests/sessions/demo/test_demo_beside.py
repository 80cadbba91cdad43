"""Lists and commands beside real sessions: the demo is left out, and named where it hides."""

from __future__ import annotations

import json

import pytest
from django.core.management import call_command

from sessions.actions.accounts.teams import local_team
from sessions.actions.record.append import append
from sessions.models import Session
from tests.sessions.made import count, reading, session, user
from tests.sessions.pages import page_of, signed_in
from tests.sessions.search.searched import reindex, store

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def demo(name: str, **columns: object) -> Session:
    made = {"team": local_team(), "demo": True, "step_count": 1, **columns}
    return Session.objects.create(external_id=name, **made)


def listed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    call_command("show", "--json")
    return [one["session"] for one in json.loads(capsys.readouterr().out)["sessions"]]


def test_show_lists_the_demo_only_while_it_is_alone(capsys: pytest.CaptureFixture[str]) -> None:
    demo("made-up")
    assert listed(capsys) == ["made-up"]
    append(local_team(), reading(1), count, source="test")
    assert listed(capsys) == ["s1"]


def test_the_page_of_a_demo_session_has_its_badge() -> None:
    client = signed_in()
    made = append(local_team(), reading(1), count, source="test").session
    url = f"/sessions/{made.pk}/"
    assert "badge demo" not in page_of(client, url).html
    Session.objects.filter(pk=made.pk).update(demo=True)
    assert "badge demo" in page_of(client, url).html


def test_a_search_that_only_the_demo_answers_says_so_and_shows_it() -> None:
    client = signed_in()
    made_up = store()
    Session.objects.update(demo=True)
    append(local_team(), session(user("Go on."), external_id="real"), count, source="test")
    reindex(local_team())
    for address, has in (
        ("/search/?q=8417", "1 demo session has it"),
        ("/search/?q=8417&state=lost", "1 demo session has it"),
        ("/sessions/?q=checkout_api", "1 demo session matches"),
    ):
        page = page_of(client, address)
        assert "Nothing matches" in page.text and f"{has}. Show it" in page.text
        assert page.links["Show it"] == f"?{address.partition('?')[2]}&demo=1"
        shown = page_of(client, address.partition("?")[0] + page.links["Show it"])
        assert str(made_up.pk) in shown.html and "Show it" not in shown.text
    for nowhere in ("/search/?q=xyzzy", "/sessions/?q=xyzzy", "/search/?q=8417&tool=Write"):
        page = page_of(client, nowhere)
        assert "Nothing matches" in page.text and "Show it" not in page.text
    Session.objects.filter(demo=False).delete()
    assert "Show it" not in page_of(client, "/search/?q=xyzzy").text
