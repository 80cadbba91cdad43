"""The values of a policy as a form needs them, where they come from, and what changed."""

from __future__ import annotations

from dataclasses import fields as parameters
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings

from compaction.policies.fields import GROUPS, about, field_of, fields, parameters_of
from compaction.policies.origin import SettingChange, changes, filled, origins
from compaction.policies.policy import InvalidPolicy, Policy, Step, from_dict, to_dict
from compaction.policies.presets import PRESETS
from compaction.recitation.recite import Recite
from compaction.strategies import STRATEGIES
from compaction.strategies.compact_settings import Compact
from compaction.strategies.offload import Offload
from tests.compaction.talks import policies

FORMS = [Policy, Recite, *(strategy.parameters for strategy in STRATEGIES.values())]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_every_setting_is_in_words(form: type[Any]):
    kinds = get_type_hints(form)
    said = [
        one for one in parameters(form) if one.name not in ("name", "version", "steps", "recite")
    ]
    for one in said:
        words = one.metadata["help"]
        assert words.endswith(".") and ". " not in words, (one.name, words)
        assert words[0].isupper() and len(words) < 100, (one.name, words)
        label, unit = one.metadata["label"], one.metadata["unit"]
        assert label[0].isupper() and label[-1] not in ".:" and len(label) <= 45, label
        assert one.metadata["group"] in GROUPS
        number = isinstance(one.default, (int, float)) and not isinstance(one.default, bool)
        assert number == bool(unit) == ("slider" in one.metadata), (one.name, unit)
        if number:
            low, high = one.metadata["slider"]
            assert one.metadata["min"] <= low < high <= one.metadata["max"], one.name
            assert unit.startswith("%") == (isinstance(one.default, float) and high <= 1), unit
        if get_origin(kinds[one.name]) is Literal:
            assert one.metadata["choices"].keys() == set(get_args(kinds[one.name])), one.name
    labels = [one.metadata["label"] for one in said]
    assert len(labels) == len(set(labels))


@pytest.mark.parametrize(
    ("strategy", "name", "value", "said"),
    [
        ("compact", "trigger", 0.7, "70 % full"),
        ("window", "target", 0.375, "37.5 % of the budget"),
        ("payback", "results", 3, "3 steps"),
        ("payback", "results", 1, "1 step"),
        ("payback", "patience", 2.5, "2.5 × the cache write"),
        ("payback", "said", 0, "never"),
        ("dedupe", "within", 1, "1 step ago"),
        ("recite", "stale", 1, "1 tool call"),
        ("externalise", "over", 8_000, "8,000 tokens"),
        ("", "task_budget", 10**12, "1,000,000,000,000 tokens"),
        ("", "objective", "lean", "context size"),
        ("", "ttl", "later", "later"),
        ("offload", "inputs", True, "yes"),
        ("offload", "exclude", [], "none"),
        ("offload", "exclude", ["Read", "Grep"], "Read, Grep"),
        ("compact", "instructions", "", "none"),
    ],
)
def test_a_value_is_shown_in_words(strategy: str, name: str, value: Any, said: str):
    field = field_of(strategy, name)
    assert field is not None and field.in_words(value) == said


def test_there_is_no_field_of_another_release():
    assert field_of("gone", "age") is field_of("", "age") is field_of("compact", "age") is None


@pytest.mark.parametrize("name", [*STRATEGIES, "recite"])
def test_every_strategy_says_what_it_does(name: str):
    assert about(name).endswith(".")
    assert about(name)[0].isupper()


