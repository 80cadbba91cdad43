"""Suggestions from a version's own compactions: from managed runs to page, API and draft."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compaction import tokens
from compaction.advice.adaptive import LEAST
from sessions.actions.accounts.audit import COMMAND
from sessions.actions.accounts.teams import local_team
from sessions.actions.assessments.assess import assess_session
from sessions.actions.live import folds
from sessions.actions.live.managed import plan_at
from sessions.actions.policies.policies import preset_version, save_version
from sessions.actions.record.append import append
from sessions.importers import records
from sessions.models import FactLedger, Policy, PolicyVersion, Session
from sessions.models.policies.suggested import suggested
from tests.sessions.made import result, says, session, user
from tests.sessions.pages import other_team, page_of, signed_in
from tests.sessions.programs import Program

pytestmark = pytest.mark.django_db

STEP = {"trigger": 0.1, "summary_tokens": 200, "user_tokens": 0}
TINY = {"steps": [{"strategy": "compact", "parameters": STEP}]}


@pytest.fixture(autouse=True)
def no_folds() -> Iterator[None]:
    folds.forget_all()
    yield
    folds.forget_all()


def edits(step: int) -> list[records.Record]:
    """A step that changes its own file."""
    given = {"file_path": f"src/port_{step}.py", "old_string": "a", "new_string": f"PORT_{step}"}
    use = {"type": "tool_use", "id": f"t{step}", "name": "Edit", "input": given}
    body = "".join(f"def handler_{step}_{line}(): pass\n" for line in range(6))
    return [
        records.Message("assistant", [use], key=f"a{step}", call=f"c{step}"),
        result(f"t{step}", body, key=f"b{step}"),
    ]


def live(version: PolicyVersion, steps: int = 240) -> Session:
    """A session that is over, and that was managed under this version."""
    made: list[records.Record] = [user("Renumber the ports in src/.", key="k")]
    for step in range(1, steps + 1):
        made += edits(step)
    of = session(*made, says("z", "done", key="z"))
    stored = append(local_team(), of, tokens.counted, source="live").session
    stored.policy_version, stored.window, stored.outcome = version, 25_000, "succeeded"
    stored.save()
    for step in range(1, stored.step_count + 2):
        plan_at(stored, step)
    stored.refresh_from_db()
    assess_session(stored)
    return stored


def test_a_version_that_compacts_nothing_is_suggested_nothing():
    assert suggested(preset_version(local_team(), "passthrough")) is None
    assert suggested(preset_version(local_team(), "sliding-window")) is None


def test_before_there_are_enough_it_is_unknown():
    version = save_version(local_team(), "ours", TINY, "", "", None, COMMAND)
    found = suggested(version)
    assert found is not None and (found.compactions, found.values) == (0, {})
    assert {one.reason for one in found.suggestions} == {
        f"unknown: 0 of the {LEAST} compactions needed"
    }
    page = page_of(signed_in(), "/policies/ours/1/")
    assert "Suggested by its compactions" in page.html and "Unknown: 0 of the 5" in page.html
    assert "Use in a draft" not in page.links


def test_lost_edits_suggest_more_room_and_a_person_takes_it_over():
    version = save_version(local_team(), "ours", TINY, "", "", None, COMMAND)
    live(version)
    assert FactLedger.objects.count() >= LEAST
    found = suggested(version)
    assert found is not None and found.compactions >= LEAST
    assert found.values["trigger"] == 0.2, "a tenth later: files are edited"
    assert found.values["summary_tokens"] == 300

    browser = signed_in()
    page = page_of(browser, "/policies/ours/1/")
    assert page.links["Use in a draft"] == "/policies/ours/edit/?from=1&suggested"
    form = page_of(browser, "/policies/ours/edit/?from=1&suggested").html
    assert 'name="steps[0].parameters.summary_tokens"' in form and 'value="300"' in form
    assert 'value="300"' not in page_of(browser, "/policies/ours/edit/?from=1").html
    assert PolicyVersion.objects.filter(policy__name="ours").count() == 1, "nothing by itself"

    answer = Program(local_team()).get("/policies/ours/1")["suggestions"]
    assert {one["name"]: one["value"] for one in answer}["summary_tokens"] == 300
    assert answer[0]["path"] == "steps[0].parameters.trigger"


def test_compactions_of_others_do_not_count():
    version = save_version(local_team(), "ours", TINY, "", "", None, COMMAND)
    live(version, steps=9)
    later = save_version(local_team(), "ours", {**TINY, "reserve": 1}, "", "", None, COMMAND)
    theirs = save_version(other_team(), "ours", TINY, "", "", None, COMMAND)
    assert Policy.objects.filter(name="ours").count() == 2
    for one in (later, theirs):
        found = suggested(one)
        assert found is not None and found.compactions == 0


def test_a_preset_is_taken_over_into_a_policy_of_ones_own():
    version = preset_version(local_team(), "balanced")
    page = page_of(signed_in(), "/policies/balanced/1/")
    assert "Suggested by its compactions" in page.html
    assert page_of(signed_in(), "/policies/new/?from=balanced@1&suggested").html
    assert suggested(version) is not None
