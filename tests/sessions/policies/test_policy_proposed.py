"""Values proposed by a link, changes in words, and the measured effect of a setting."""

from __future__ import annotations

import pytest
from django.test import Client

from sessions.actions.accounts.teams import local_team
from sessions.models import Session, Simulation, SimulationResult, Team
from sessions.models.lab.simulated_sums import ADDED
from tests.sessions.pages import page_of
from tests.sessions.policies.forms import PRESET, saved
from tests.sessions.policies.test_policy_writing import form_of, post

pytestmark = pytest.mark.django_db


def test_a_link_proposes_a_value_and_shows_its_setting(browser: Client):
    saved(PRESET)
    page = page_of(browser, "/policies/ours/edit/?set=compact.rearm&to=25")
    html = " ".join(page.html.split())
    assert 'value="25" autofocus' in html
    assert "Compact again after growth of 10 % of the window → to 25 % of the window" in page.text
    assert "was 10 % of the window" in page.text and "1 change." in page.text
    assert html.count('<details class="more-settings" open') == 1, "only its own group is open"
    answer = browser.get("/policies/balanced/edit/?set=ttl&to=1h")
    assert answer["Location"] == "/policies/new/?based_on=balanced&set=ttl&to=1h"
    page = page_of(browser, answer["Location"])
    assert "Cache TTL to request 1 hour for the system prompt → to 1 hour" in page.text
    for strange in ("set=nothing.here&to=3", "set=ttl&to=", "to=3"):
        assert "0 changes." in page_of(browser, f"/policies/ours/edit/?{strange}").text
    wrong = page_of(browser, "/policies/ours/edit/?set=compact.trigger&to=x")
    assert "Must be a number from 5 to 95 %" in wrong.text


def test_changes_are_shown_against_the_version_and_against_the_active_one(browser: Client):
    first = saved(PRESET)
    Team.objects.update(active=first)
    saved({**PRESET, "reserve": 9})
    sent = form_of({**PRESET, "reserve": 9, "board": 500}, do="check", seen="2")
    page = post(browser, "/policies/ours/edit/", sent)
    since, _, active = page.text.partition("Against ours@2")[2].partition("Against ours@1 active")
    assert "Show the board with up to never → to 500 tokens" in since
    assert "Keep free" not in since
    assert "Keep free for the output 16,384 tokens → to 9 tokens" in active


def test_a_setting_shows_what_it_did_alone_in_the_newest_simulation(browser: Client):
    first = saved(PRESET)
    Team.objects.update(active=first)
    second = saved({**PRESET, "reserve": 9})
    session = Session.objects.create(team=local_team(), external_id="s")
    made = Simulation.objects.create(
        team=local_team(), draft=second, active=first, sessions=[str(session.pk)]
    )
    for version, cost, recall in ((first, 1_000, 0.9), (second, 1_100, 0.95)):
        figures = dict.fromkeys(ADDED, 10) | {
            "cost_microusd": cost, "in_context": recall, "named": 0, "retrievable": 0, "lost": 0,
            "peak_tokens": 1, "window": 10, "cache_read_share": 0.5, "edits_feasible": 1.0,
            "said_in_context": 1.0, "ms_per_step": 1, "cost_recorded_microusd": 1_000,
        }  # fmt: skip
        SimulationResult.objects.create(
            simulation=made, session=session, version=version, state="s", figures=figures
        )
    page = page_of(browser, "/policies/ours/edit/")
    said = "16,384 tokens → 9 tokens: +10 % cost, +5.0 points recall 1 session"
    assert said in page.text, page.text[page.text.find("16,384 tokens →") :][:150]
    assert page.links["+10 % cost, +5.0 points recall"] == f"/lab/{made.pk}/"
    assert "effect unknown" in page.text
    Session.objects.update(demo=True)
    alone = page_of(browser, "/policies/ours/edit/").text
    assert said.replace("1 session", "1 demo session") in alone
    real = Session.objects.create(team=local_team(), external_id="real")
    beside = page_of(browser, "/policies/ours/edit/").text
    assert "+10 % cost" not in beside, "the demo's sessions are none of the team's"
    real.delete()
    Session.objects.update(demo=False)
    both = saved({**PRESET, "reserve": 9, "board": 500})
    Simulation.objects.update(draft=both)
    assert said not in page_of(browser, "/policies/ours/edit/").text, "two settings differ"
