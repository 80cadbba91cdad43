"""The lab's pages as rendered: starting points of drafts, rights, and past simulations."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from compaction.policies.policy import to_dict
from compaction.policies.presets import PRESETS
from sessions.actions.accounts.audit import COMMAND, DEMO
from sessions.actions.accounts.teams import local_team
from sessions.actions.demo.demo_tuning import BASE, DOCUMENT, NAME, NOTE
from sessions.actions.jobs import jobs
from sessions.actions.lab import simulations
from sessions.actions.policies.policies import save_version
from sessions.models import PolicyVersion, Session, Simulation, SimulationResult, Team
from tests.sessions.lab.simulated import log, store
from tests.sessions.pages import other_team, page_of
from tests.sessions.people import browser, member

HERE = {"by": "query", "limit": 20}


@pytest.fixture
def team(db: None, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setattr(jobs, "wake", lambda *_: None)
    return local_team()


@pytest.fixture
def owner(team: Team) -> Client:
    return browser(member(team, "ada"))


def props(client: Client, address: str, name: str = "lab-props") -> dict[str, Any]:
    """The props of the page's component."""
    html = page_of(client, address).html
    data = html.split(f'<script id="{name}" type="application/json">')[1].split("</script>")[0]
    return dict(json.loads(data))


def saved(team: Team, name: str, age: int) -> PolicyVersion:
    document = {"steps": [{"strategy": "offload", "parameters": {"age": age}}]}
    return save_version(team, name, document, "", "", None, COMMAND)


def tried(team: Team, draft: PolicyVersion, figures: dict[str, Any] | None) -> Simulation:
    """A simulation with equal results for each session; None: no results yet."""
    made = simulations.ask(team, HERE, draft, [], "", COMMAND)
    if figures is not None:
        for session in made.sessions:
            for version in (None, *made.versions.all()):
                SimulationResult.objects.create(
                    simulation=made,
                    session_id=session,
                    version=version,
                    figures=figures,
                )
    return made


FIGURES = {
    "steps": 4, "tokens_sent": 900, "tokens_sent_recorded": 1000, "peak_tokens": 300,
    "window": 200_000, "cost_microusd": 50, "cost_recorded_microusd": 60,
    "read_backs_microusd": 0,
    "cache_read_share": 0.5, "compactions": 0, "revisions": 1, "read_back_tokens": 0, "needs": 4,
    "in_context": 0.75, "named": 0.0, "retrievable": 0.25, "lost": 0.0, "costliest": None,
    "ms_per_step": 0.1,
}  # fmt: skip


def test_without_sessions_it_says_where_they_come_from(owner: Client):
    page = page_of(owner, "/lab/")
    assert "No sessions to simulate" in page.text
    assert page.links["Import"] == "/imports/"


def test_it_begins_from_the_active_policy_or_from_what_the_address_names(team, owner):
    store(team, log("one", 3))
    given = props(owner, "/lab/")
    assert (given["draft"]["ref"], given["active"]["ref"]) == ("balanced", "balanced")
    assert given["draft"]["document"] == to_dict(PRESETS["balanced"])
    assert given["draft"]["origins"]["reserve"] == "preset"
    assert [one["title"] for one in given["sessions"]] == ["Find the port in the settings."]
    version = saved(team, "ours", age=9)
    team.active = version
    team.save()
    given = props(owner, "/lab/?draft=sliding-window")
    assert (given["draft"]["ref"], given["active"]["ref"]) == ("sliding-window", "ours@1")
    assert given["policies"][0] | {"note": ""} == {
        "ref": "ours@1", "name": "ours", "note": "", "active": True,
    }  # fmt: skip
    assert owner.get("/lab/?draft=missing@7").status_code == 404


def test_the_policy_of_the_demo_is_offered_only_with_the_demo(team, owner):
    store(team, log("mine", 3))
    Session.objects.create(team=team, external_id="shown", demo=True, step_count=3)
    save_version(team, NAME, DOCUMENT, BASE, NOTE, None, DEMO)
    refs = {one["ref"] for one in props(owner, "/lab/")["policies"]}
    assert f"{NAME}@1" not in refs and "balanced" in refs
    assert f"{NAME}@1" in {one["ref"] for one in props(owner, "/lab/?demo=1")["policies"]}


def test_it_goes_on_from_a_simulation_with_its_draft_and_sessions(team, owner):
    store(team, log("one", 3))
    made = tried(team, saved(team, "ours", age=9), None)
    given = props(owner, f"/lab/?simulation={made.pk}")
    assert (given["draft"]["ref"], given["choice"]) == ("ours@1", made.chosen)
    for strange in ("none", str(uuid4())):
        assert props(owner, f"/lab/?simulation={strange}")["draft"]["ref"] == "balanced"


