"""Request, policy, preset, environment, default: the first that speaks decides each value."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.policies.policy import InvalidPolicy, Policy, Step, from_dict, to_dict
from compaction.policies.presets import PRESETS
from compaction.policies.resolve import PREFIX, from_environment, resolve
from compaction.strategies.compact_settings import Compact
from compaction.strategies.window import Window
from tests.compaction.talks import policies

BASE = to_dict(PRESETS["sliding-window"])
OURS = to_dict(Policy("ours", steps=(Step("window", Window(budget=32_000, recents=15)),)))
BUDGET, RECENTS, TRIGGER = (f"steps[0].parameters.{n}" for n in ("budget", "recents", "trigger"))


def test_each_source_speaks_before_the_next() -> None:
    environment = {"window.budget": 1, "window.recents": 2, "window.trigger": 0.5}
    found = resolve(OURS, BASE, environment, {"window.primers": 9})
    values = found.document["steps"][0]["parameters"]
    assert (values["budget"], values["recents"]) == (32_000, 15)
    assert (values["trigger"], values["primers"]) == (0.5, 9)
    assert found.sources[BUDGET] == "preset"
    assert found.sources[RECENTS] == "policy"
    assert found.sources[TRIGGER] == "environment"
    assert found.sources["steps[0].parameters.primers"] == "request"
    assert found.sources["steps[0].parameters.target"] == "default"
    found = resolve(OURS, BASE, environment, {"window.budget": 5_000, TRIGGER: 0.6})
    assert (found.sources[BUDGET], found.sources[TRIGGER]) == ("request", "request")
    assert found.document["steps"][0]["parameters"]["trigger"] == 0.6


def test_what_a_preset_chose_was_asked_for_where_the_request_named_it() -> None:
    found = resolve(BASE, BASE, {"window.trigger": 0.5}, {}, named=True)
    assert found.sources[BUDGET] == "request"
    assert found.sources[TRIGGER] == "environment"


def test_nothing_said_changes_nothing() -> None:
    for policy in PRESETS.values():
        document = to_dict(policy)
        assert resolve(document, document, {}, {}).document == document


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"window.nothing": 1}, "window.nothing"),
        ({"offload.age": 1}, "offload.age"),
        ({"name": "x"}, "name"),
        ({"steps": []}, "steps"),
        ({"steps[9].parameters.recents": 1}, "steps[9].parameters.recents"),
        ({"window.recents": -1}, "window.recents"),
        ({"window.recents": "many"}, "window.recents"),
        ({"recite.tokens": 100}, "recite.tokens"),
        ({"": 1}, ""),
    ],
)
def test_what_does_not_fit_is_named(asked: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidPolicy) as caught:
        resolve(OURS, BASE, {}, asked)
    assert caught.value.field == field


def test_every_step_of_a_strategy_is_meant_unless_one_is_named() -> None:
    two = to_dict(Policy("two", steps=(Step("compact", Compact()), Step("compact", Compact()))))
    found = resolve(two, None, {}, {"compact.trigger": 0.5}).document["steps"]
    assert [one["parameters"]["trigger"] for one in found] == [0.5, 0.5]
    found = resolve(two, None, {}, {"steps[1].parameters.trigger": 0.5}).document["steps"]
    assert [one["parameters"]["trigger"] for one in found] == [0.7, 0.5]


def test_the_environment_is_read_by_the_kind_of_each_value() -> None:
    values, wrong = from_environment(
        {
            f"{PREFIX}COMPACT__TRIGGER": "0.8",
            f"{PREFIX}COMPACT__ON_NEW_TOPIC": "yes",
            f"{PREFIX}OFFLOAD__EXCLUDE": "Read, Bash",
            f"{PREFIX}OFFLOAD__UNIT": "turns",
            f"{PREFIX}RECITE__TOKENS": "500",
            f"{PREFIX}RESERVE": "4096",
            f"{PREFIX}COMPACT__INSTRUCTIONS": "",
            "CONTEXTLAB_DEFAULT_POLICY": "ours",
        }
    )
    assert wrong == {}
    assert values == {
        "compact.trigger": 0.8,
        "compact.on_new_topic": True,
        "offload.exclude": ["Read", "Bash"],
        "offload.unit": "turns",
        "recite.tokens": 500,
        "reserve": 4096,
    }


@pytest.mark.parametrize(
    ("name", "text", "answer"),
    [
        ("COMPACT__TRIGGER", "2", "from 0.05 to 0.95"),
        ("COMPACT__TRIGGER", "most", "number"),
        ("COMPACT__TRIGGER", "nan", "number"),
        ("COMPACT__TRIGER", "0.5", "has no triger"),
        ("COMPRESS__TRIGGER", "0.5", "no strategy compress"),
        ("COMPACT__ON_NEW_TOPIC", "maybe", "true or false"),
        ("OFFLOAD__UNIT", "days", "one of steps, turns"),
        ("RESERVE", "-1", "whole number"),
        ("NAME", "x", "cannot be set"),
        ("STEPS", "x", ""),
        ("", "x", ""),
    ],
)
def test_a_variable_that_is_wrong_is_named(name: str, text: str, answer: str) -> None:
    values, wrong = from_environment({PREFIX + name: text})
    assert values == {}
    assert answer in wrong[PREFIX + name]


@given(policies(), policies(), st.dictionaries(st.text(max_size=20), st.integers(), max_size=4))
def test_what_is_resolved_can_run_or_the_request_is_refused(
    policy: Policy, base: Policy, asked: dict[str, Any]
) -> None:
    environment = {"compact.trigger": 0.5, "window.recents": 3, "offload.age": 2, "reserve": 7}
    document = to_dict(policy)
    before = to_dict(policy)
    try:
        found = resolve(document, to_dict(base), environment, asked)
    except InvalidPolicy as error:
        assert error.field in asked
        return
    assert document == before
    assert to_dict(from_dict(found.document)) == found.document
    assert set(found.sources.values()) <= {"request", "policy", "preset", "environment", "default"}
