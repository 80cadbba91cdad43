"""The list of policies: what each does, and its effect on the team's sessions."""

from __future__ import annotations

from collections import Counter

import pytest

from compaction.context.session import Usage
from compaction.policies.presets import PRESETS
from sessions.actions.accounts.teams import local_team
from sessions.actions.jobs.jobs import enqueue
from sessions.actions.lab.simulate import simulate_session
from sessions.actions.lab.simulations import MOST_OTHERS
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


def test_policies_are_simulated_at_a_click_until_all_are_known() -> None:
    browser, team = signed_in(), local_team()
    assert "yet" not in page_of(browser, "/policies/").text.partition("Of this team")[0]
    stored = session(user("Read."), reads("c1", "t1", "a.py"), result("t1", "def load_all()"))
    read = append(team, stored, count, source="test").session
    measure(read)
    assert "No policy was simulated on your sessions yet" in page_of(browser, "/policies/").text
    answer = browser.post("/lab/newest/")
    first = Simulation.objects.get()
    assert answer["Location"] == f"/lab/{first.pk}/"
    assert first.versions.count() == MOST_OTHERS + 2
    assert first.job is not None and first.job.kind == "simulation"
    figures = {"needs": 1, "in_context": 1.0, "cost_microusd": 300}
    for one in first.versions.all():
        SimulationResult.objects.create(
            simulation=first, session=read, version=one, state="s", figures=figures
        )
    shown = page_of(browser, "/policies/").text
    assert f"{len(PRESETS) - MOST_OTHERS - 2} of {len(PRESETS)} policies were not" in shown
    browser.post("/lab/newest/")
    second = Simulation.objects.exclude(pk=first.pk).get()
    tried = set(first.versions.all()) | set(second.versions.all())
    assert len(tried) == len(PRESETS), "those whose effect is unknown come first"


def test_presets_that_differ_say_how() -> None:
    assert does(PRESETS["balanced"]) != does(PRESETS["balanced-lean"])


def test_without_prices_or_needs_there_is_no_share() -> None:
    assert _effect(Counter(sessions=2)) == Effect(2, None, None)
    assert _effect(Counter(sessions=2, cost=90, recorded=100, needs=4, kept=3)) == Effect(
        2, pytest.approx(-0.1), 0.75
    )