def test_fields_are_all_values_in_order_with_their_ranges():
    policy = Policy("p", steps=(Step("offload", Offload(age=9, exclude=("Read",))),), reserve=7)
    found = {field.path: field for field in fields(policy)}
    whole = ["objective", "ttl", "reserve", "board", "task_budget", "tools"]
    assert list(found)[:7] == [*whole, "steps[0].parameters.age"]
    asked = found["ttl"]
    assert (asked.value, asked.choices) == ("recorded", ("recorded", "5m", "1h", "mixed"))
    assert (found["objective"].kind, found["objective"].choices) == ("choice", ("cheap", "lean"))
    age = found["steps[0].parameters.age"]
    assert (age.name, age.kind, age.value, age.low, age.high, age.default) == (
        "age", "int", 9, 0, 10_000, 5,
    )  # fmt: skip
    unit = found["steps[0].parameters.unit"]
    assert (unit.kind, unit.choices, unit.low, unit.high) == (
        "choice",
        ("steps", "turns"),
        None,
        None,
    )
    words = found["steps[0].parameters.exclude"]
    assert (words.kind, words.value, words.default) == ("words", ["Read"], [])
    assert (found["reserve"].value, found["reserve"].high) == (7, 10_000_000)
    assert not [path for path in found if path.startswith("recite")]


@given(policies())
@settings(max_examples=50)
def test_a_value_at_either_end_of_its_range_is_a_policy_and_beyond_is_none(policy: Policy):
    for field in fields(policy):
        if field.low is None or field.high is None:
            continue
        for value, fits in (
            (field.low, True), (field.high, True), (field.low - 1, False), (field.high + 1, False),
        ):  # fmt: skip
            document = _with(to_dict(policy), field.path, value)
            if fits:
                from_dict(document)
            else:
                with pytest.raises(InvalidPolicy) as refused:
                    from_dict(document)
                assert refused.value.field == field.path


