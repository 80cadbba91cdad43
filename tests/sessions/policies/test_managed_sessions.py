"""The policy of a session and who selected it: in the list, the API and the replay."""

from __future__ import annotations

import pytest
from django.test import Client

from sessions.actions.accounts.teams import local_team
from sessions.actions.live.live_sessions import put_session, session_fields
from sessions.actions.policies import rollouts
from sessions.models import Session
from sessions.models.policies.rollouts import rollout_of_teams
from tests.sessions.live.appends import send, user
from tests.sessions.pages import page_of, signed_in
from tests.sessions.policies.rolling_out import ids, person, running
from tests.sessions.record.test_session_list import named

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> Client:
    return signed_in()


def titles(client: Client, query: str) -> set[str]:
    """External ids in the list, which are titles of untitled sessions."""
    rows = client.get(f"/sessions/{query}").context["rows"]
    return {row.session.external_id for row in rows}


def made() -> dict[str, str]:
    """Sessions on both sides of a rollout, one that asked, and an imported one."""
    rollout = running()
    (inside,), (outside,) = ids(rollout, inside=True), ids(rollout, inside=False)
    for name, fields in ((inside, {}), (outside, {}), ("asked", {"policy": "careful"})):
        put_session(local_team(), name, session_fields(fields))
    named("imported")
    return {"inside": inside, "outside": outside, "rollout": str(rollout.pk)}


def test_the_list_is_narrowed_to_a_policy_a_version_and_a_rollout(client: Client):
    world = made()
    inside, outside = world["inside"], world["outside"]
    assert titles(client, "") == {inside, outside, "asked", "imported"}
    assert titles(client, "?policy=careful") == {inside, "asked"}
    assert titles(client, "?policy=careful@1") == {inside, "asked"}
    assert titles(client, "?policy=balanced@1") == {outside}
    assert titles(client, f"?rollout={world['rollout']}") == {inside, outside}
    assert titles(client, f"?rollout={world['rollout']}&policy=careful@1") == {inside}
    for policy in ("careful", "careful@"):
        assert f"{policy} (2)" in page_of(client, f"/sessions/?policy={policy}").text
    page = page_of(client, f"/sessions/?rollout={world['rollout']}&policy=careful@1&sort=steps")
    assert "policy careful@1" in page.text
    assert "began in the rollout of careful@1" in page.text
    without = page.links["policy careful@1 ×"]
    assert without == f"?rollout={world['rollout']}&sort=steps"


@pytest.mark.parametrize(
    "policy", ["careful@2", "careful@", "careful@x", "missing", "careful@9999999999"]
)
def test_what_no_session_has_matches_none(client: Client, policy: str):
    made()
    expected = {"careful@": 2}.get(policy, 0)
    assert len(titles(client, f"?policy={policy}")) == expected
    if not expected:
        assert "Nothing matches" in page_of(client, f"/sessions/?policy={policy}").text


def test_a_row_and_the_replay_say_who_chose_the_policy(client: Client):
    world = made()
    text = page_of(client, "/sessions/").text
    for said in ("careful@1 · rollout", "balanced@1 · default", "careful@1 · asked for"):
        assert said in text
    send(Session.objects.get(external_id=world["inside"]), user("hello"))
    head = client.get(f"/api/v1/sessions/{world['inside']}/manifest").json()["session"]
    assert (head["policy"], head["policy_from"]) == ("careful@1", "rollout")
    answer = client.get("/api/v1/sessions/asked").json()
    assert (answer["policy"], answer["policy_from"]) == ("careful@1", "request")
    rolled = rollout_of_teams([local_team()], world["rollout"])  # type: ignore[arg-type]
    assert rolled is not None
    for share in (50, 100):
        rolled = rollouts.widen(rolled, share, person("owner"))
    put_session(local_team(), "after", session_fields({}))
    assert client.get("/api/v1/sessions/after").json()["policy_from"] == "team"
