"""Check whether the input of a tool call matches the tool's schema.

A simple check, not a full JSON Schema validator: required fields, types, enums, and disallowed
fields, in objects and lists to any depth. Everything else (patterns, ranges, references, choices
between schemas) passes, so that every reported fault is certain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

DEEPEST = 20
MOST = 20
"""Maximum faults reported per call."""

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
    """Return the valid schemas in a list of Anthropic or OpenAI tool definitions, by tool."""
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
    """Return where an input breaks a schema, as "place: problem", at most twenty."""
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
        yield f"{place or '/'}: is not of type {named}"
        return
    enum = schema.get("enum")
    if isinstance(enum, list) and given not in enum:
        yield f"{place or '/'}: is not an allowed value"
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
