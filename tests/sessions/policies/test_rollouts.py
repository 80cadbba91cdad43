"""Rollouts: permissions and states, policies of new sessions, and concurrent changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext

from sessions.actions.accounts import audit
from sessions.actions.accounts.teams import local_team
from sessions.actions.live.live_sessions import put_session, session_fields
from sessions.actions.policies import rollouts
from sessions.actions.policies.bounds import defaults
from sessions.actions.policies.first_policy import bucket, policy_for_new
from sessions.actions.policies.policies import active_version, version_of
from sessions.actions.policies.rollout_rules import FROM, Act, why_not
from sessions.actions.policies.rollouts import CannotRollOut, MayNot
from sessions.models import (
    AuditEntry,
    Membership,
    PolicyVersion,
    Rollout,
    Session,
    Simulation,
    Team,
)
from tests.sessions.live.appends import send, user
from tests.sessions.together import at_once

pytestmark = [pytest.mark.django_db, pytest.mark.store]

State = Rollout.State
ROLES = ("owner", "editor", "reviewer", "viewer")


def person(role: str, team: Team | None = None, name: str = "") -> audit.Actor:
    """A user with that role, created if missing."""
    found, made = User.objects.get_or_create(username=name or role)
    if made:
        Membership.objects.create(user=found, team=team or local_team(), role=role)
    return audit.person(found)


def version(name: str = "careful", reserve: int = 7, team: Team | None = None) -> PolicyVersion:
    document = {"name": name, "steps": [], "reserve": reserve}
    return version_of(team or local_team(), name, document, preset=False)


def proposed(of: PolicyVersion | None = None, **given: Any) -> Rollout:
    made = of or version()
    return rollouts.propose(made, "try it", defaults(), person("editor"), **given)


def running(share: int = 10, of: PolicyVersion | None = None) -> Rollout:
    made = rollouts.accept(proposed(of), person("owner"))
    while made.share < share:
        stage = rollouts.next_stage(made)
        assert stage is not None
        made = rollouts.widen(made, stage, person("owner"))
    return made


def in_state(state: str) -> Rollout:
    owner = person("owner")
    if state == State.PROPOSED:
        return proposed()
    if state == State.DECLINED:
        return rollouts.decline(proposed(), owner)
    made = running(100 if state == State.COMPLETE else 10)
    if state == State.PAUSED:
        return rollouts.pause(made, owner)
    return rollouts.roll_back(made, owner) if state == State.ROLLED_BACK else made


def do(act: Act, rollout: Rollout, actor: audit.Actor) -> Rollout:
    if act == "widen":
        return rollouts.widen(rollout, rollouts.next_stage(rollout) or 100, actor)
    acts: dict[str, Callable[[Rollout, audit.Actor], Rollout]] = {
        "accept": rollouts.accept, "decline": rollouts.decline, "pause": rollouts.pause,
        "resume": rollouts.resume, "roll_back": rollouts.roll_back,
    }  # fmt: skip
    return acts[act](rollout, actor)


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


# Policies of new sessions


def new(name: str, **fields: Any) -> Session:
    return put_session(local_team(), name, session_fields(fields))[0]


def ids(rollout: Rollout, *, inside: bool, count: int = 1) -> list[str]:
    """External ids that fall into the rollout's share, or do not."""
    names = (f"run {number}" for number in range(10_000))
    return [n for n in names if (bucket(rollout, n) < rollout.share) == inside][:count]


def test_a_tenth_is_a_tenth_and_stays_inside_when_it_widens():
    rollout = running()
    names = [f"agent/{number}" for number in range(2000)]
    first = {
        name
        for name in names
        if policy_for_new(local_team(), name).version.pk == rollout.version_id
    }
    assert abs(len(first) / 2000 - 0.10) <= 0.025
    rollouts.widen(rollout, 50, person("owner"))
    second = {n for n in names if policy_for_new(local_team(), n).version.pk == rollout.version_id}
    assert first < second
    assert abs(len(second) / 2000 - 0.50) <= 0.05


def test_sessions_know_what_they_began_with_and_why():
    default = new("before all")
    assert (str(default.policy_version), default.policy_from) == ("balanced@1", "default")
    rollout = running()
    (inside,) = ids(rollout, inside=True)
    (outside,) = ids(rollout, inside=False)
    one, other = new(inside), new(outside)
    assert (one.policy_version, one.policy_from, one.rollout) == (
        rollout.version,
        "rollout",
        rollout,
    )
    assert (other.policy_version, other.policy_from) == (default.policy_version, "default")
    assert other.rollout == rollout, "both sides are compared"
    asked = new("asked", policy="passthrough")
    assert (str(asked.policy_version), asked.policy_from, asked.rollout) == (
        "passthrough@1", "request", None,
    )  # fmt: skip
    named = new(inside, policy="passthrough")
    assert (named.policy_from, named.rollout) == ("request", None), "no message yet: it may choose"


def test_what_runs_keeps_its_policy_whatever_happens_to_the_rollout():
    rollout = running()
    inside, second = ids(rollout, inside=True, count=2)
    session = new(inside)
    send(session, user("hello"))
    rollouts.pause(rollout, person("owner"))
    late = new(second)
    assert (str(late.policy_version), late.policy_from, late.rollout) == (
        "balanced@1", "default", None,
    )  # fmt: skip
    send(session, user("more"))
    rollout.refresh_from_db()
    rollouts.roll_back(rollout, person("owner"))
    assert new(inside).policy_version == rollout.version
    completed = running(100, version("second"))
    team = new("after it")
    assert (team.policy_version, team.policy_from, team.rollout) == (
        completed.version, "team", None,
    )  # fmt: skip


def test_a_session_made_by_its_first_message_is_chosen_for_alike():
    rollout = running()
    (inside,) = ids(rollout, inside=True)
    made = Session.objects.create(team=local_team(), external_id=inside, source="api")
    send(made, user("hello"))
    made.refresh_from_db()
    assert (made.policy_from, made.rollout) == ("rollout", rollout)


def test_choosing_costs_one_query_more_and_none_while_messages_come(
    django_assert_num_queries: Any,
):
    rollout = running()
    team = Team.objects.select_related("active").get(pk=local_team().pk)
    (inside,) = ids(rollout, inside=True)
    with django_assert_num_queries(1):
        policy_for_new(team, inside)
    session = new(inside)
    session.refresh_from_db()
    with CaptureQueriesContext(connection) as asked:
        send(session, user("hello"))
    assert not [one for one in asked if f'FROM "{Rollout._meta.db_table}"' in one["sql"]]


# Two at once


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
