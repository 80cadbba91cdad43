"""The list of policies: what each does, and its effect on the team's sessions."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from compaction.context.session import Usage
from compaction.policies.presets import DOES, PRESETS
from sessions.actions.accounts.audit import COMMAND
from sessions.actions.accounts.teams import local_team
from sessions.actions.demo.demo_tuning import BASE, DOCUMENT, NAME, NOTE
from sessions.actions.jobs.jobs import enqueue
from sessions.actions.lab.simulate import simulate_session
from sessions.actions.policies.policies import named_version, save_version
from sessions.actions.policies.policy_effects import (
    Effect,
    Effects,
    RecordedFigures,
    _effect,
    _Simulated,
    effects_of,
)
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.figures import day
from sessions.importers import records
from sessions.models import Job, Session, Simulation, SimulationResult
from sessions.views.policies.lean_or_balanced import preset_choice
from sessions.views.policies.policy_list import does
from tests.sessions.made import count, reads, result, session, user
from tests.sessions.pages import other_team, page_of, signed_in

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_each_preset_says_what_it_does_and_no_other_does(name: str) -> None:
    said = does(PRESETS[name])
    assert said == DOES[name] and said.endswith(".") and "  " not in said
    assert list(DOES.values()).count(said) == 1


@pytest.mark.parametrize("name", [one for one in PRESETS if one.startswith("sliding-window")])
def test_the_numbers_of_a_sliding_window_are_those_of_its_settings(name: str) -> None:
    window: Any = PRESETS[name].steps[0].parameters
    said = {int(one.replace(",", "")) for one in re.findall(r"[\d,]*\d", DOES[name])}
    settings = {window.primers, window.recents, window.budget}
    assert settings <= said
    optional = {window.messages, round(window.trigger * 100), PRESETS[name].task_budget}
    assert said <= settings | optional


def test_a_policy_of_a_team_says_what_its_steps_do() -> None:
    own = replace(PRESETS["offload-first"], name="own")
    assert does(own).count(".") == len(own.steps)


@pytest.fixture
def simulated() -> Session:
    """A session with a simulation of "sliding-window"."""
    made: list[records.Record] = [user("Read it twice.")]
    for step in (1, 2):
        made += [reads(f"c{step}", f"t{step}", "load_all.py"), result(f"t{step}", "def load_all()")]
        made.append(records.Call(f"c{step}", "claude-sonnet-4-5", usage=Usage(uncached=100)))
    stored = append(local_team(), session(*made), count, source="test").session
    measure(stored)
    simulate_session(stored, "sliding-window")
    return stored


@pytest.fixture
def lab(simulated: Session) -> Simulation:
    """A simulation in the lab of that session: "sliding-window" against "balanced" and recorded."""
    team = local_team()
    version, active = named_version(team, "sliding-window"), named_version(team, "balanced")
    made = Simulation.objects.create(
        team=team, draft=version, active=version, job=enqueue(team, "demo", {})
    )
    figures = {"needs": 4, "tokens_sent_recorded": 900, "peak_tokens": 90, "window": None}
    for under, cost, kept, sent in (
        (version, 250, 0.5, 450),
        (active, 150, 0.75, 600),
        (None, 400, 1.0, 900),
    ):
        again = {} if under is None else {"read_backs_microusd": 50}
        SimulationResult.objects.create(
            simulation=made,
            session=simulated,
            version=under,
            state="s",
            figures=figures
            | again
            | {"cost_microusd": cost, "in_context": kept, "tokens_sent": sent},
        )
    made.versions.set([version, active])
    Job.objects.update(state=Job.State.DONE)
    return made


@pytest.mark.usefixtures("simulated")
def test_a_simulation_of_a_session_is_an_effect_of_its_team() -> None:
    version = named_version(local_team(), "sliding-window")
    effect = effects_of(local_team()).of[version.pk]
    assert effect.sessions == 1 and effect.in_context == 1.0
    assert effects_of(other_team()) == Effects(None, {}, {})


def test_the_lab_counts_and_the_newest_simulation_of_a_session_only(lab: Simulation) -> None:
    team = local_team()
    version, active = named_version(team, "sliding-window"), named_version(team, "balanced")
    effects = effects_of(team, active.pk)
    when = day(lab.created)
    assert effects.recorded == RecordedFigures(1, 400, 1.0, needs=4, when=when)
    assert effects.of[version.pk] == Effect(1, -0.25, 0.5, -0.5, lab.pk, when)
    assert effects.against_active == {version.pk: Effect(1, 0.5, -0.25, -0.25, lab.pk, when)}
    assert effects.pair is None
    pair = effects_of(team, pair=(active.pk, version.pk)).pair
    assert pair is not None and (pair.sessions, pair.simulation) == (1, lab.pk)
    assert (pair.change, pair.in_context) == (pytest.approx(-1 / 3), 0.25)


def test_a_policy_has_the_figures_of_its_newest_simulation_that_has_ended(lab: Simulation) -> None:
    """Those of the simulation's page and of the dashboard, whatever was simulated before."""
    team = local_team()
    version, active = named_version(team, "sliding-window"), named_version(team, "balanced")
    other = append(team, session(user("Look.")), count, source="test").session
    newer = Simulation.objects.create(
        team=team, draft=version, active=active, job=enqueue(team, "demo", {"at": 2})
    )
    newer.versions.add(version)
    for of, cost in ((None, 1_000), (version, 900)):
        SimulationResult.objects.create(
            simulation=newer, session=other, version=of, state="s",
            figures={"needs": 1, "cost_microusd": cost, "read_backs_microusd": 0},
        )  # fmt: skip
    found = effects_of(team, active.pk)
    assert found.of[version.pk].simulation == lab.pk, "the newer one still runs"
    Job.objects.update(state=Job.State.DONE)
    found = effects_of(team, active.pk)
    effect = found.of[version.pk]
    assert (effect.sessions, effect.simulation) == (1, newer.pk)
    assert effect.change == pytest.approx(-0.1)
    assert found.recorded is not None and found.recorded.cost_microusd == 1_000
    assert found.of[active.pk].simulation == lab.pk, "its newest is the older one"
    assert version.pk not in found.against_active, "not compared over different sessions"


