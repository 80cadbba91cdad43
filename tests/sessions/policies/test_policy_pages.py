"""Policies on pages: the list, versions, presets."""

from __future__ import annotations

import pytest
from django.test import Client, override_settings

from compaction.policies.fields import fields
from compaction.policies.presets import PRESETS
from compaction.policies.yaml import read
from sessions.actions.accounts.audit import COMMAND
from sessions.actions.accounts.teams import local_team
from sessions.actions.policies.policies import named_version, save_version
from sessions.models import PolicyVersion, Rollout, Session, Simulation
from sessions.models.record.sessions import SOURCE_LIVE
from sessions.views.policies.policy_list import does
from tests.sessions.pages import other_team, page_of
from tests.sessions.policies.forms import PRESET, saved

pytestmark = pytest.mark.django_db


def test_the_list_tells_where_each_policy_is_in_use(browser: Client):
    page = page_of(browser, "/policies/")
    assert "No policy of your own yet" in page.text
    assert f"balanced {does(PRESETS['balanced'])} @1 active" in page.text
    first = saved(note="careful")
    saved({"reserve": 0})
    team = local_team()
    team.active = first
    team.save()
    Rollout.objects.create(
        team=team, version=named_version(team, "ours@2"), state="running", share=10
    )
    Session.objects.create(team=team, external_id="a", policy_version=first)
    page = page_of(browser, "/policies/")
    assert "ours on offload-first" in page.text
    assert "@1 active" in page.text
    assert "@2 running, 10 % of new sessions" in page.text
    assert "1 warning" in page.text, "nothing is kept free for the output"
    assert f"balanced {does(PRESETS['balanced'])} –" in page.text


def test_an_id_for_each_request_gets_a_remark(browser: Client):
    team = local_team()
    for number in range(9):
        Session.objects.create(
            team=team, external_id=f"a{number}", agent="chat<b>", source=SOURCE_LIVE, step_count=1
        )
    for more in ({"step_count": 2}, {"parent_external_id": "p"}, {"source": "codex"}):
        given = {"team": team, "agent": "chat<b>", "source": SOURCE_LIVE, "step_count": 1} | more
        Session.objects.create(external_id=str(more), **given)
    theirs = {"agent": "chat<b>", "source": SOURCE_LIVE, "step_count": 1}
    Session.objects.create(team=other_team(), external_id="b", **theirs)
    assert "A session id for each request?" not in page_of(browser, "/policies/").text
    Session.objects.create(team=team, external_id="c", **theirs)
    page = page_of(browser, "/policies/")
    assert "A session id for each request?" in page.text
    assert "started 10 single-step sessions" in page.text and "chat<b>" not in page.html


def test_a_default_that_names_nothing_is_reported(browser: Client):
    with override_settings(DEFAULT_POLICY="gone"):
        page = page_of(browser, "/policies/")
        assert "New sessions have no policy" in page.text
        assert page_of(browser, "/policies/passthrough/").title


def test_a_policy_tells_its_versions_newest_first_and_what_changed(browser: Client):
    saved(note="the first of them")
    saved({"steps": PRESET["steps"][:3], "reserve": 5})
    version = named_version(local_team(), "ours@2")
    simulation = Simulation.objects.create(
        team=local_team(), draft=version, active=version, sessions=["a", "b"]
    )
    simulation.versions.add(version)
    page = page_of(browser, "/policies/ours/")
    assert page.text.index("@2") < page.text.index("the first of them")
    assert "Keep free for the output 16,384 tokens → to 5 tokens" in page.text
    assert "compact removed" in page.text
    assert "simulated over 2 sessions" in page.text
    assert page.links["Edit"] == "/policies/ours/edit/"
    assert page.links["@1"] == "/policies/ours/1/"


@pytest.mark.parametrize("name", ["balanced", "seven-principles"])
def test_a_presets_own_page_shows_its_values_with_their_origin(browser: Client, name: str):
    page = page_of(browser, f"/policies/{name}/")
    values = page.text.partition("Values of")[2]
    for field in fields(PRESETS[name]):
        assert field.label in values
    assert "preset" in values and "default" in values
    assert f"/policies/{name}/1/" in page.html


