"""The rollout pages, used like a person would."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from sessions.actions.accounts.teams import local_team
from sessions.actions.live.live_sessions import put_session, session_fields
from sessions.actions.policies import rollouts
from sessions.actions.policies.bounds import BOUNDS, defaults
from sessions.actions.policies.guardrail_findings import Findings
from sessions.actions.policies.guardrails import findings_of
from sessions.actions.policies.policies import active_version
from sessions.actions.policies.rollouts import CannotRollOut
from sessions.api.replay.watching import look
from sessions.models import Rollout, Session, Simulation, SimulationResult
from sessions.models.policies.rollouts import rollout_of_teams
from sessions.views.policies.rollouts import version_of
from tests.sessions.lab.test_simulated_sums import figures
from tests.sessions.pages import Page, page_of
from tests.sessions.policies.rolling_out import ids, in_state, person, proposed, running, version

pytestmark = pytest.mark.django_db

FORM = {"sessions": "5"} | {f"{name}_on": "on" for name in BOUNDS} | {
    name: str(bound.default) for name, bound in BOUNDS.items()
}  # fmt: skip
"""The form as rendered."""


def browser(role: str = "owner") -> Client:
    actor = person(role)
    assert actor.user is not None
    client = Client()
    client.force_login(actor.user)
    return client


def posted(client: Client, address: str, status: int = 302, **form: str) -> Any:
    answer = client.post(address, form)
    assert answer.status_code == status, answer.content
    return answer


def page(rollout: Rollout, role: str = "owner") -> Page:
    return page_of(browser(role), f"/rollouts/{rollout.pk}/")


def test_from_a_version_to_all_sessions_and_back():
    careful = version()
    editor, owner = browser("editor"), browser("owner")
    form = page_of(editor, "/policies/careful/1/propose/")
    assert "Propose careful@1" in form.text
    answer = posted(
        editor, "/policies/careful/1/propose/", **FORM | {"note": "Try it", "cost": "35"}
    )
    rollout = Rollout.objects.get()
    assert answer.headers["Location"] == f"/rollouts/{rollout.pk}/"
    assert rollout.guardrail == defaults() | {"cost": 35}
    seen = page(rollout, "editor")
    assert "cannot accept your own proposal" in seen.text
    assert posted(editor, f"/rollouts/{rollout.pk}/accept/", 409).status_code == 409
    posted(owner, f"/rollouts/{rollout.pk}/accept/")
    assert "running · 10 %" in page(rollout).text
    posted(owner, f"/rollouts/{rollout.pk}/widen/", share="50")
    twice = posted(owner, f"/rollouts/{rollout.pk}/widen/", 409, share="50")
    assert "next stage is 100 %" in Page(twice.content.decode()).text
    posted(owner, f"/rollouts/{rollout.pk}/widen/", share="100")
    assert active_version(local_team()) == careful
    assert "begin with this version already" in page_of(editor, "/policies/careful/1/propose/").text
    posted(editor, f"/rollouts/{rollout.pk}/roll_back/", reason="Costs too much")
    seen = page(rollout)
    assert "Costs too much" in seen.text
    assert "rolled back" in page_of(owner, "/rollouts/").text
    assert local_team().active is None


@pytest.mark.parametrize("state", Rollout.State.values)
@pytest.mark.parametrize("role", ["owner", "viewer"])
def test_each_state_has_its_page_and_says_why_not(state: str, role: str):
    rollout = in_state(state)
    seen = page(rollout, role)
    offered = set(seen.forms) - {"/logout/"}
    acts = {address.split("/")[3] for address in offered if str(rollout.pk) in address}
    assert acts - {"check"} == {
        "proposed": {"accept", "decline"}, "running": {"widen", "pause", "roll_back"},
        "paused": {"resume", "roll_back"}, "complete": {"roll_back"},
    }.get(state, set())  # fmt: skip
    assert ("Only owners and editors" in seen.text) == (role == "viewer" and bool(acts))
    assert "careful@1" in page_of(browser(role), "/rollouts/").text


def test_the_list_shows_what_is_under_way_what_waits_and_what_was():
    empty = page_of(browser(), "/rollouts/").text
    assert "All new sessions start with the same version" in empty
    assert "Nothing waits" in empty
    rollouts.roll_back(running(of=version("old")), person("owner"))
    proposed(version("waiting"))
    now = running(of=version("now"))
    seen = page_of(browser("viewer"), "/rollouts/")
    assert seen.links["now@1"] == f"/rollouts/{now.pk}/"
    assert {"old@1", "waiting@1"} <= seen.links.keys()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"cost": "x"}, "must be a whole number"),
        ({"recall": "101"}, "must be a whole number from 0 to 100"),
        ({"sessions": "0"}, "must be a whole number from 1 to 1000"),
        ({"note": "x" * 1001}, "at most 1000 characters"),
        ({"simulation": "missing"}, "There is no such simulation"),
        ({"simulation": "0" * 32}, "There is no such simulation"),
    ],
)
def test_what_is_wrong_in_the_form_stands_beside_its_field(given: dict[str, str], said: str):
    version()
    answer = posted(browser(), "/policies/careful/1/propose/", 422, **FORM | given)
    seen = Page(answer.content.decode())
    assert said in seen.text
    typed = [value for name, value in given.items() if name != "simulation"]
    assert all(value in seen.html for value in typed), "what was typed is still there"
    assert not Rollout.objects.exists()


def test_bounds_are_left_out_and_a_simulation_is_evidence():
    careful = version()
    simulation = Simulation.objects.create(team=local_team(), draft=careful, active=careful)
    simulation.versions.add(careful)
    form = page_of(browser(), f"/policies/careful/1/propose/?simulation={simulation.pk}")
    assert f'value="{simulation.pk}" selected' in form.html
    given = {name: value for name, value in FORM.items() if name != "reviews_on"}
    posted(browser(), "/policies/careful/1/propose/", **given | {"simulation": str(simulation.pk)})
    rollout = Rollout.objects.get()
    assert (rollout.guardrail["reviews"], rollout.simulation) == (None, simulation)
    assert page(rollout).links["The simulation that speaks for it"] == f"/lab/{simulation.pk}/"


def simulated(**draft: Any) -> Simulation:
    """A simulation of careful@1 on one session, with these figures of the draft."""
    careful, active = version(), active_version(local_team())
    session, _ = Session.objects.get_or_create(team=local_team(), external_id="a")
    simulation = Simulation.objects.create(
        team=local_team(), draft=careful, active=active, sessions=[str(session.pk)]
    )
    simulation.versions.add(careful, active)
    for one, found in ((None, figures()), (active, figures()), (careful, figures(**draft))):
        SimulationResult.objects.create(
            simulation=simulation, session=session, version=one, figures=found
        )
    return simulation


@pytest.mark.parametrize(
    ("draft", "said"),
    [
        (
            {"cost_microusd": 70, "in_context": 0.7},
            [
                "Worse on both: +40 % cost including reading back",
                "−30.0 points recall. Don't propose.",
                "Cost per model call: +40 %, at most +20 % allowed",
                "Recall in context: 70.0 %, at least 75 % allowed",
            ],
        ),
        # A trade that a limit forbids, and one that is worse within the limits.
        ({"cost_microusd": 40, "in_context": 0.7}, ["Recall in context: 70.0 %"]),
        (
            {"cost_microusd": 55},
            ["Worse: +10 % cost including reading back, same recall. Don't propose."],
        ),
    ],
)
def test_what_the_simulation_says_against_a_proposal_has_to_be_confirmed(
    draft: dict[str, Any], said: list[str]
):
    simulation = simulated(**draft)
    address = "/policies/careful/1/propose/"
    form = page_of(browser(), f"{address}?simulation={simulation.pk}")
    given = FORM | {"simulation": str(simulation.pk)}
    refused = posted(browser(), address, 422, **given).content.decode()
    assert "Not proposed yet." in refused
    for text in said:
        assert text in form.text
    assert form.text.count("already breaks") == sum(
        "allowed" in text or text.endswith("70.0 %") for text in said
    )
    assert "Propose anyway" in form.text
    assert 'class="button primary"' not in form.markup
    assert not Rollout.objects.exists()
    posted(browser(), address, **given | {"anyway": "1"})
    assert Rollout.objects.get().simulation == simulation


def test_a_limit_that_is_off_or_wider_is_not_broken_by_a_simulation():
    simulation = simulated(cost_microusd=40, in_context=0.7)
    given = FORM | {"simulation": str(simulation.pk), "recall": "70"}
    posted(browser(), "/policies/careful/1/propose/", **given)
    assert Rollout.objects.get().guardrail["recall"] == 70


def test_a_better_draft_is_proposed_at_once():
    simulation = simulated(cost_microusd=40)
    form = page_of(browser(), f"/policies/careful/1/propose/?simulation={simulation.pk}")
    assert "speaks against it" not in form.text
    assert 'class="button primary"' in form.markup


def test_what_the_simulation_found_stands_beside_accept():
    active = active_version(local_team())
    simulation = simulated(cost_microusd=60, tokens_sent=900, in_context=0.8)
    rollout = proposed()
    Rollout.objects.update(simulation=simulation)
    text = page(rollout).text
    for said in (
        "Cost +20 %",
        "Tokens sent −10 %",
        "Needed facts in context −20.0 points",
        "Sessions with higher cost 1 of 1",
        "Sessions with lower cost 0 of 1",
    ):
        assert said in text
    assert f"All in all over 1 session, against {active}" in text


def test_what_its_sessions_add_up_to_names_what_is_missing():
    rollout = running()
    for name in ids(rollout, inside=True, count=3):
        put_session(local_team(), name, session_fields({"outcome": "failed"}))
    seen = page(rollout)
    assert (
        "not enough yet: 3 of 5 sessions of the new side, 0 of 5 sessions of the other" in seen.text
    )
    assert seen.links["3"] == f"/sessions/?policy=careful@1&rollout={rollout.pk}"
    for name in ids(rollout, inside=False, count=5):
        put_session(local_team(), name, session_fields({"outcome": "succeeded"}))
    for name in ids(rollout, inside=True, count=5):
        put_session(local_team(), name, session_fields({"outcome": "failed"}))
    assert "100 points above, at most 10 allowed" in page(rollout).text
    seen = page(rollout)
    assert "without the limit on failed sessions" in seen.text
    assert "primary" not in seen.classes, "to go on stands out no more than to roll back"


def test_check_now_looks_and_pauses():
    rollout = running()
    for inside, outcome in ((True, "failed"), (False, "succeeded")):
        for name in ids(rollout, inside=inside, count=5):
            put_session(local_team(), name, session_fields({}))
            Session.objects.filter(external_id=name).update(outcome=outcome)
    assert Rollout.objects.get().state == "running"
    posted(browser("editor"), f"/rollouts/{rollout.pk}/check/")
    assert Rollout.objects.get().state == "paused"


def test_a_page_that_follows_it_hears_every_change():
    rollout = running()
    owner = person("owner").user
    topic = f"rollout:{rollout.pk}"
    stranger = User.objects.create(username="stranger")

    def seen(user: User | None) -> int | None:
        assert user is not None
        return look([user.pk], [], {topic}).version(user.pk, topic)

    first = seen(owner)
    assert first == version_of(rollout.pk)
    assert seen(stranger) is None
    put_session(local_team(), ids(rollout, inside=True)[0], session_fields({}))
    second = seen(owner)
    rollouts.pause(rollout, person("owner"))
    assert len({first, second, seen(owner)}) == 3


def test_a_page_does_not_hide_what_changed_while_it_was_made(monkeypatch: pytest.MonkeyPatch):
    rollout = running()

    def found(of: Rollout) -> Findings:
        rollouts.pause(of, person("owner"))  # after its row was read
        return findings_of(of)

    monkeypatch.setattr("sessions.views.policies.rollouts.findings_of", found)
    page = browser("owner").get(f"/rollouts/{rollout.pk}/").content.decode()
    assert "running" in page
    assert f'data-version="{version_of(rollout.pk)}"' not in page, "it would not ask again"


def test_rollouts_of_another_team_are_not_there():
    rollout = proposed()
    other = Client()
    stranger = User.objects.create(username="stranger")
    other.force_login(stranger)
    assert other.get(f"/rollouts/{rollout.pk}/").status_code == 404
    assert rollout_of_teams([], rollout.pk) is None
    with pytest.raises(CannotRollOut):
        rollouts.widen(rollout, 50, person("owner"))
