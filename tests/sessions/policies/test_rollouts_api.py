"""Rollouts over the API."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from sessions.actions.accounts.keys import create_key
from sessions.actions.accounts.teams import local_team
from sessions.actions.policies.bounds import defaults
from tests.sessions.policies.rolling_out import version
from tests.sessions.policies.test_rollout_page import browser

pytestmark = pytest.mark.django_db


def keyed(*scopes: str) -> dict[str, str]:
    _, token = create_key(local_team(), "ci", scopes or ("read", "write"))
    return {"authorization": f"Bearer {token}"}


def test_a_program_proposes_and_people_decide():
    version()
    client, headers = Client(), keyed()
    body = {"version": "careful@1", "note": "from CI", "guardrail": {"cost": None, "sessions": 3}}

    def ask(address: str, given: Any = None) -> Any:
        data = json.dumps(given or {})
        return client.post(f"/api/v1{address}", data, "application/json", headers=headers)

    answer = ask("/rollouts", body)
    assert answer.status_code == 201, answer.content
    result = answer.json()
    assert (result["state"], result["share"], result["before"]) == ("proposed", 0, None)
    assert result["guardrail"] == defaults() | {"cost": None, "sessions": 3}
    assert ask("/rollouts", body).status_code == 409
    for act, given in (("accept", {}), ("widen", {"share": 50}), ("roll_back", {})):
        refused = ask(f"/rollouts/{result['id']}/{act}", given)
        assert (refused.status_code, "API keys cannot" in refused.json()["detail"]) == (403, True)
    assert client.get("/api/v1/rollouts?state=proposed", headers=headers).json()["rollouts"] == [
        result
    ]
    assert client.get("/api/v1/rollouts?state=running", headers=headers).json()["rollouts"] == []

    owner = browser()
    accepted = owner.post(f"/api/v1/rollouts/{result['id']}/accept")
    assert accepted.json()["state"] == "running"
    wrong = owner.post(f"/api/v1/rollouts/{result['id']}/widen", {"share": 100}, "application/json")
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (409, "/share")
    seen = client.get(f"/api/v1/rollouts/{result['id']}", headers=headers).json()
    assert (seen["decided_by"], seen["new"]["sessions"]) == ("owner", 0)
    assert {one["name"]: one["state"] for one in seen["bounds"]}["cost"] == "off"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/version"),
        ({"version": "missing"}, "/version"),
        ({"version": "careful", "guardrail": {"cost": -1}}, "/guardrail/cost"),
        ({"version": "careful", "guardrail": {"recall": 0.5}}, "/guardrail/recall"),
        ({"version": "careful", "simulation": "x"}, "/simulation"),
        ({"version": "careful", "note": "x" * 1001}, "/note"),
    ],
)
def test_what_is_wrong_in_a_proposal_is_named(body: dict[str, Any], pointer: str):
    version()
    answer = Client().post(
        "/api/v1/rollouts", json.dumps(body), "application/json", headers=keyed()
    )
    assert answer.status_code == 422, answer.content
    assert answer.json()["errors"][0]["pointer"] == pointer