def test_replays_of_single_sessions_say_so() -> None:
    figures = {"needs": 1, "in_context": 1.0}
    at = datetime(2025, 11, 2, tzinfo=UTC)
    rows = [
        _Simulated(at + timedelta(days=late), 1, UUID(int=late), figures, 100, UUID(int=run))
        for late, run in ((0, 1), (1, 1))
    ]
    assert _effect(rows[:1]).when == "Nov 2, 2025"
    replayed = [replace(one, simulation=None) for one in rows]
    assert _effect(replayed).when == "Nov 2, 2025 – Nov 3, 2025, in replays"


def test_pages_and_api_show_the_effect_of_a_policy(lab: Simulation) -> None:
    page = page_of(signed_in(), "/policies/")
    assert DOES["sliding-window"] in page.text
    assert page.html.count('<tr class="recorded-row">') == 1
    assert "recorded What happened: with the agent" in page.text
    on = f"1 {day(lab.created)}"
    assert page.text.count(f" 0 {on} ") == 2, "sessions managed, and simulated when"
    assert (
        "balanced@1 against recorded: −50 % cost including reading back, and 75.0 % of what was "
        "needed"
    ) in page.text
    assert "100 % of 4 uses of facts, in all steps of 1 session" in page.text
    assert "−25 % −50 % 50.0 % +50 % cost −25.0 points recall" in page.text
    compared = f"/lab/{lab.pk}/?of=sliding-window%401"
    assert page.links["−25 %"] == compared
    assert "(recorded 100 %)" in page_of(signed_in(), "/policies/sliding-window/").text
    shown = page_of(signed_in(), compared).text
    assert "sessions, against what was recorded" in shown
    body = signed_in().get(f"/api/v1/simulations/{lab.pk}?of=balanced@1").json()
    assert (body["draft"], body["against"]) == ("balanced@1", "recorded")
    assert "recording: cheaper, but keeps less: −50 % cost" in body["verdict"]["sentence"]
    assert signed_in().get(f"/lab/{lab.pk}/?of=offload-first@1").status_code == 404


