"""The readable form of a policy: nothing is lost in it, and nothing but a policy is read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.policies.origin import filled
from compaction.policies.policy import Policy, Step, from_dict, to_dict
from compaction.policies.presets import PRESETS
from compaction.policies.yaml import LONGEST, UnreadablePolicy, read, written
from compaction.strategies.compact_settings import Compact
from compaction.strategies.offload import Offload
from tests.compaction.talks import policies

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30)
"""Any text that a policy may hold."""


def _wordy(policy: Policy, text: str, words: list[str], number: int) -> Policy:
    more = (
        Step("offload", Offload(exclude=tuple(words), only=tuple(reversed(words)))),
        Step("compact", Compact(instructions=text)),
    )
    name = text if text.strip() else policy.name
    return replace(policy, name=name, version=number, steps=(*policy.steps, *more))


@given(
    policies(),
    TEXTS,
    st.lists(
        st.one_of(TEXTS, st.sampled_from(["no", "on", "1", "0E0", ".5e2", "null", "a: b", "#"]))
    ),
    st.integers(1, 9),
    st.sampled_from(["", *PRESETS]),
)
@settings(max_examples=150)
def test_a_document_is_read_as_it_was_written(
    policy: Policy, text: str, words: list[str], number: int, based_on: str
):
    document = to_dict(_wordy(policy, text, words, number))
    base = to_dict(PRESETS[based_on]) if based_on else None
    again = read(written(document, based_on, base))
    assert again.based_on == based_on
    assert {"version": 1, **again.document} == document
    assert read(json.dumps(document)).document == document, "and as JSON"


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_written_with_where_their_values_come_from(name: str):
    document = to_dict(PRESETS[name])
    text = written(document, name, document)
    assert text.startswith(f"name: {name}\nbased_on: {name}\n")
    assert "# policy" not in text
    assert from_dict(read(text).document) == PRESETS[name]
    assert max(map(len, text.splitlines())) <= 110


def test_each_value_stands_with_its_origin():
    base = to_dict(PRESETS["offload-first"])
    document = to_dict(from_dict({"name": "ours", "reserve": 5, "steps": base["steps"][:1]}))
    lines = written(document, "offload-first", base).splitlines()
    assert [" ".join(line.split()) for line in lines] == [
        "name: ours",
        "based_on: offload-first",
        "objective: cheap # default",
        "ttl: recorded # default",
        "reserve: 5 # policy",
        "board: 0 # default",
        "task_budget: 0 # default",
        "tools: all # default",
        "steps:",
        "- strategy: dedupe # preset",
        "parameters:",
        "within: 4 # preset",
        "minimum: 50 # default",
        "share: 0.8 # default",
        "exclude: [] # default",
        "recite: null # default",
    ]


def test_what_is_left_out_is_for_the_base_to_say():
    found = read("name: ours\nbased_on: offload-first\nreserve: 9\n")
    made = from_dict(filled(found.document, to_dict(PRESETS[found.based_on])))
    assert made == replace(PRESETS["offload-first"], name="ours", reserve=9)


def test_values_are_those_of_json_and_not_of_old_yaml():
    text = "a: no\nb: 1:30\nc: 010\nd: 1_000\ne: 0x1f\nf: 2026-01-01\ng: .5\nh: 1e-3\ni: ~\nj: True"
    assert read(text).document == {
        "a": "no", "b": "1:30", "c": "010", "d": "1_000", "e": "0x1f", "f": "2026-01-01",
        "g": 0.5, "h": 0.001, "i": None, "j": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "problem", "line"),
    [
        ("", "must be an object", None),
        ("[]", "must be an object", None),
        ("just words", "must be an object", None),
        ("a: &x [1]\nb: *x", "anchors and aliases", 1),
        ("a: 1\nb: *x", "anchors and aliases", 2),
        ("a: !!python/name:os.system x", "tags are not allowed", 1),
        ("reserve: 1\n\nreserve: 2", "reserve is set twice", 3),
        ('{"name": "a", "name": "b"}', "name is set twice", 1),
        ("1: 2", "a key must be text", 1),
        ("[1, 2]: 3", "a key must be text", 1),
        ("<<: {a: 1}\n<<: {a: 2}", "is set twice", 2),
        ("a: b: c", "not allowed here", 1),
        ("name: a\n\tb: c", "cannot start any token", 2),
        ("a: [" * 3000, "nested deeper", 1),
        ("- " * 3000, "nested deeper", 1),
        ("? " * 3000, "nested deeper", 1),
        ("a: \x00", "neither YAML nor JSON", None),
        ('a: "\\ud800"', "neither YAML nor JSON", None),
        ("based_on: [x]", "based_on must be", None),
        ("name: a\n---\nname: b", "another document", 2),
        ("a: " + "x" * LONGEST, "longer than 64 kB", None),
    ],
)
def test_what_is_no_policy_is_refused_with_its_line(text: str, problem: str, line: int | None):
    with pytest.raises(UnreadablePolicy) as refused:
        read(text)
    assert problem in refused.value.problem
    if line is not None:
        assert refused.value.line == line


@given(
    st.one_of(st.text(max_size=200), st.text(alphabet="-?:{}[],&*!|>'\"#%@ \n\tab1", max_size=80))
)
@settings(max_examples=200)
def test_any_text_is_read_or_refused(text: str):
    try:
        found: Any = read(text)
    except UnreadablePolicy:
        return
    assert isinstance(found.document, dict)