def test_a_list_of_words_tells_what_came_and_went(browser: Client):
    saved({"steps": [{"strategy": "offload", "parameters": {"exclude": ["Read", "Task"]}}]})
    saved({"steps": [{"strategy": "offload", "parameters": {"exclude": ["Task", "Grep"]}}]})
    assert "Never offload these tools − Read + Grep" in page_of(browser, "/policies/ours/").text


def test_a_version_tells_every_value_its_origin_and_remarks(browser: Client):
    step = {"strategy": "compact", "parameters": {"trigger": 0.95}}
    saved({"steps": [PRESET["steps"][0], PRESET["steps"][2], step]})
    page = page_of(browser, "/policies/ours/1/")
    assert "Keep free for the output 16,384 tokens preset" in page.text
    assert "last seen more than 4 steps ago preset" in page.text
    assert "Keep results of the newest 5 steps default" in page.text
    assert "Compact when the window is 95 % full policy" in page.text
    assert "Warning: Less than 10 % is left" in page.text
    assert {"origin-policy", "origin-preset", "origin-default"} <= set(page.classes)
    assert page.links["Download"] == "?as=yaml"
    assert "trigger: 0.95 # policy" in page.text
    assert "no compaction of this version has been reviewed" in page.text
    assert "Edit from this version" not in page.text


def test_an_older_version_leads_to_the_newer_and_can_be_begun_from(browser: Client):
    saved()
    saved({"reserve": 5})
    page = page_of(browser, "/policies/ours/1/")
    assert page.links["@2"] == "/policies/ours/2/"
    assert page.links["Edit from this version"] == "/policies/ours/edit/?from=1"
    draft = page_of(browser, "/policies/ours/edit/?from=1")
    assert 'value="16384"' in draft.html
    assert "Save as @3" in draft.text


def test_a_version_is_downloaded_as_yaml(browser: Client):
    saved({"reserve": 5})
    answer = browser.get("/policies/ours/1/?as=yaml")
    assert answer["Content-Disposition"] == 'attachment; filename="ours-1.yaml"'
    found = read(answer.content.decode())
    assert (found.document["reserve"], found.based_on) == (5, "offload-first")


def test_a_version_of_another_release_is_shown_though_it_cannot_run(browser: Client):
    saved()
    strange = {"name": "ours", "steps": [{"strategy": "gone", "parameters": {}}]}
    PolicyVersion.objects.filter(policy__name="ours").update(document=strange)
    page = page_of(browser, "/policies/ours/1/")
    assert "This release cannot run it" in page.text
    assert "steps[0].strategy" in page.text
    assert "Remarks unknown" in page.text
    assert "Propose" not in page.links
    assert "cannot run in this release" in page_of(browser, "/policies/").text
    assert page_of(browser, "/policies/ours/edit/").title


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_looked_at_and_based_upon_but_not_changed(browser: Client, name: str):
    page = page_of(browser, f"/policies/{name}/1/")
    assert page.links["Base a policy on it"] == f"/policies/new/?from={name}@1"
    assert "Edit" not in page.links
    answer = browser.get(f"/policies/{name}/edit/")
    assert (answer.status_code, answer["Location"]) == (302, f"/policies/new/?based_on={name}")
    draft = page_of(browser, answer["Location"])
    assert f'name="based_on" value="{name}"' in draft.html


@pytest.mark.parametrize(
    "address",
    ["/policies/none/", "/policies/none/1/", "/policies/offload-first/7/", "/policies/none/edit/",
     "/policies/new/?based_on=none", "/policies/new/?from=ours@9", "/policies/a%00b/"],
)  # fmt: skip
def test_what_is_not_there_is_missing(browser: Client, address: str):
    assert browser.get(address).status_code == 404


def test_another_teams_policy_is_as_good_as_none(browser: Client):
    save_version(other_team(), "theirs", {}, "", "", None, COMMAND)
    assert browser.get("/policies/theirs/").status_code == 404
    assert "theirs" not in page_of(browser, "/policies/").text
