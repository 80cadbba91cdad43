"""The guided tour: offered, resumable, dismissible, and absent until it is started."""

from __future__ import annotations

import pytest

from sessions import demo
from sessions.actions.accounts.teams import local_team
from sessions.actions.demo.demo import load_demo
from sessions.actions.demo.tour_stops import STOPS
from tests.sessions.demo.played import NOW, count
from tests.sessions.pages import page_of, signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = tuple(part for part in demo.PARTS if part.name == "long")
    monkeypatch.setattr(demo, "PARTS", parts)
    monkeypatch.setattr(demo, "EXTERNAL_IDS", tuple(part.external_id for part in parts))


@pytest.mark.usefixtures("small")
def test_each_stop_is_a_page_that_names_it_and_leads_on():
    (session,) = load_demo(local_team(), count, NOW)
    client = signed_in()
    assert "Tour ·" not in page_of(client, "/sessions/").text
    address = page_of(client, "/start/").links["Take the two-minute tour."]
    for at, stop in enumerate(STOPS, 1):
        place = client.get(address).headers["Location"]
        page = page_of(client, place)
        assert f"Tour · {at} of {len(STOPS)} {stop.title}" in page.text
        assert page.links["End tour"] == "/tour/?stop=0"
        address = page.links["Next" if at < len(STOPS) else "Done"]
    assert f"/sessions/{session.pk}/" in client.get("/tour/?stop=3").headers["Location"]
    # It goes on where it was left, on any page, until it is ended.
    assert "Tour · 3 of" in page_of(client, "/jobs/").text
    assert "Tour · 3 of" in page_of(signed_in(), "/jobs/").text, "in any browser of the person"
    assert client.get(address).headers["Location"] == "/dashboard/"
    assert "Tour ·" not in page_of(client, "/jobs/").text


@pytest.mark.parametrize("stop", ["1", "7", "x", "9" * 40, "²"])
def test_without_the_demo_it_leads_to_where_it_is_loaded(stop: str):
    client = signed_in()
    assert client.get("/tour/", {"stop": stop}).headers["Location"] == "/start/"
    assert "preferences" not in client.session
