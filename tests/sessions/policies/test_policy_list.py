"""The list of policies: what each does, and its effect on the team's sessions."""

from __future__ import annotations

from collections import Counter

import pytest

from compaction.context.session import Usage
from compaction.policies.presets import PRESETS
from sessions.actions.accounts.teams import local_team
from sessions.actions.jobs.jobs import enqueue
from sessions.actions.lab.simulate import simulate_session
from sessions.actions.policies.policies import named_version
from sessions.actions.policies.policy_effects import Effect, _effect, effects_of
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.importers import records
from sessions.models import Simulation, SimulationResult
from sessions.views.policies.policies import does
from tests.sessions.made import count, reads, result, session, user
from tests.sessions.pages import other_team, page_of, signed_in

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_each_preset_says_what_it_does(name: str) -> None:
    said = does(PRESETS[name])
    assert said.endswith(".") and "  " not in said
    assert said.count(".") >= len(PRESETS[name].steps)


def test_the_list_shows_the_effect_on_the_teams_sessions() -> None:
    made: list[records.Record] = [user("Read it twice.")]
    for step in (1, 2):
        made += [reads(f"c{step}", f"t{step}", "load_all.py"), result(f"t{step}", "def load_all()")]
        made.append(records.Call(f"c{step}", "claude-sonnet-4-5", usage=Usage(uncached=100)))
    stored = append(local_team(), session(*made), count, source="test").session
    measure(stored)
    simulate_session(stored, "sliding-window")
    version = named_version(local_team(), "sliding-window")
    effect = effects_of(local_team())[version.pk]
    assert effect.sessions == 1 and effect.in_context == 1.0
    assert effects_of(other_team()) == {}
    # The lab counts too, the newest of a session only.
    team = local_team()
    lab = Simulation.objects.create(
        team=team, draft=version, active=version, job=enqueue(team, "demo", {})
    )
    figures = {"needs": 4, "in_context": 0.5, "cost_microusd": 300}
    for under, of in ((version, figures), (None, {**figures, "cost_microusd": 400})):
        SimulationResult.objects.create(
            simulation=lab, session=stored, version=under, state="s", figures=of
        )
    assert effects_of(team)[version.pk] == Effect(1, -0.25, 0.5)
    SimulationResult.objects.all().delete()
    shown = page_of(signed_in(), "/policies/").text
    assert "Keeps the first messages, a short summary, and the newest messages." in shown
    assert "100 %" in shown


def test_presets_are_simulated_at_a_click_where_nothing_was() -> None:
    browser = signed_in()
    assert "yet" not in page_of(browser, "/policies/").text.partition("Of this team")[0]
    stored = session(user("Read."), reads("c1", "t1", "a.py"), result("t1", "def load_all()"))
    measure(append(local_team(), stored, count, source="test").session)
    assert "No policy was simulated on your sessions yet" in page_of(browser, "/policies/").text
    answer = browser.post("/lab/presets/")
    made = Simulation.objects.get()
    assert answer["Location"] == f"/lab/{made.pk}/"
    assert made.versions.count() == 6
    assert made.job is not None and made.job.kind == "simulation"


def test_presets_that_differ_say_how() -> None:
    assert does(PRESETS["balanced"]) != does(PRESETS["balanced-lean"])


def test_without_prices_or_needs_there_is_no_share() -> None:
    assert _effect(Counter(sessions=2)) == Effect(2, None, None)
    assert _effect(Counter(sessions=2, cost=90, recorded=100, needs=4, kept=3)) == Effect(
        2, pytest.approx(-0.1), 0.75
    )
