"""Remarks on the settings of a policy, rule by rule, and that good ones are left in peace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from compaction.advice.lint import remarks
from compaction.policies.fields import fields
from compaction.policies.policy import Policy, from_dict
from compaction.policies.presets import PRESETS
from compaction.recitation.recite import Recite
from tests.compaction.talks import policies

RESERVE = 16_384


def _of(*steps: tuple[str, dict[str, Any]], **top: Any) -> Policy:
    answer = [{"strategy": name, "parameters": given} for name, given in steps]
    return from_dict({"name": "ours", "reserve": RESERVE, "steps": answer, **top})


OFFLOAD = ("offload", {})
COMPACT = ("compact", {})
PAYBACK = ("payback", {})
LATE = ("compact", {"trigger": 0.9})


@pytest.mark.parametrize(
    ("policy", "path", "severity"),
    [
        (_of(), "steps", "note"),
        (_of(OFFLOAD), "steps", "warning"),
        (_of(OFFLOAD, COMPACT, reserve=0), "reserve", "warning"),
        (_of(("window", {}), reserve=0), "reserve", "warning"),
        (_of(OFFLOAD, ("compact", {"trigger": 0.91})), "steps[1].parameters.trigger", "warning"),
        (_of(OFFLOAD, ("compact", {"trigger": 0.2})), "steps[1].parameters.trigger", "note"),
        (_of(("window", {"trigger": 0.95})), "steps[0].parameters.trigger", "warning"),
        (_of(("window", {"primers": 1, "recents": 50})), "steps[0].parameters.primers", "warning"),
        (_of(("window", {"recents": 130, "budget": 32_000})), "steps[0].parameters.recents",
         "note"),
        (_of(("window", {"target": 0.8})), "steps[0].parameters.target", "warning"),
        (_of(("window", {"summary_tokens": 150})), "steps[0].parameters.summary_tokens", "warning"),
        (_of(OFFLOAD, ("compact", {"summary_tokens": 900})), "steps[1].parameters.summary_tokens",
         "warning"),
        (_of(OFFLOAD, ("compact", {"rearm": 0, "progress": 0})), "steps[1].parameters.rearm",
         "warning"),
        (_of(OFFLOAD, ("compact", {"user_tokens": 150_000})), "steps[1].parameters.user_tokens",
         "warning"),
        (_of(COMPACT), "steps[0]", "note"),
        (_of(COMPACT, OFFLOAD), "steps[0]", "note"),
        (_of(("offload", {"batch": 1}), COMPACT), "steps[0].parameters.batch", "warning"),
        (_of(("offload", {"batch": 1, "age": 1}), COMPACT), "steps[0].parameters.batch", "note"),
        (_of(("offload", {"age": 2, "batch": 8}), COMPACT), "steps[0].parameters.age", "note"),
        (_of(("offload", {"keep_failures": False}), COMPACT), "steps[0].parameters.keep_failures",
         "note"),
        (_of(("externalise", {"keep_failures": False}), COMPACT),
         "steps[0].parameters.keep_failures", "note"),
        (_of(("externalise", {"over": 140_000}), COMPACT), "steps[0].parameters.over", "warning"),
        (_of(("externalise", {"over": 9_000}), ("window", {"budget": 10_000})),
         "steps[0].parameters.over", "warning"),
        (_of(("externalise", {"over": 700}), COMPACT), "steps[0].parameters.head", "note"),
        (_of(("outline", {"lines": 100}), OFFLOAD, COMPACT), "steps[0].parameters.lines",
         "warning"),
        (_of(("dedupe", {"within": 0}), OFFLOAD, COMPACT), "steps[0].parameters.within", "note"),
        (_of(("dedupe", {"within": 5}), OFFLOAD, COMPACT), "steps[0].parameters.within", "note"),
        (_of(OFFLOAD, COMPACT, recite={"tokens": 9_000}), "recite.tokens", "note"),
        (_of(OFFLOAD, COMPACT, recite={"dashboard": 1_500}), "recite.dashboard", "note"),
        (_of(("window", {"messages": 23})), "steps[0].parameters.messages", "warning"),
        (_of(PAYBACK, COMPACT), "steps[0].parameters.full", "note"),
        (_of(PAYBACK, OFFLOAD, LATE), "steps[0]", "note"),
        (_of(("payback", {"readings": 1}), LATE), "steps[0].parameters.readings", "note"),
        (_of(("payback", {"patience": 0.5}), LATE), "steps[0].parameters.patience", "warning"),
        (_of(("replace", {"batch": 1}), OFFLOAD, COMPACT), "steps[0].parameters.batch", "note"),
        (_of(("replace", {"batch": 5}), ("dedupe", {"within": 4}), OFFLOAD, COMPACT), "steps[0]",
         "note"),
        (_of(("shard", {"over": 140_000}), OFFLOAD, COMPACT), "steps[0].parameters.over",
         "warning"),
        (_of(("externalise", {}), ("shard", {}), COMPACT), "steps[1]", "note"),
    ],
)  # fmt: skip
def test_each_pitfall_is_shown_beside_its_value(policy: Policy, path: str, severity: str):
    found = remarks(policy)
    assert [(one.path, one.severity) for one in found] == [(path, severity)], found
    assert len(found[0].text) > 60
    assert found[0].text.endswith(".")


@pytest.mark.parametrize(
    "policy",
    [
        _of(OFFLOAD, COMPACT),
        _of(("offload", {"batch": 1, "unit": "turns"}), COMPACT),
        _of(("window", {"budget": 32_000}), reserve=0),
        _of(("window", {"primers": 1, "recents": 49})),
        _of(("dedupe", {"within": 0}), ("externalise", {}), COMPACT),
        _of(("dedupe", {"within": 0}), ("offload", {"unit": "turns"}), COMPACT),
        _of(OFFLOAD, ("compact", {"trigger": 0.9})),
        _of(PAYBACK, LATE),
        _of(PAYBACK, ("compact", {"trigger": 0.8})),
        _of(("payback", {"patience": 0.5}), LATE, objective="lean"),
        _of(("window", {"messages": 30})),
        PRESETS["balanced"],
        PRESETS["offload-first"],
        PRESETS["sliding-window"],
        PRESETS["sliding-window-qa"],
        PRESETS["sliding-window-debugging"],
        PRESETS["sliding-window-long-task"],
    ],
)
def test_what_is_well_is_left_in_peace(policy: Policy):
    assert remarks(policy) == ()


def test_presets_get_no_remark_about_their_choices():
    assert [one.path for one in remarks(PRESETS["passthrough"])] == ["steps"]
    dakou = [(one.path, one.severity) for one in remarks(PRESETS["seven-principles"])]
    assert dakou == [("steps[1].parameters.batch", "note"), ("steps[2]", "note")]
    (answer,) = remarks(PRESETS["recitation"])
    assert (answer.path, answer.severity) == ("steps[1].parameters.batch", "note")


def test_a_small_window_makes_other_values_dangerous():
    policy = _of(("externalise", {"over": 6_000}), COMPACT)
    assert remarks(policy) == ()
    paths = [one.path for one in remarks(policy, window=8_000)]
    assert paths == ["steps[0].parameters.over", "steps[1].parameters.user_tokens"]


def test_unreviewed_summaries_get_a_remark_only_where_it_is_known():
    policy = PRESETS["offload-first"]
    assert [one.path for one in remarks(policy, reviewed=False)] == ["steps[3]"]
    assert remarks(policy, reviewed=True) == ()
    assert remarks(_of(OFFLOAD), reviewed=False) == remarks(_of(OFFLOAD)), "it writes none"


@given(policies())
@settings(max_examples=80)
def test_every_remark_names_a_value_or_a_step_that_is_there(policy: Policy):
    there = {field.path for field in fields(policy)} | {"steps", "reserve"}
    there |= {f"steps[{index}]" for index in range(len(policy.steps))}
    for one in remarks(policy, reviewed=False):
        assert one.path in there, one
    more = remarks(replace(policy, recite=Recite(tokens=20_000)))
    assert more[-1].path == "recite.tokens"


def test_payback_warns_of_edits_that_never_pay_and_of_readings_without_an_age() -> None:
    step = ("payback", {"patience": 0.5, "readings": 1, "done": 1})
    where = "steps[0].parameters."
    found = {one.path: one.severity for one in remarks(_of(step, COMPACT))}
    assert (found[f"{where}patience"], found[f"{where}readings"]) == ("warning", "note")
    lean = {one.path for one in remarks(_of(step, COMPACT, objective="lean"))}
    assert f"{where}patience" not in lean
    assert not [one for one in remarks(PRESETS["balanced"]) if one.severity == "warning"]
