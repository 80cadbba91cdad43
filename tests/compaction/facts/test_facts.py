"""What counts as a fact, and that finding facts stays linear on hostile text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.context.blocks import Block
from compaction.facts.facts import COMMON, FactIndex, as_written, facts, facts_of


def block(number: int, text: str, form: str = "text") -> Block:
    return Block(
        id=f"b{number}",
        position=number,
        message=number,
        born=number,
        turn=1,
        role="user",
        type=form,  # type: ignore[arg-type]
        kind="user",
        tokens=1,
        chars=len(text),
        sha="",
        text=text,
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("compaction/cache/simulator.py", {"compaction/cache/simulator.py"}),
        ("/usr/bin/env", {"usr/bin/env"}),
        ("see src/app.py:12: here", {"src/app.py:12"}),
        ("(load_file).", {"load_file"}),
        ("__init__", {"__init__"}),
        ("_hidden", {"_hidden"}),
        ("readFile README", {"readFile", "README"}),
        ("Reader reader Capital", set()),
        ("a_b1", set()),
        ("port 8080, 443, year 2026.", {"8080", "2026"}),
        ("2026-11-20 12ab_cd", set()),
        ("3.14159", set()),
        ("user@host.example1", {"user@host.example1"}),
        ("打开config/app.py看看", {"config/app.py"}),
        ("-flag_name- ::Path_to::", {"flag_name", "Path_to"}),
        ("", set()),
    ],
)
def test_the_definition(text: str, found: set[str]) -> None:
    assert facts(text) == found


def test_a_tool_input_is_read_by_its_values() -> None:
    text = json.dumps(
        {"file_path": "/src/main_file.py", "old": "x\nload_rows(1)", "n": [12345, True, None]}
    )
    assert facts_of(block(1, text, "tool_use")) == {"src/main_file.py", "load_rows", "12345"}
    assert facts_of(block(1, "grep -n load_rows(", "tool_use")) == {"load_rows"}


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "1" * 5_000, '{"a":' * 50_000 + "1" + "}" * 50_000]
)
def test_hostile_tool_inputs_do_not_raise(text: str) -> None:
    assert all(fact in text for fact in facts_of(block(1, text, "tool_use")))


@pytest.mark.parametrize("unit", ["a", "a.", "-", "_", "a-", "aA ", "é", "0", "/", ":@"])
def test_a_long_monotone_text_is_one_fact_or_none(unit: str) -> None:
    text = unit * (2_000_000 // len(unit))
    assert facts(text) == ({text} if unit in ("_", "0") else set())


@given(st.text(max_size=300))
def test_every_fact_is_a_fact_of_itself(text: str) -> None:
    for fact in facts(text):
        assert fact in text
        assert facts(fact) == {fact}


@given(st.lists(st.text(max_size=40), max_size=8))
def test_facts_of_lines_are_those_of_the_text(lines: list[str]) -> None:
    assert facts("\n".join(lines)) == set().union(*(facts(line) for line in lines))


def test_common_facts_are_noise() -> None:
    blocks = [block(i, "common_fact") for i in range(COMMON + 1)]
    index = FactIndex(blocks)
    assert index.holders == {}
    assert not any(index.held(block) for block in blocks)
    rare = FactIndex(blocks[:-1])
    assert len(rare.holders["common_fact"]) == COMMON
    assert rare.held(blocks[0]) == {"common_fact"}


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("see /var/lib/a.json now", "/var/lib/a.json"),
        ("see ~/var/lib/a.json", "~/var/lib/a.json"),
        ("in ../../var/lib/a.json", "../../var/lib/a.json"),
        ("var/lib/a.json", "var/lib/a.json"),
        ("'var/lib/a.json' is /var/lib/a.json", "var/lib/a.json"),
        ("/srv/var/lib/a.json and /var/lib/a.json", "/var/lib/a.json"),
        ("https://var/lib/a.json", "var/lib/a.json"),
    ],
)
def test_a_fact_is_shown_as_its_text_writes_it(text: str, written: str) -> None:
    assert as_written("var/lib/a.json", text) == written
