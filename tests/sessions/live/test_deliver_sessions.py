"""Sessions as agents describe them: created once, updated, with a fixed policy."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from sessions.actions.accounts.teams import local_team
from sessions.actions.live.live_sessions import (
    SessionFields,
    Unacceptable,
    put_session,
    session_fields,
)
from sessions.actions.policies.policies import version_of
from sessions.models import Session, Team
from tests.sessions.live.appends import live, reads, send, user

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def put(name: str = "run", **fields: Any) -> Session:
    return put_session(local_team(), name, session_fields(fields))[0]


def test_it_is_made_once_and_keeps_what_is_not_said_again():
    team = local_team()
    made, created = put_session(team, "run", SessionFields(agent="pi", model="claude-sonnet-4-5"))
    again, created_again = put_session(team, "run", SessionFields(outcome="succeeded"))
    assert (created, created_again, made.pk) == (True, False, again.pk)
    assert (again.agent, again.model, again.outcome) == ("pi", "claude-sonnet-4-5", "succeeded")
    assert (again.source, again.window, str(again.policy_version)) == (
        "api", 200_000, "balanced@1",
    )  # fmt: skip
    assert again.version == made.version + 1
    assert put_session(team, "run", SessionFields(outcome="succeeded"))[0].version == again.version


def test_fields_that_are_none_of_ours_become_metadata():
    session = put(metadata={"a": "\x00"}, branch="main")
    assert session.meta == {"a": "\ufffd", "branch": "main"}
    assert put(more=1).meta == {"a": "\ufffd", "branch": "main", "more": 1}


def test_a_policy_is_pinned_by_the_first_message():
    team = local_team()
    version_of(team, "ours", {"name": "ours", "steps": []}, preset=False)
    newer = version_of(team, "ours", {"name": "ours", "steps": [], "reserve": 9}, preset=False)
    assert put(policy="ours").policy_version == newer
    assert str(put(policy="ours@1").policy_version) == "ours@1"
    send(live(), user("a"))
    assert str(put(policy="ours@1").policy_version) == "ours@1"
    with pytest.raises(Unacceptable, match="/policy"):
        put(policy="passthrough")
    with override_settings(DEFAULT_POLICY="passthrough"):
        assert str(put("second").policy_version) == "passthrough@1"


def test_a_policy_of_another_team_is_as_good_as_none():
    other = Team.objects.create(name="Other", slug="other")
    version_of(other, "theirs", {"name": "theirs", "steps": []}, preset=False)
    with pytest.raises(Unacceptable, match="/policy"):
        put(policy="theirs")
    assert not Session.objects.exists()


def test_children_find_their_parent_whenever_it_comes():
    put("child", parent="run", parent_call="t2")
    parent = put()
    send(parent, user("go"), reads("t1", "a"), reads("t2", "b"))
    early = Session.objects.get(external_id="child")
    late = put("late", parent="run", parent_call="t1")
    late.refresh_from_db()
    assert (early.parent, late.parent, late.parent_step) == (parent, parent, 1)
    put("odd", parent="run", spawned="x")
    put("under-odd", parent="odd")
    assert Session.objects.get(external_id="under-odd").parent is not None


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ([], ""),
        ({"agent": 3}, "/agent"),
        ({"title": "x" * 301}, "/title"),
        ({"window": 0}, "/window"),
        ({"window": "200000"}, "/window"),
        ({"window": 2**40}, "/window"),
        ({"window": True}, "/window"),
        ({"metadata": []}, "/metadata"),
        ({"outcome": "great"}, "/outcome"),
        ({"parent": "run"}, "/parent"),
        ({"policy": "missing's"}, "/policy"),
        ({"policy": "offload-first@99999999999999999999"}, "/policy"),
        ({"policy": "\x00"}, "/policy"),
    ],
)
def test_what_is_wrong_is_named(body: Any, pointer: str):
    with pytest.raises(Unacceptable) as refused:
        put_session(local_team(), "run", session_fields(body))
    assert refused.value.pointer == pointer
    assert not Session.objects.exists()
