"""Comparison of two runs of a session, as requested by the diff page."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from compaction.policies.policy import to_dict
from compaction.policies.presets import PRESETS
from sessions.actions.lab.simulate import simulate_session
from sessions.actions.live import folds
from sessions.actions.policies.policies import version_of
from sessions.models import Run, Session
from sessions.models.record import manifest
from tests.sessions.live.managed.test_managed import grown
from tests.sessions.pages import page_of, signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.store]


@pytest.fixture(autouse=True)
def no_folds():
    folds.forget_all()
    yield
    folds.forget_all()


@pytest.fixture
def client() -> Client:
    return signed_in()


def diff(client: Client, session: Session, **query: Any) -> dict[str, Any]:
    answer = client.get(f"/api/v1/sessions/{session.pk}/diff", query)
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def standing(run: Run, step: int) -> list[int]:
    columns = manifest.columns(run)
    pairs = zip(columns["from"], columns["to"], strict=True)
    return [i for i, (start, end) in enumerate(pairs) if start <= step and (not end or step < end)]


def test_the_recording_beside_what_was_served(client: Client):
    session = grown(12)
    recorded, managed = (session.runs.get(origin=origin) for origin in ("recorded", "managed"))
    step = session.step_count
    found = diff(client, session, a=step, b=step, run="recorded", **{"with": "managed"})
    assert (found["a"]["run"], found["b"]["run"]) == (
        "recorded",
        str(managed.policy_version.policy),
    )
    assert sorted(i for row in found["rows"] for i in row["a"]) == standing(recorded, step)
    assert sorted(i for row in found["rows"] for i in row["b"]) == standing(managed, step)
    changed = [row for row in found["rows"] if row["op"] != "same"]
    assert changed
    assert {row["of"] for row in changed} == {"b"}
    assert all(row["revision"] and row["reason"] for row in changed)
    back = diff(client, session, a=step, b=step, run="managed", **{"with": "recorded"})
    assert {row["of"] for row in back["rows"] if row["op"] != "same"} == {"a"}
    assert back["a"]["tokens"] == found["b"]["tokens"]


def test_a_run_beside_itself_is_the_diff_of_its_steps(client: Client):
    session = grown(12)
    alone = diff(client, session, a=2, b=9, run="managed")
    assert diff(client, session, a=2, b=9, run="managed", **{"with": "managed"}) == alone
    same = diff(client, session, a=9, b=9, run="managed", **{"with": "managed"})
    assert {row["op"] for row in same["rows"]} == {"same"}


def test_equal_replacements_of_two_runs_are_no_difference(client: Client):
    session = grown(12)
    document = {**to_dict(PRESETS["offload-first"]), "name": "copy"}
    version_of(session.team, "copy", document, preset=False)
    run, again = simulate_session(session, "offload-first"), simulate_session(session, "copy")
    other = simulate_session(session, "sliding-window")
    step = session.step_count
    same = diff(client, session, a=step, b=step, run=run.pk, **{"with": again.pk})
    assert {row["op"] for row in same["rows"]} == {"same"}
    unlike = diff(client, session, a=step, b=step, run=run.pk, **{"with": other.pk})
    assert sorted(i for row in unlike["rows"] for i in row["b"]) == standing(other, step)


@pytest.mark.parametrize("named", ["missing", "0" * 32])
def test_a_run_that_is_not_there_is_missing(client: Client, named: str):
    session = grown(3)
    asked = {"a": 1, "b": 1, "run": "recorded", "with": named}
    assert client.get(f"/api/v1/sessions/{session.pk}/diff", asked).status_code == 404


def test_the_page_hands_both_names_to_its_island(client: Client):
    session = grown(3)
    page = page_of(client, f"/sessions/{session.pk}/diff/2..2/?run=recorded&with=managed")
    assert '"with": "managed"' in page.html
    assert "Step 2, two runs" in page.title
