"""Rollouts: permissions and states, also of two at once."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError

from sessions.actions.accounts import audit
from sessions.actions.accounts.teams import local_team
from sessions.actions.policies import rollouts
from sessions.actions.policies.bounds import defaults
from sessions.actions.policies.policies import active_version, version_of
from sessions.actions.policies.rollout_rules import FROM, Act, why_not
from sessions.actions.policies.rollouts import CannotRollOut, MayNot
from sessions.models import (
    AuditEntry,
    Membership,
    PolicyVersion,
    Rollout,
    Simulation,
    Team,
)
from tests.sessions.policies.rolling_out import (
    State,
    do,
    in_state,
    person,
    proposed,
    running,
    version,
)
from tests.sessions.together import at_once

pytestmark = [pytest.mark.django_db, pytest.mark.store]


ROLES = ("owner", "editor", "reviewer", "viewer")


AFTER = {
    ("proposed", "accept"): ("running", 10),
    ("proposed", "decline"): ("declined", 0),
    ("running", "widen"): ("running", 50),
    ("running", "pause"): ("paused", 10),
    ("running", "roll_back"): ("rolled_back", 10),
    ("paused", "resume"): ("running", 10),
    ("paused", "roll_back"): ("rolled_back", 10),
    ("complete", "roll_back"): ("rolled_back", 100),
}  # fmt: skip
"""Every change that there is; each other pair is refused."""


@pytest.mark.parametrize("act", FROM)
@pytest.mark.parametrize("state", State.values)
def test_each_act_in_each_state(state: str, act: Act):
    rollout = in_state(state)
    entries = AuditEntry.objects.count()
    assert why_not(rollout, act, person("owner").user) == "" or (state, act) not in AFTER
    if (state, act) not in AFTER:
        with pytest.raises(CannotRollOut):
            do(act, rollout, person("owner"))
        assert Rollout.objects.get().state == state
        assert AuditEntry.objects.count() == entries
        return
    after = do(act, rollout, person("owner"))
    stored = Rollout.objects.get()
    assert (stored.state, stored.share) == (after.state, after.share) == AFTER[state, act]
    entry = AuditEntry.objects.order_by("-pk")[0]
    assert AuditEntry.objects.count() == entries + 1
    assert (entry.actor, entry.named, entry.detail["rollout"]) == (
        "owner", "careful@1", str(stored.pk),
    )  # fmt: skip


@pytest.mark.parametrize("role", ROLES)
def test_who_may_accept(role: str):
    rollout = proposed()  # by the editor
    actor = person(role, name=f"another {role}")
    if role in ("owner", "editor"):
        assert rollouts.accept(rollout, actor).state == State.RUNNING
    else:
        with pytest.raises(MayNot, match="Only owners and editors"):
            rollouts.accept(rollout, actor)


def test_who_proposes_does_not_accept_unless_he_owns_the_team():
    with pytest.raises(MayNot, match="your own proposal"):
        rollouts.accept(proposed(), person("editor"))
    own = rollouts.propose(version("other"), "", defaults(), person("owner"))
    assert rollouts.accept(own, person("owner")).decided_by == person("owner").user


def test_who_proposed_may_take_it_back_whatever_became_of_his_role():
    rollout = proposed()
    Membership.objects.filter(user=rollout.proposed_by).update(role="viewer")
    assert rollouts.decline(rollout, person("editor"), "too soon").reason == "too soon"


def test_a_key_lets_nothing_out():
    with pytest.raises(MayNot):
        rollouts.accept(proposed(), audit.Actor(AuditEntry.Via.KEY, "ci"))


def test_stages_end_with_the_version_active_and_go_back_in_one_step():
    before = active_version(local_team())
    rollout = running(50)
    assert active_version(local_team()) == before
    with pytest.raises(CannotRollOut, match="next stage is 100 %"):
        rollouts.widen(rollout, 50, person("owner"))
    rollout = rollouts.widen(rollout, 100, person("owner"))
    assert (rollout.state, active_version(local_team())) == ("complete", rollout.version)
    rollouts.roll_back(rollout, person("editor"), "worse")
    assert local_team().active is None
    assert active_version(local_team()) == before
    actions = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert list(actions) == [
        f"rollout.{act}" for act in ("proposed", "accepted", "widened", "completed", "rolled_back")
    ]


def test_what_it_goes_back_to_is_what_was_active_when_it_was_accepted():
    late = proposed(version("late"))
    first = running(100)
    late = rollouts.accept(late, person("owner"))
    assert late.before == first.version
    with pytest.raises(CannotRollOut, match=r"late@1 is being rolled out"):
        rollouts.roll_back(first, person("owner"))
    late = rollouts.widen(rollouts.widen(late, 50, person("owner")), 100, person("owner"))
    with pytest.raises(CannotRollOut, match="become active since"):
        rollouts.roll_back(first, person("owner"))
    rollouts.roll_back(late, person("owner"))
    assert local_team().active == first.version


def test_one_is_under_way_and_others_wait():
    waiting = proposed(version("waiting"))
    running()
    with pytest.raises(CannotRollOut, match=r"careful@1 is being rolled out"):
        rollouts.accept(waiting, person("owner"))
    elsewhere = Team.objects.create(name="Other", slug="other")
    theirs = rollouts.propose(
        version("x", team=elsewhere), "", defaults(), person("owner", elsewhere, "their owner")
    )
    assert rollouts.accept(theirs, person("owner", name="their owner")).state == State.RUNNING


def test_what_cannot_be_proposed():
    def refused(of: PolicyVersion, words: str, **given: Any) -> None:
        with pytest.raises(CannotRollOut, match=words):
            proposed(of, **given)

    rollout = running(100)
    refused(rollout.version, "already use careful@1")
    proposed(version("b"))
    refused(version("b"), "already proposed")
    refused(
        version_of(local_team(), "odd", {"name": "odd", "steps": 3}, preset=False), "cannot run"
    )
    other = version("c")
    simulation = Simulation.objects.create(team=local_team(), draft=other, active=other)
    refused(other, "did not include c@1", simulation=simulation)
    simulation.versions.add(other)
    assert proposed(other, simulation=simulation).simulation == simulation


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("act", ["accept", "widen", "pause", "roll_back"])
def test_of_two_who_do_the_same_one_does_it(act: Act):
    rollout = proposed() if act == "accept" else running()
    owner = person("owner")
    entries = AuditEntry.objects.count()
    came = at_once(CannotRollOut, lambda: do(act, rollout, owner), lambda: do(act, rollout, owner))
    assert sorted(type(one) for one in came if isinstance(one, CannotRollOut)) == [CannotRollOut]
    stored = Rollout.objects.get()
    assert (stored.state, stored.share) == AFTER[rollout.state, act]
    assert AuditEntry.objects.count() == entries + 1


@pytest.mark.django_db(transaction=True)
def test_of_two_that_are_accepted_at_once_one_begins():
    one, other, owner = proposed(version("a")), proposed(version("b")), person("owner")
    came = at_once(
        CannotRollOut, lambda: rollouts.accept(one, owner), lambda: rollouts.accept(other, owner)
    )
    refused = [one for one in came if isinstance(one, CannotRollOut)]
    assert len(refused) == 1
    assert "being rolled out" in str(refused[0])
    assert Rollout.objects.filter(state=State.RUNNING).count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_database_itself_lets_one_be_under_way():
    running()
    waiting = proposed(version("b"))
    with pytest.raises(IntegrityError):
        Rollout.objects.filter(pk=waiting.pk).update(state=State.PAUSED)
