"""Lists and commands beside real sessions: the demo is left out, and named where it hides."""

from __future__ import annotations

import json

import pytest
from django.core.management import call_command

from sessions.actions.accounts.teams import local_team
from sessions.actions.record.append import append
from sessions.models import Session
from tests.sessions.made import count, reading
from tests.sessions.pages import page_of, signed_in

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