def _with(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    holder, _, name = path.rpartition(".")
    if not holder:
        document[name] = value
    elif holder == "recite":
        document["recite"][name] = value
    else:
        document["steps"][int(holder[6:].partition("]")[0])]["parameters"][name] = value
    return document


def test_recitation_and_strategies_have_defaults_to_begin_with():
    assert [field.path for field in parameters_of("recite", "recite")] == [
        "recite.tokens", "recite.observations", "recite.files", "recite.stale", "recite.remind",
        "recite.dashboard", "recite.operations", "recite.guidance",
    ]  # fmt: skip
    assert all(field.value == field.default for field in parameters_of("compact"))
    with pytest.raises(KeyError):
        parameters_of("none")


def _of(*steps: tuple[str, dict[str, Any]], **top: Any) -> dict[str, Any]:
    answer = [{"strategy": name, "parameters": given} for name, given in steps]
    return to_dict(from_dict({"name": "ours", "steps": answer, **top}))


PRESET = to_dict(PRESETS["offload-first"])


@pytest.mark.parametrize(
    ("document", "base", "path", "origin"),
    [
        # what the team set, though it is the default: the preset has another
        (_of(("dedupe", {"within": 0})), PRESET, "steps[0].parameters.within", "policy"),
        (_of(("dedupe", {"within": 4})), PRESET, "steps[0].parameters.within", "preset"),
        (_of(("dedupe", {"within": 5})), PRESET, "steps[0].parameters.within", "policy"),
        (_of(("offload", {})), PRESET, "steps[0].parameters.age", "default"),
        (_of(("offload", {"age": 8})), PRESET, "steps[0].parameters.age", "policy"),
        (_of(reserve=16_384), PRESET, "reserve", "preset"),
        (_of(), PRESET, "reserve", "policy"),
        (_of(), None, "reserve", "default"),
        (_of(reserve=9), None, "reserve", "policy"),
        # a step that the base has not, and a second one of a kind
        (_of(("window", {})), PRESET, "steps[0]", "policy"),
        (_of(("window", {})), PRESET, "steps[0].parameters.trigger", "default"),
        (_of(("dedupe", {"within": 4}), ("dedupe", {"within": 4})), PRESET,
         "steps[1].parameters.within", "policy"),
        (_of(("compact", {}), ("dedupe", {})), PRESET, "steps[0]", "preset"),
        (_of(("compact", {}), ("dedupe", {})), PRESET, "steps", "policy"),
        (PRESET, PRESET, "steps", "preset"),
        (_of(), None, "steps", "default"),
        (_of(recite={}), PRESET, "recite", "policy"),
        (_of(recite={}), PRESET, "recite.tokens", "default"),
        (_of(), to_dict(PRESETS["recitation"]), "recite", "policy"),
        (PRESET, PRESET, "recite", "default"),
        (to_dict(PRESETS["recitation"]), to_dict(PRESETS["recitation"]), "recite", "preset"),
    ],
)  # fmt: skip
def test_a_value_says_where_it_comes_from(
    document: dict[str, Any], base: dict[str, Any] | None, path: str, origin: str
):
    assert origins(document, base)[path] == origin


@given(policies())
@settings(max_examples=30)
def test_every_value_has_an_origin_and_none_is_a_preset_without_one(policy: Policy):
    came = origins(to_dict(policy), None)
    assert {field.path for field in fields(policy)} < set(came)
    alone = {path for path, origin in came.items() if origin == "preset"}
    assert not {field.path for field in fields(policy)} & alone


def test_a_document_of_another_release_has_origins_too():
    strange = {"name": "old", "steps": [{"strategy": "gone", "parameters": {"x": 1}}, 3]}
    assert origins(strange, PRESET)["steps[0].parameters.x"] == "policy"


def test_what_a_document_leaves_out_is_its_bases():
    assert filled({"name": "ours"}, PRESET) == {**PRESET, "name": "ours"}
    made = filled(
        {"name": "ours", "steps": [{"strategy": "dedupe", "parameters": {"share": 0.5}}]}, PRESET
    )
    assert made["steps"][0]["parameters"]["within"] == 4
    assert made["steps"][0]["parameters"]["share"] == 0.5
    assert (made["reserve"], len(made["steps"])) == (16_384, 1)
    recites = to_dict(PRESETS["recitation"])
    assert filled({"recite": None}, recites)["recite"] is None
    assert filled({"recite": {"files": 2}}, recites)["recite"]["tokens"] == 1_000
    assert filled({"name": "alone"}, None) == {"name": "alone"}


@pytest.mark.parametrize(
    "given",
    [
        {"steps": 3},
        {"steps": [3, {"strategy": []}, {"strategy": "offload", "parameters": 3}]},
        {"recite": 3},
    ],
)
def test_what_is_no_policy_stays_for_the_check_to_refuse(given: dict[str, Any]):
    with pytest.raises(InvalidPolicy):
        from_dict({"name": "n", **filled(given, to_dict(PRESETS["recitation"]))})


@given(policies(), policies())
@settings(max_examples=30)
def test_filling_from_a_base_leaves_a_whole_document_as_it_is(policy: Policy, base: Policy):
    assert filled(to_dict(policy), to_dict(base)) == to_dict(policy)


def test_changes_name_values_steps_and_their_order():
    before = _of(("offload", {}), ("compact", {"trigger": 0.7}))
    after = _of(
        ("compact", {"trigger": 0.8}), ("offload", {}), ("window", {}), reserve=5, recite={}
    )
    assert changes(before, after) == (
        SettingChange("steps[2]", "window", False, True),
        SettingChange("steps", "order of steps", "offload, compact", "compact, offload"),
        SettingChange("reserve", "reserve", 0, 5),
        SettingChange("steps[0].parameters.trigger", "compact · trigger", 0.7, 0.8),
        SettingChange("recite", "recite", False, True),
    )
    gone = changes(after, _of(("compact", {"trigger": 0.8}), reserve=5))
    assert [(one.name, one.before, one.after) for one in gone] == [
        ("offload", True, False), ("window", True, False), ("recite", True, False),
    ]  # fmt: skip
    twice = changes(_of(("offload", {})), _of(("offload", {}), ("offload", {})))
    assert [one.name for one in twice] == ["offload (2)"]


@given(policies(), policies())
@settings(max_examples=50)
def test_what_says_the_same_has_no_changes_and_what_does_not_has_some(one: Policy, other: Policy):
    assert changes(to_dict(one), to_dict(one)) == ()
    assert bool(changes(to_dict(one), to_dict(other))) == (one != other)


def test_the_base_of_a_preset_step_is_the_preset_itself():
    came = origins(PRESET, PRESET)
    assert "policy" not in came.values()
    assert isinstance(PRESETS["offload-first"].steps[3].parameters, Compact)
    assert came["steps[3].parameters.trigger"] == "default"
