"""Whether the input of a tool call keeps to the schema that its tool was defined with.

A simple check and no validator of JSON Schema: required fields, types, enums, and fields that are
not allowed, in objects and lists to any depth. What it does not know (patterns, ranges, references,
choices between schemas) it lets pass, so that what it reports is wrong for certain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

DEEPEST = 20
MOST = 20
"""Faults of a call that are named."""

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "number": (int, float),
    "integer": (int,),
}


def schemas_of(tools: Any) -> dict[str, Mapping[str, Any]]:
    """The schemas of a list of definitions by tool, in Anthropic's form or OpenAI's; those that
    are none are left out."""
    found: dict[str, Mapping[str, Any]] = {}
    for tool in tools if isinstance(tools, list) else []:
        given = tool if isinstance(tool, dict) else {}
        inner = given.get("function")
        given = inner if isinstance(inner, dict) else given
        schema = given.get("input_schema", given.get("parameters"))
        if isinstance(given.get("name"), str) and isinstance(schema, dict):
            found.setdefault(given["name"], schema)
    return found


def faults(schema: Mapping[str, Any], given: Any) -> list[str]:
    """Where an input breaks a schema, as "place: what", the first twenty; empty where it keeps to
    it as far as is checked."""
    found = []
    for fault in _faults(schema, given, "", 0):
        found.append(fault)
        if len(found) == MOST:
            break
    return found


def _faults(schema: Any, given: Any, place: str, depth: int) -> Iterator[str]:
    if not isinstance(schema, Mapping) or depth > DEEPEST:
        return
    wanted = schema.get("type")
    if isinstance(wanted, (str, list)) and not _is_one_of(given, wanted):
        named = wanted if isinstance(wanted, str) else " or ".join(map(str, wanted))
        yield f"{place or '/'}: is no {named}"
        return
    enum = schema.get("enum")
    if isinstance(enum, list) and given not in enum:
        yield f"{place or '/'}: is none of the values"
    if isinstance(given, dict):
        yield from _in_object(schema, given, place, depth)
    elif isinstance(given, list):
        for index, item in enumerate(given):
            yield from _faults(schema.get("items"), item, f"{place}/{index}", depth + 1)


def _in_object(
    schema: Mapping[str, Any], given: dict[str, Any], place: str, depth: int
) -> Iterator[str]:
    required, fields = schema.get("required"), schema.get("properties")
    for name in required if isinstance(required, list) else []:
        if isinstance(name, str) and name not in given:
            yield f"{place}/{name}: is missing"
    fields = fields if isinstance(fields, dict) else {}
    closed = schema.get("additionalProperties") is False and not schema.get("patternProperties")
    for name, value in given.items():
        if name in fields:
            yield from _faults(fields[name], value, f"{place}/{name}", depth + 1)
        elif closed:
            yield f"{place}/{name}: is not allowed"


def _is_one_of(given: Any, wanted: str | list[Any]) -> bool:
    names = [wanted] if isinstance(wanted, str) else wanted
    return any(_is(given, name) for name in names)


def _is(given: Any, name: Any) -> bool:
    types = _TYPES.get(name) if isinstance(name, str) else None
    if types is None:
        return True
    if isinstance(given, bool):
        return bool in types
    if isinstance(given, float) and name == "integer":
        return given.is_integer()
    return isinstance(given, types)
