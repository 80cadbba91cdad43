"""Inputs of tools against the schemas they were defined with."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.tools.schema_check import faults, schemas_of

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "line": {"type": "integer"},
        "mode": {"enum": ["a", "b"]},
        "many": {"type": "array", "items": {"type": ["string", "null"]}},
    },
    "required": ["path"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"path": "x"}, []),
        ({"path": "x", "line": 3.0, "many": ["y", None]}, []),
        ({}, ["/path: is missing"]),
        ({"path": 3}, ["/path: is not of type string"]),
        ({"path": "x", "line": True}, ["/line: is not of type integer"]),
        ({"path": "x", "line": "3"}, ["/line: is not of type integer"]),
        ({"path": "x", "mode": "c"}, ["/mode: is not an allowed value"]),
        ({"path": "x", "many": ["y", 1]}, ["/many/1: is not of type string or null"]),
        ({"path": "x", "other": 1}, ["/other: is not allowed"]),
        ([], ["/: is not of type object"]),
    ],
)
def test_what_is_wrong_is_named_by_its_place(given: Any, found: list[str]) -> None:
    assert faults(SCHEMA, given) == found


def test_definitions_of_either_provider_give_their_schemas() -> None:
    tools = [
        {"name": "a", "input_schema": {"type": "object"}},
        {"type": "function", "function": {"name": "b", "parameters": {"required": ["x"]}}},
        {"name": "bare"},
        "text",
        None,
    ]
    assert schemas_of(tools) == {"a": {"type": "object"}, "b": {"required": ["x"]}}
    assert schemas_of("no list") == {}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(_JSON, _JSON)
def test_no_schema_and_no_input_breaks_the_check(schema: Any, given: Any) -> None:
    assert len(faults(schema if isinstance(schema, dict) else {"items": schema}, given)) <= 20
    assert faults({}, given) == []
