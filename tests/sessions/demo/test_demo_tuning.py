"""The demo's policy: simulated, left alone if someone changed it, and removed."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.policies.policy import to_dict
from compaction.policies.presets import PRESETS
from sessions.actions.accounts import audit
from sessions.actions.accounts.teams import local_team
from sessions.actions.demo.demo import remove_demo
from sessions.actions.demo.demo_tuning import BASE, NAME, POLICIES, tune_demo, work_now
from sessions.actions.lab.simulated_figures import figures_of, recording_of
from sessions.actions.policies.policies import save_version
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.models import Job, Policy, Session, Simulation, Tuning
from tests.sessions.made import count, reads, result, user
from tests.sessions.made import session as recorded

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.store]


@pytest.fixture
def session() -> Session:
    """A session representing the demo's."""
    made = [user("Please read the files.")]
    for step in range(1, 15):
        made.append(reads(f"c{step}", f"t{step}", f"src/f{step}.py"))
        made.append(result(f"t{step}", f"line of file {step}\n" * 60))
    found = append(local_team(), recorded(*made), count, source="demo").session
    measure(found)
    Session.objects.filter(pk=found.pk).update(demo=True)
    found.refresh_from_db()
    return found


def theirs(**changes: Any) -> None:
    """A version of a policy with that name, saved by someone else."""
    document = to_dict(PRESETS["offload-first"]) | changes
    save_version(local_team(), NAME, document, "offload-first", "mine", None, audit.COMMAND)


def test_the_policy_is_simulated_over_the_sessions_and_removed_with_them(session: Session):
    made = tune_demo(local_team(), [session])
    assert made is not None
    work_now(local_team())
    assert set(Job.objects.values_list("kind", "state")) == {
        ("simulation", Job.State.DONE),
        ("tuning", Job.State.DONE),
    }
    tried = Tuning.objects.get().trials
    assert 0 < tried.exclude(name="").count() < tried.count() <= POLICIES
    refs = {str(version) for version in made.versions.all()}
    assert refs == {"careful@1", "balanced@1", "sliding-window@1"}
    assert made.results.filter(problem="").count() == 1 + len(refs)
    careful = made.results.get(version=made.draft).figures
    # Results stay in place for ten steps, not for five.
    base = figures_of(recording_of(session), PRESETS[BASE]).figures
    assert careful["tokens_sent"] > base["tokens_sent"]
    assert remove_demo(local_team()) == 1
    assert not Simulation.objects.exists()
    assert not Tuning.objects.exists()
    assert not Job.objects.exclude(kind="index").exists()
    assert not Policy.objects.filter(name=NAME).exists()


def test_a_policy_of_that_name_is_left_alone(session: Session):
    theirs()
    assert tune_demo(local_team(), [session]) is None
    remove_demo(local_team())
    assert Policy.objects.get(name=NAME).versions.count() == 1


@pytest.mark.parametrize("goes_on", ["version", "active"])
def test_who_went_on_from_it_keeps_it(session: Session, goes_on: str):
    made = tune_demo(local_team(), [session])
    assert made is not None
    if goes_on == "version":
        theirs()
    else:
        team = local_team()
        team.active = made.draft
        team.save()
    remove_demo(local_team())
    assert Policy.objects.filter(name=NAME).exists()


def test_without_sessions_there_is_nothing_to_try_it_on():
    assert tune_demo(local_team(), []) is None
    assert not Policy.objects.filter(name=NAME).exists()
