"""The guided tour: offered, resumable, dismissible, and absent until it is started."""

from __future__ import annotations

import json
import re
from io import StringIO
from urllib.parse import unquote

import pytest
from django.core.management import call_command

from sessions import demo
from sessions.actions.accounts.teams import local_team
from sessions.actions.assessments.assess import assess_session
from sessions.actions.demo.demo import load_demo
from sessions.actions.demo.tour_stops import STOPS
from sessions.actions.record.append import append
from sessions.figures import money, roughly
from tests.sessions.demo.played import NOW, count
from tests.sessions.made import reading
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
    address = page_of(client, "/start/").links["Take the two-minute tour"]
    for at, stop in enumerate(STOPS, 1):
        place = client.get(address).headers["Location"]
        page = page_of(client, place)
        assert f"Tour · {at} of {len(STOPS)} {stop.title}" in page.text
        if stop.title == "Replay":
            assert "?m=" in place
        left = page.links["End tour"].removeprefix("/tour/?stop=0&next=")
        assert unquote(left) == place.partition("#")[0]
        address = page.links["Next" if at < len(STOPS) else "Done"]
    assert f"/sessions/{session.pk}/" in client.get("/tour/?stop=3").headers["Location"]
    # It stays on its page, and goes on where it was left, in any browser, until it is ended.
    assert "Tour ·" not in page_of(client, "/jobs/").text
    assert f"/sessions/{session.pk}/" in signed_in().get("/tour/").headers["Location"]
    assert client.get(address).headers["Location"] == "/dashboard/"
    assert "Tour ·" not in page_of(client, "/jobs/").text
    # Who ends it early stays on the page.
    place = client.get("/tour/?stop=4").headers["Location"]
    left = page_of(client, place).links["End tour"]
    assert f"{client.get(left).headers['Location']}#tour" == place
    away = client.get("/tour/", {"stop": 0, "next": "https://elsewhere.test/"})
    assert away.headers["Location"] == "/"


@pytest.mark.usefixtures("small")
def test_the_lost_port_costs_the_same_on_every_page():
    (session,) = load_demo(local_team(), count, NOW)
    assess_session(session)
    client = signed_in()
    compaction = page_of(client, f"/sessions/{session.pk}/revisions/recorded/1/")
    figures = re.search(r"Cache break (\S+) \S+ tokens Loss (\S+) 1 call", compaction.text)
    assert figures is not None
    broken, lost = figures[1], f"≈{figures[2]}"  # the page's style marks an estimate
    answer = client.get(f"/api/v1/sessions/{session.pk}/why?text=8417").json()
    made = answer["loss"]
    assert made.startswith(f"The loss cost {lost}: 1 call made because of it (")
    assert made in compaction.text
    assert f"The cache break cost {broken} (" in compaction.text
    why = page_of(client, f"/sessions/{session.pk}/why/?text=8417&run=recorded")
    assert made in why.text
    assert f"The cache break caused by this removal cost {broken}, not included." in why.text
    assert "1 read again 142" in why.text
    said = page_of(client, f"/sessions/{session.pk}/").html
    props = said.split('<script id="replay-props" type="application/json">')[1].split("</script>")[
        0
    ]
    detail = json.loads(props)["verdict"]["detail"]
    assert detail.startswith(f"Avoidable: losses {lost} (calls made because")
    again = answer["came_again"]
    assert again["calls"] == 22, "those after step 142"
    parts = [answer["costs"][0]["cost_microusd"], again["cost_microusd"]]
    assert sum(parts) == answer["cost_microusd"]
    assert roughly(answer["cost_microusd"]) == lost
    tries = answer["tries"]
    assert (tries["guesses"], tries["between"], tries["searches"]) == ([137, 138], [139], [140])
    assert tries["cost_microusd"] > parts[0], "no part of the loss"
    assert tries["sentence"].startswith(
        "4 calls before, at steps 137, 138, 139, 140, look like tries without it (2 failed with "
        "other values, 1 search for it and 1 step between): ≈$"
    )
    assert tries["sentence"] in why.text
    assert "Why? shows the calls that each loss caused. It also lists tries made" in compaction.text
    assert money(answer["cache_break_microusd"]) == broken
    out = StringIO()
    call_command("why", str(session.pk), "8417", stdout=out)
    assert made in out.getvalue()
    assert f"The cache break cost {broken} (measured)." in out.getvalue()
    assert tries["sentence"] in out.getvalue()
    assert session.assessment.losses_microusd == answer["cost_microusd"]


@pytest.mark.usefixtures("small")
def test_beside_own_sessions_it_does_not_call_them_made_up():
    load_demo(local_team(), count, NOW)
    append(local_team(), reading(3), count, source="test")
    client = signed_in()
    for stop, said in ((1, "These are your own sessions"), (2, "Fixes for your own sessions")):
        place = client.get("/tour/", {"stop": stop}).headers["Location"]
        page = page_of(client, place)
        assert said in page.text
        assert "made up" not in page.text
        assert "Nothing in this range" not in page.text


@pytest.mark.parametrize("stop", ["1", "7", "x", "9" * 40, "²"])
def test_without_the_demo_it_leads_to_where_it_is_loaded(stop: str):
    client = signed_in()
    assert client.get("/tour/", {"stop": stop}).headers["Location"] == "/start/"
    assert "preferences" not in client.session
