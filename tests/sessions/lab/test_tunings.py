"""Searches for better policies: created, run, resumed, and checked on held-out sessions."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from compaction.advice.tuner import frontier, identity
from compaction.policies.policy import from_dict
from compaction.policies.presets import PRESETS
from sessions.actions.accounts.audit import COMMAND
from sessions.actions.accounts.teams import local_team
from sessions.actions.jobs import jobs
from sessions.actions.lab import tunings
from sessions.actions.lab.choices import NoChoice
from sessions.actions.lab.simulated_figures import figures_of, recorded_figures, recording_of
from sessions.actions.policies.policies import preset_version, save_version
from sessions.models import AuditEntry, Job, PolicyVersion, Session, Team, Tuning, TuningTrial
from sessions.models.lab.simulated_sums import sums
from sessions.models.lab.tuned import found_by, tried_of
from tests.sessions.lab.simulated import done, log, post, store
from tests.sessions.pages import page_of
from tests.sessions.people import browser, member

pytestmark = pytest.mark.django_db
HERE = {"by": "query"}
BEGUN = len({identity(one) for one in PRESETS.values() if one.steps})


@pytest.fixture
def team(db: None, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setattr(jobs, "wake", lambda *_: None)
    return local_team()


@pytest.fixture
def owner(team: Team) -> Client:
    return browser(member(team, "ada"))


def ask(team: Team, limit: int, objective: str = "cheap", base: str = "offload-first") -> Tuning:
    return tunings.ask(preset_version(team, base), HERE, objective, limit, COMMAND)


def searched(tuning: Tuning) -> Job:
    assert tuning.job is not None
    return done(tuning.job)


def six(team: Team) -> list[Session]:
    return store(team, *(log(f"s{number}", 6 + 2 * number) for number in range(6)))


def test_a_search_tries_presets_first_and_neighbours_of_the_best_after(team):
    six(team)
    tuning = ask(team, BEGUN + 5)
    job = searched(tuning)
    assert job.state == "done", job.problem
    assert job.result == {"tuning": str(tuning.pk), "policies": BEGUN + 5}
    trials = list(tuning.trials.order_by("number"))
    assert [one.number for one in trials] == list(range(1, BEGUN + 6))
    assert trials[0].name == "offload-first@1"
    assert [bool(one.name) for one in trials] == [True] * BEGUN + [False] * 5
    assert len({identity(from_dict(one.document)) for one in trials}) == len(trials)


def test_its_figures_are_those_of_a_simulation(team):
    stored = {str(one.pk): one for one in six(team)}
    tuning = ask(team, 2)
    searched(tuning)
    for trial in tuning.trials.all():
        policy = from_dict(trial.document)
        own = [figures_of(recording_of(stored[one]), policy).figures for one in tuning.sessions]
        expected = {**sums(own), "sessions": len(own)}
        differ = {key for key in expected if expected[key] != trial.figures[key]}
        assert differ <= {"ms_per_step"}


def test_the_recording_stands_in_every_table_with_its_own_recall(team, owner):
    stored = {str(one.pk): one for one in six(team)}
    tuning = ask(team, 2)
    assert "recorded-row" not in owner.get(reverse("tuning", args=[tuning.pk])).content.decode()
    searched(tuning)
    tuning.refresh_from_db()
    own = sums([recorded_figures(recording_of(stored[one])) for one in tuning.sessions])
    assert tuning.recorded["needs"] == own["needs"]
    for share in ("in_context", "named", "lost"):
        assert tuning.recorded[share] == pytest.approx(own[share])
    Tuning.objects.update(recorded=tuning.recorded | {"in_context": 0.851, "lost": 0.098})
    page = page_of(owner, reverse("tuning", args=[tuning.pk]))
    assert "– recorded 100 % 100 % 85.1 %" in page.text
    assert "9.8 %" in page.text
    assert '"label": "recorded"' in page.html


def test_half_of_the_sessions_is_held_back_and_judges_the_frontier(team):
    six(team)
    tuning = ask(team, 12)
    assert len(tuning.sessions) == len(tuning.held) == 3
    assert not set(tuning.sessions) & set(tuning.held)
    searched(tuning)
    tried = [one for _, one in tried_of(tuning)]
    best = {id(one) for one in frontier(tried, "cheap")}
    for found, one in zip(found_by(tuning), tried, strict=True):
        assert found.best == (id(one) in best)
        assert (found.trial.held is not None) == bool(found.best or found.trial.name)
        if found.trial.held:
            assert found.trial.held["sessions"] == 3


def test_the_same_sessions_are_held_back_at_every_search(team):
    six(team)
    held = ask(team, 1).held
    assert held and ask(team, 1).held == held


def test_of_a_few_sessions_none_is_held_back(team):
    store(team, log("only", 9))
    tuning = ask(team, 1)
    assert tuning.held == []
    searched(tuning)
    assert [one.held for one in tuning.trials.all()] == [None]


def test_a_search_that_was_broken_off_goes_on_to_the_same_end(team):
    six(team)
    through = BEGUN + tunings.GENERATION
    whole, broken = ask(team, through + 3), ask(team, through + 3)
    searched(whole)
    searched(Tuning.objects.get(pk=broken.pk))
    reply = [
        (one.number, one.document, one.held is None) for one in whole.trials.order_by("number")
    ]
    broken.trials.filter(number__gt=through).delete()
    broken.trials.update(held=None)
    broken.job = jobs.enqueue(team, tunings.KIND, {"tuning": str(broken.pk)})
    assert searched(broken).state == "done"
    assert reply == [
        (one.number, one.document, one.held is None) for one in broken.trials.order_by("number")
    ]


def test_sessions_that_went_meanwhile_do_not_end_a_search(team):
    stored = six(team)
    tuning = ask(team, 1)
    gone = next(one for one in stored if str(one.pk) in tuning.sessions)
    gone.delete()
    assert searched(tuning).state == "done"
    assert tuning.trials.get().figures["sessions"] == 2


def test_a_search_whose_held_sessions_are_gone_keeps_what_it_found(team):
    stored = six(team)
    tuning = ask(team, 2)
    for one in stored:
        if str(one.pk) in tuning.held:
            one.delete()
    assert searched(tuning).state == "done"
    assert [one.held for one in tuning.trials.all()] == [None, None]


def test_without_any_session_left_a_search_says_so(team):
    stored = six(team)
    tuning = ask(team, 1)
    for one in stored:
        one.delete()
    job = searched(tuning)
    assert (job.state, job.problem["title"]) == ("failed", "None of its sessions can be read")


def test_too_many_sessions_are_refused(team, monkeypatch):
    monkeypatch.setattr(tunings, "MOST_SESSIONS", 5)
    six(team)
    with pytest.raises(NoChoice, match="at most 5"):
        ask(team, 1)
    assert not Tuning.objects.exists()


def test_a_search_over_the_api_and_what_was_tried_becomes_a_version(team, owner):
    six(team)
    body = {"base": "offload-first", "objective": "lean", "trials": 3, "sessions": HERE}
    asked = post(owner, "tunings", body).json()
    entry = AuditEntry.objects.get(action="tuning.asked")
    assert (entry.actor, entry.detail["sessions"]) == ("ada", 6)
    address = f"/api/v1/tunings/{asked['tuning']}"
    assert owner.get(address).json()["state"] == "queued"
    searched(Tuning.objects.get())
    reply = owner.get(address).json()
    assert (reply["state"], reply["objective"], len(reply["trials"])) == ("done", "lean", 3)
    assert any(one["on_frontier"] for one in reply["trials"])
    assert reply["trials"][0]["changes"] == []
    page = owner.get(asked["url"])
    assert page.status_code == 200
    assert "offload-first@1" in page.content.decode()
    save = reverse("tuning_save", args=[asked["tuning"], 2])
    answer = owner.post(save, {"name": "found"})
    assert answer.status_code == 302
    version = PolicyVersion.objects.get(policy__name="found")
    trial = TuningTrial.objects.get(number=2)
    assert version.document["steps"] == trial.document["steps"]
    assert version.note.startswith("Trial 2 of a search")
    assert version.policy.based_on == reply["trials"][1]["like"]


def test_what_was_tried_keeps_the_preset_behind_it(team):
    six(team)
    ours = save_version(team, "ours", {}, "offload-first", "", None, COMMAND)
    tuning = tunings.ask(ours, HERE, "cheap", BEGUN + 3, COMMAND)
    searched(tuning)
    likes = {one.trial.number: one.like for one in found_by(tuning)}
    for trial in tuning.trials.all():
        saved = tunings.save_trial(trial, f"found-{trial.number}", COMMAND)
        like = likes[trial.number]
        assert saved.policy.based_on == ("offload-first" if like == "ours@1" else like)


def test_what_is_worse_on_held_out_sessions_is_shown_and_not_proposed(team, owner):
    six(team)
    tuning = ask(team, 9)
    searched(tuning)
    for one in found_by(tuning):
        one.trial.held |= {"cost_microusd": 1, "lost": 0.0}
        one.trial.save()
    best = next(one.trial for one in found_by(tuning) if one.best)
    address = reverse("tuning", args=[tuning.pk])
    assert "Bad on held sessions" not in owner.get(address).content.decode()
    best.held |= {"cost_microusd": best.held["cost_recorded_microusd"] + 1, "lost": 0.25}
    best.save()
    found = next(one for one in found_by(tuning) if one.trial.pk == best.pk)
    assert found.bad_held == ("more expensive than recorded", "25.0 % of needed facts lost")
    assert (found.best, found.offered) == (True, False)
    page = owner.get(address).content.decode()
    frontier_part, bad_part = page.split("<h2>Bad on held sessions</h2>")
    assert "25.0 % of needed facts lost" in bad_part
    assert f'id="name-{best.number}"' not in frontier_part.partition("<h2>Frontier</h2>")[2]


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"base": "no-such-policy"}, "/base"),
        ({"objective": "good"}, "/objective"),
        ({"trials": 0}, "/trials"),
        ({"sessions": {"by": "hand", "ids": []}}, "/sessions/ids"),
    ],
)
def test_what_cannot_be_searched_is_refused_by_its_field(
    team, owner, changed: dict[str, Any], field: str
):
    six(team)
    answer = post(owner, "tunings", {"base": "offload-first", "sessions": HERE} | changed)
    assert answer.status_code == 422
    assert [one["pointer"] for one in answer.json()["errors"]] == [field]


def test_a_search_from_the_lab_and_its_end_by_hand(team, owner):
    six(team)
    form = {"base": "offload-first", "objective": "lean", "n": "6", "min_steps": "1", "trials": "9"}
    answer = owner.post(reverse("tunings"), form)
    tuning = Tuning.objects.get()
    assert answer.url == reverse("tuning", args=[tuning.pk])
    assert (tuning.objective, tuning.limit) == ("lean", 9)
    assert tuning.chosen["by"] == "sample"
    assert str(tuning.base) in owner.get(reverse("lab")).content.decode()
    owner.post(reverse("tuning_cancel", args=[tuning.pk]))
    tuning.job.refresh_from_db()
    assert tuning.job.state == "cancelled"


def test_a_search_that_cannot_begin_says_why_in_the_lab(team, owner):
    six(team)
    form = {"base": "offload-first", "n": "6", "min_steps": "4000", "trials": "9"}
    answer = owner.post(reverse("tunings"), form)
    assert answer.status_code == 422
    assert "Not started" in answer.content.decode()
    assert 'value="4000"' in answer.content.decode()


def test_a_name_that_may_not_be_is_said_beside_its_trial(team, owner):
    store(team, log("only", 9))
    tuning = ask(team, 1)
    searched(tuning)
    answer = owner.post(reverse("tuning_save", args=[tuning.pk, 1]), {"name": "offload-first"})
    assert answer.status_code == 422
    assert "belongs to a preset" in answer.content.decode()


def test_what_was_found_of_a_version_this_release_cannot_run_is_refused(team):
    six(team)
    version = save_version(team, "ours", {}, "offload-first", "", None, COMMAND)
    PolicyVersion.objects.filter(pk=version.pk).update(document={"name": "ours", "steps": [{}]})
    version.refresh_from_db()
    job = searched(tunings.ask(version, HERE, "cheap", 2, COMMAND))
    assert (job.state, job.problem["title"]) == ("failed", "ours@1 cannot run in this release")