def test_policies_are_simulated_at_a_click_until_all_are_known() -> None:
    browser, team = signed_in(), local_team()
    assert "yet" not in page_of(browser, "/policies/").text.partition("Of this team")[0]
    stored = session(user("Read."), reads("c1", "t1", "a.py"), result("t1", "def load_all()"))
    read = append(team, stored, count, source="test").session
    measure(read)
    save_version(team, NAME, DOCUMENT, BASE, NOTE, None, COMMAND)
    assert "No policy was simulated on your sessions yet" in page_of(browser, "/policies/").text
    offered = [browser.get(f"/sessions/{read.pk}/").content.decode()]
    Session.objects.filter(pk=read.pk).update(demo=True)
    offered.append(browser.get(f"/sessions/{read.pk}/").content.decode())
    Session.objects.filter(pk=read.pk).update(demo=False)
    assert ['"careful@1"' in one for one in offered] == [False, True], "the Run menu"
    answer = browser.post("/lab/newest/")
    first = Simulation.objects.get()
    assert answer["Location"] == "/policies/"
    assert first.draft == first.active, "no policy that nobody chose is the draft"
    tried = {one.policy.name for one in first.versions.select_related("policy")}
    assert tried == set(PRESETS), "the demo's own policy is not the team's"
    assert first.job is not None and first.job.kind == "simulation"
    shown = page_of(browser, "/policies/")
    assert "Simulating policies: 0 of 1 session done" in shown.text
    assert shown.links["Results so far"] == f"/lab/{first.pk}/"
    assert "careful demo on offload-first" in shown.text
    figures = {"needs": 1, "in_context": 1.0, "cost_microusd": 300}
    for one in first.versions.all():
        SimulationResult.objects.create(
            simulation=first, session=read, version=one, state="s", figures=figures
        )
    first.job.delete()
    again = page_of(browser, "/policies/").text
    assert "simulated on your sessions yet" not in again and "those with lost facts" in again


@pytest.mark.parametrize(
    ("changed", "kept", "said"),
    [
        (-0.25, 0.5, "Use balanced-lean to spend less, balanced to keep more in context"),
        (0.1, 0.9, "Use balanced to spend less, balanced-lean to keep more in context"),
        (0.1, 0.75, "Use balanced :"),
        (-0.25, 0.75, "Use balanced-lean :"),
        (0, 0.75, "Use either: balanced and balanced-lean do the same on your sessions"),
    ],
)
def test_a_sentence_answers_which_preset_to_use(
    lab: Simulation, changed: float, kept: float, said: str
) -> None:
    Job.objects.update(state=Job.State.QUEUED)
    unknown = page_of(signed_in(), "/policies/").text
    assert "Unknown whether balanced or balanced-lean fits your sessions" in unknown
    lean = named_version(local_team(), "balanced-lean")
    figures = SimulationResult.objects.get(version=lab.active).figures
    SimulationResult.objects.create(
        simulation=lab,
        session=SimulationResult.objects.first().session,  # type: ignore[union-attr]
        version=lean,
        state="s",
        figures=figures | {"cost_microusd": 150 + round(200 * changed), "in_context": kept},
    )
    lab.versions.add(lean)
    part = page_of(signed_in(), "/policies/").text
    assert "known once the simulation that is under way has ended" in part
    Job.objects.update(state=Job.State.DONE)
    page = page_of(signed_in(), "/policies/")
    assert (
        said.replace(" :", ":") in page.text
        and f"; simulated on 1 session ({day(lab.created)})." in page.text
    )
    assert ("balanced-lean costs 25 % less than balanced" in page.text) is (changed == -0.25)
    assert ("keeps 25.0 points more" in page.text) is (kept == 0.5)
    assert page.links["Compare in the lab"] == f"/lab/{lab.pk}/?of=balanced-lean%401"


@pytest.mark.parametrize(
    ("changes", "said"),
    [((0.1, 0.0), "use neither"), ((0.1, -0.1), "Use balanced"), ((0.1, None), "Use balanced")],
)
def test_neither_preset_is_advised_if_both_cost_more_than_was_recorded(
    changes: tuple[float | None, ...], said: str
) -> None:
    lean = named_version(local_team(), "balanced-lean")
    against = [Effect(3, change, 0.9) for change in changes]
    chosen = preset_choice(lean, Effect(3, 0.1, 0.0), against, simulating=False)
    assert said in chosen.advice


def test_presets_that_differ_say_how() -> None:
    assert does(PRESETS["balanced"]) != does(PRESETS["balanced-lean"])


def test_without_prices_or_needs_there_is_no_share() -> None:
    figures = {"needs": 0, "in_context": None, "cost_microusd": None}
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert _effect([_Simulated(now, 1, UUID(int=1), figures, 100)]) == Effect(
        1, None, None, when=f"{day(now)}, in replays"
    )
