"""The policy of a new session while a version is rolled out."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions.actions.accounts.teams import local_team
from sessions.actions.live.live_sessions import put_session, session_fields
from sessions.actions.policies import rollouts
from sessions.actions.policies.first_policy import bucket, policy_for_new
from sessions.models import (
    Rollout,
    Session,
    Team,
)
from tests.sessions.live.appends import send, user
from tests.sessions.policies.rolling_out import (
    ids,
    person,
    running,
    version,
)

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def new(name: str, **fields: Any) -> Session:
    return put_session(local_team(), name, session_fields(fields))[0]


def test_a_tenth_is_a_tenth_and_stays_inside_when_it_widens():
    rollout = running()
    names = {f"agent/{number}": bucket(rollout, f"agent/{number}") for number in range(2000)}
    for share, deviation in ((10, 2.5), (50, 5)):
        inside = sum(place < share for place in names.values())
        assert abs(inside / 20 - share) <= deviation
    one_of_each = {place: name for name, place in names.items()}
    assert one_of_each.keys() == set(range(100))

    def chosen() -> set[int]:
        versions = {
            place: policy_for_new(local_team(), name).version.pk
            for place, name in one_of_each.items()
        }
        return {place for place, version in versions.items() if version == rollout.version_id}

    assert chosen() == set(range(10))
    rollouts.widen(rollout, 50, person("owner"))
    assert chosen() == set(range(50))


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
