"""Models used: the page with sessions, without any, and of another team."""

from __future__ import annotations

import pytest

from sessions.actions.accounts.teams import local_team
from sessions.actions.record.append import append
from tests.sessions.made import count, reading
from tests.sessions.pages import other_team, page_of, signed_in

pytestmark = pytest.mark.django_db


def test_it_shows_what_the_team_has_and_nothing_of_others() -> None:
    assert "No sessions yet" in page_of(signed_in(), "/models-used/").text
    append(local_team(), reading(2), count, source="test")
    page = page_of(signed_in(), "/models-used/")
    assert page.links["claude-x"] == "/sessions/?model=claude-x"
    assert "claude-x 1 2" in page.text
    assert "claude-x" not in page_of(signed_in(other_team()), "/models-used/").text
