"""Policies as stored data."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given, settings

from compaction.cache.economy import TTLSetting
from compaction.policies.policy import InvalidPolicy, Policy, from_dict, to_dict
from compaction.policies.presets import PRESETS
from compaction.policies.yaml import read, written
from tests.compaction.talks import policies


@given(policies())
@settings(max_examples=50)
def test_a_policy_survives_storage(policy: Policy) -> None:
    assert from_dict(json.loads(json.dumps(to_dict(policy)))) == policy


def test_presets_write_every_parameter_out() -> None:
    assert {"balanced", "offload-first", "recitation", "sliding-window", "passthrough"} <= {
        *PRESETS
    }
    for name, policy in PRESETS.items():
        assert policy.name == name
        assert from_dict(to_dict(policy)) == policy
    window = to_dict(PRESETS["sliding-window"])["steps"][0]["parameters"]
    assert (window["primers"], window["recents"]) == (3, 20)
    assert (window["trigger"], window["target"]) == (0.75, 0.375)
    steps = to_dict(PRESETS["offload-first"])["steps"]
    assert [step["strategy"] for step in steps] == ["dedupe", "outline", "offload", "compact"]
    dedupe, outline, offload, compact = (step["parameters"] for step in steps)
    assert (dedupe["within"], outline["lines"]) == (4, 3_000)
    assert (offload["age"], offload["batch"], compact["trigger"]) == (5, 5, 0.70)


def test_what_was_stored_before_objectives_is_cheap() -> None:
    document = to_dict(PRESETS["offload-first"])
    del document["objective"]
    assert from_dict(document) == PRESETS["offload-first"]
    assert from_dict({**document, "objective": "lean"}).objective == "lean"


def test_what_was_stored_before_ttls_leaves_them_as_recorded() -> None:
    document = to_dict(PRESETS["balanced"])
    assert document.pop("ttl") == "mixed"
    assert from_dict(document).ttl == "recorded"
    for ttl in get_args(TTLSetting):
        policy = from_dict({**document, "ttl": ttl})
        assert policy.ttl == ttl
        assert from_dict(read(written(to_dict(policy))).document) == policy


def test_defaults_fill_what_is_left_out() -> None:
    policy = from_dict({"name": "n", "steps": [{"strategy": "offload"}]})
    assert policy == from_dict(to_dict(policy))
    assert policy.steps[0].parameters.age == 5


def _offload(**parameters: Any) -> dict[str, Any]:
    return {"name": "n", "steps": [{"strategy": "offload", "parameters": parameters}]}


@pytest.mark.parametrize(
    ("data", "field", "says"),
    [
        ([], "policy", "must be an object"),
        ({}, "name", "must be a non-empty text"),
        ({"name": " "}, "name", "must be a non-empty text"),
        ({"name": "n", "color": 1}, "color", "allowed are board, name, objective"),
        ({"name": "n", "version": 0}, "version", "from 1 to"),
        ({"name": "n", "reserve": True}, "reserve", "whole number"),
        ({"name": "n", "ttl": "2h"}, "ttl", "must be one of recorded, 5m, 1h, mixed"),
        ({"name": "n", "objective": "dear"}, "objective", "must be one of cheap, lean"),
        ({"name": "n", "steps": {}}, "steps", "must be a list"),
        ({"name": "n", "steps": [1]}, "steps[0]", "must be an object"),
        ({"name": "n", "steps": [{"strategy": "x"}]}, "steps[0].strategy", "one of dedupe"),
        ({"name": "n", "steps": [{"strategy": []}]}, "steps[0].strategy", "one of dedupe"),
        ({"name": "n", "steps": [{"strategy": "offload", "parameters": 3}]},
         "steps[0].parameters", "must be an object"),
        (_offload(ages=5), "steps[0].parameters.ages", "unknown; allowed are age, batch"),
        (_offload(age="5"), "steps[0].parameters.age", "whole number from 0 to 10000"),
        (_offload(batch=0), "steps[0].parameters.batch", "from 1 to"),
        (_offload(unit="days"), "steps[0].parameters.unit", "one of steps, turns"),
        (_offload(exclude="Read"), "steps[0].parameters.exclude", "list of texts"),
        (_offload(exclude=[1]), "steps[0].parameters.exclude", "list of texts"),
        (_offload(exclude=["a\x00"]), "steps[0].parameters.exclude", "list of texts"),
        ({"name": "\ud800"}, "name", "must be a non-empty text"),
        ({"name": "n", "steps": [{"strategy": "offload"}] * 41}, "steps", "at most 40"),
        (_offload(inputs=1), "steps[0].parameters.inputs", "true or false"),
        ({"name": "n", "steps": [{"strategy": "compact", "parameters": {"trigger": 2}}]},
         "steps[0].parameters.trigger", "number from 0.05 to 0.95"),
        ({"name": "n", "steps": [{"strategy": "compact", "parameters": {"trigger": float("nan")}}]},
         "steps[0].parameters.trigger", "number from"),
        ({"name": "n", "steps": [{"strategy": "compact", "parameters": {"instructions": 1}}]},
         "steps[0].parameters.instructions", "must be text"),
    ],
)  # fmt: skip
def test_bad_data_is_refused_with_its_place(data: Any, field: str, says: str) -> None:
    with pytest.raises(InvalidPolicy) as refused:
        from_dict(data)
    assert refused.value.field == field
    assert says in str(refused.value)
