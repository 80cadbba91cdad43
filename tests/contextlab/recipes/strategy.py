"""Tests that the strategy recipe works; run by test_recipes.py in a copy with its file."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, find, given, settings

from compaction.advice.lint import remarks
from compaction.advice.tuner import neighbours
from compaction.context.session import Session
from compaction.policies.policy import Policy, Step, from_dict
from compaction.simulation.simulate import simulate
from compaction.strategies import STRATEGIES
from sessions.actions.accounts.audit import COMMAND
from sessions.actions.accounts.teams import local_team
from sessions.actions.policies.policies import save_version
from sessions.actions.record.append import append
from tests.build import rough
from tests.compaction.talks import steps, talks
from tests.sessions.made import count, reading
from tests.sessions.pages import page_of, signed_in

NAME = "old_failures"
DOCUMENT: dict[str, Any] = {"name": "ours", "steps": [{"strategy": NAME}, {"strategy": "compact"}]}


@pytest.mark.django_db
def test_pages_take_it() -> None:
    save_version(local_team(), "ours", DOCUMENT, "", "", None, COMMAND)
    append(local_team(), reading(3), count, source="test")
    browser = signed_in()
    does = STRATEGIES[NAME].does
    assert does in page_of(browser, "/policies/ours/").text
    editor = page_of(browser, "/policies/ours/edit/").html
    assert 'name="steps[0].parameters.age"' in editor and f'value="{NAME}"' in editor
    lab = page_of(browser, "/lab/?draft=ours@1").html
    held = lab.split('<script id="lab-props" type="application/json">')[1].split("</script>")[0]
    draft = json.loads(held)["draft"]
    assert draft["about"][NAME] == does
    assert "steps[0].parameters.age" in [field["path"] for field in draft["fields"]]


def test_the_linter_and_the_tuner_take_it() -> None:
    policy = from_dict(DOCUMENT)
    assert "steps[1]" in [remark.path for remark in remarks(policy)]
    tried = [one.steps[0].parameters for one in neighbours(policy) if len(one.steps) == 2]
    assert {5, 20} <= {getattr(one, "age", None) for one in tried}


def test_property_tests_draw_it() -> None:
    assert 1 <= find(steps(), lambda step: step.strategy == NAME).parameters.age < 5


@given(talks(), steps().filter(lambda step: step.strategy == NAME), steps())
@settings(max_examples=30, suppress_health_check=list(HealthCheck))
def test_no_edit_of_it_breaks_a_context(session: Session, step: Step, other: Step) -> None:
    run = simulate(session, Policy("drawn", steps=(other, step)), rough)
    assert not [one for one in run.refusals if one.strategy == NAME]
