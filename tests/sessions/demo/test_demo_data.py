"""Demo data in figures: counted while there is nothing else, said on the page, and removable."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest
from django.apps import apps
from django.db.models import Q

from compaction.policies.presets import PRESETS
from sessions import demo
from sessions.actions.accounts.audit import COMMAND
from sessions.actions.accounts.teams import local_team
from sessions.actions.budgets.budgets import BudgetFields, put_budget
from sessions.actions.dashboard.day_totals import keep_totals
from sessions.actions.demo.demo import REMOVAL, load_demo, removal_job, simulate_demo
from sessions.actions.demo.demo_live import begin_live
from sessions.actions.demo.demo_tuning import tune_demo, work_now
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import Running
from sessions.actions.policies.policy_effects import effects_of
from sessions.actions.record.append import append
from sessions.models import AuditEntry, Job, Policy, Session
from sessions.models.dashboard.dashboards import extent
from sessions.models.dashboard.matching import matching
from sessions.models.record.demo_data import listed
from tests.sessions.demo.played import NOW, count
from tests.sessions.made import reading
from tests.sessions.pages import page_of, signed_in

KEPT = {"AuditEntry", "Job", "Policy", "PolicyVersion"}
"""Who did what stays, and so do the presets that a team has once it used one."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = tuple(part for part in demo.PARTS if part.name == "codex")
    monkeypatch.setattr(demo, "PARTS", parts)
    monkeypatch.setattr(demo, "EXTERNAL_IDS", tuple(part.external_id for part in parts))


def counted() -> int:
    """Sessions in the team's figures, from what is kept and from what is due."""
    due = extent(local_team(), 0).sessions
    keep_totals(local_team())
    assert extent(local_team(), 0).sessions == due
    return due


@pytest.mark.django_db
@pytest.mark.usefixtures("small")
def test_demo_sessions_count_only_while_there_are_no_others():
    team = local_team()
    (session,) = load_demo(team, count, NOW)
    simulate_demo([session], presets=("balanced",))
    spend = Q(step_count__gt=0)
    assert counted() == 1
    assert effects_of(team).of
    assert [one.pk for one in matching(team, counted=spend).filter(listed(team.pk))] == [session.pk]
    real = append(team, reading(3), count, source="test").session
    assert counted() == 1
    assert extent(team, 0).spent is None
    assert not effects_of(team).of
    assert session.pk not in {
        one.pk for one in matching(team, counted=spend).filter(listed(team.pk))
    }
    Session.objects.filter(pk=real.pk).delete()
    assert counted() == 1
    assert extent(team, 0).spent == session.cost_microusd


@pytest.mark.django_db
@pytest.mark.usefixtures("small")
def test_pages_say_so_and_offer_to_remove_it():
    client = signed_in()
    load_demo(local_team(), count, NOW)
    for url in ("/dashboard/?range=all", "/start/"):
        page = page_of(client, url)
        assert "All sessions here are made up." in page.text
        assert "/start/demo/remove/?team=local" in page.forms
    begin_live(local_team(), NOW, count)
    assert "demo-writer" in page_of(client, "/budgets/").text
    put_budget(local_team(), BudgetFields("agent", "scout", tokens=9_000), COMMAND)
    append(local_team(), reading(3), count, source="test")
    budgets = page_of(client, "/budgets/").text
    assert "scout" in budgets
    assert "demo-writer" not in budgets
    for url in ("/dashboard/?range=all", "/start/"):
        assert "3 demo sessions are left out." in page_of(client, url).text
    answer = client.post("/start/demo/remove/")
    job = Job.objects.get(kind=REMOVAL)
    assert answer.headers["Location"] == f"/jobs/{job.pk}/"
    assert AuditEntry.objects.get(action="demo.removal").named == str(job.pk)


def rows() -> dict[str, int]:
    models = apps.get_app_config("agent_sessions").get_models()
    found = {model.__name__: model.objects.count() for model in models}
    return {name: many for name, many in found.items() if name not in KEPT}


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("small")
def test_removal_leaves_nothing_of_the_demo():
    team = local_team()
    append(team, reading(3), count, source="test")
    work_now(team)
    keep_totals(team)
    before = rows()
    added = load_demo(team, count, NOW)
    simulate_demo(added, presets=("balanced",))
    tune_demo(team, added)
    begin_live(team, NOW, count)
    work_now(team)
    keep_totals(team)
    assert rows() != before
    job = jobs.enqueue(team, REMOVAL, {})
    assert removal_job(Running(job, uuid.uuid4())).result == {"removed": 3}
    work_now(team)
    keep_totals(team)
    after = rows()
    assert {name: after[name] - many for name, many in before.items() if after[name] != many} == {}
    assert set(Policy.objects.values_list("name", flat=True)) <= set(PRESETS)
    assert not Session.objects.filter(demo=True).exists()
    assert set(Job.objects.values_list("kind", flat=True)) <= {REMOVAL, "index", "tend", "assess"}


@pytest.mark.django_db
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("url", ["/dashboard/?range=all", "/cache/?range=all"])
def test_names_that_the_demo_has_too_stay_among_the_filters(url: str):
    client = signed_in()
    (demo_session,) = load_demo(local_team(), count, NOW)
    real = replace(reading(3), agent=demo_session.agent, model=demo_session.model)
    append(local_team(), real, count, source="test")
    for value in (demo_session.agent, demo_session.model):
        assert f'<option value="{value}"' in page_of(client, url).html