def test_a_draft_gets_its_origins_and_remarks_and_is_not_stored(team, owner):
    document = to_dict(PRESETS["offload-first"])
    document["steps"][3]["parameters"]["trigger"] = 0.94
    asked = {"document": document, "based_on": "offload-first", "window": 100_000}
    before = PolicyVersion.objects.count()
    result = owner.post("/lab/draft/", json.dumps(asked), "application/json").json()
    path = "steps[3].parameters.trigger"
    assert result["origins"][path] == "policy"
    assert any(one["path"] == path for one in result["remarks"])
    assert {one["path"] for one in result["fields"]} >= {path, "reserve"}
    document["steps"][3]["parameters"]["trigger"] = 7
    result = owner.post("/lab/draft/", json.dumps(asked), "application/json").json()
    assert result == {"problem": {"path": path, "text": "must be a number from 0.05 to 0.95"}}
    assert PolicyVersion.objects.count() == before


@pytest.mark.parametrize(
    ("body", "status"),
    [("", 422), ("[]", 422), ("{", 422), ('{"ref": "missing"}', 404), ('{"document": 7}', 200)],
)
def test_what_is_no_draft_is_refused_in_words(owner: Client, body: str, status: int):
    answer = owner.post("/lab/draft/", body, "application/json")
    assert answer.status_code == status
    if status != 404:
        result = answer.json()
        assert result["detail"] if status == 422 else result["problem"]["text"]


@pytest.mark.parametrize(("role", "may"), [("owner", True), ("editor", True),
                                           ("reviewer", False), ("viewer", False)])  # fmt: skip
def test_everybody_looks_and_estimates_and_who_may_write_runs(team, role, may):
    store(team, log("one", 3))
    made = tried(team, saved(team, "ours", age=9), FIGURES)
    client = browser(member(team, "bob", role))
    assert props(client, "/lab/")["may_write"] is may
    assert props(client, f"/lab/{made.pk}/", "simulation-props")["may_write"] is may
    draft = client.post("/lab/draft/", '{"ref": "recitation"}', "application/json")
    assert draft.json()["name"] == "recitation"


def test_a_simulation_without_results_and_one_with_them(team, owner):
    store(team, log("one", 3), log("two", 3))
    waiting = tried(team, saved(team, "ours", age=9), None)
    page = page_of(owner, f"/lab/{waiting.pk}/")
    assert "0 of 2 sessions are through (queued)" in page.text
    made = tried(team, saved(team, "ours", age=8), FIGURES)
    assert "2 of 2 sessions are through" in page_of(owner, f"/lab/{made.pk}/").text
    beside = owner.get(f"/lab/{made.pk}/beside/").json()
    assert [one["draft"]["in_context"] for one in beside["sessions"]] == [0.75, 0.75]
    assert [one["id"] for one in beside["sessions"]] == made.sessions
    listed = page_of(owner, "/lab/")
    assert listed.links["ours@1"] == f"/lab/{waiting.pk}/"
    assert "0 of 2" in listed.text


def test_every_draft_of_the_policy_on_the_same_sessions_is_a_point(team, owner):
    store(team, log("one", 3), log("two", 3))
    first = tried(team, saved(team, "ours", age=9), FIGURES)
    tried(team, saved(team, "theirs", age=7), FIGURES | {"cost_microusd": 70})
    cheaper = FIGURES | {"cost_microusd": 30, "in_context": 0.5}
    second = tried(team, saved(team, "ours", age=8), cheaper)
    unfinished = tried(team, saved(team, "ours", age=7), None)
    points = owner.get(f"/lab/{second.pk}/beside/").json()["tried"]
    assert [(one["ref"], one["role"], one["cost"], one["url"]) for one in points] == [
        ("balanced@1", "active", 60, None),
        ("ours@1", "tried", 100, f"/lab/{first.pk}/"),
        ("ours@2", "draft", 60, None),
    ]
    others = owner.get(f"/lab/{unfinished.pk}/beside/").json()["tried"]
    assert "ours@3" not in [one["ref"] for one in others]


def test_a_simulation_of_another_team_is_not_there(team, owner):
    theirs = other_team()
    store(theirs, log("secret", 3))
    made = tried(theirs, saved(theirs, "ours", age=9), FIGURES)
    for address in (f"/lab/{made.pk}/", f"/lab/{made.pk}/beside/", f"/lab/{uuid4()}/"):
        assert owner.get(address).status_code == 404
    store(team, log("one", 3))
    assert props(owner, f"/lab/?simulation={made.pk}")["draft"]["ref"] == "balanced"
    assert str(made.pk) not in page_of(owner, "/lab/").html
