"""What Gemini's generateContent refuses: the published rules, as sentences about a request body.

Names may be in camel or snake case: google-genai mixes them.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

Json = dict[str, Any]

FUNCTION_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
DECLARATION = {
    *("name", "description", "parameters", "parametersJsonSchema"),
    *("behavior", "response", "responseJsonSchema"),
}
BUILT_IN = {
    *("googleSearch", "googleSearchRetrieval", "codeExecution", "urlContext"),
    *("googleMaps", "fileSearch", "computerUse", "mcpServers"),
}
SHARED = {"text", "inlineData", "fileData"}
ROLES = {
    "user": {*SHARED, "functionResponse"},
    "model": {*SHARED, "functionCall", "executableCode", "codeExecutionResult"},
}
"""The kinds of parts of each role."""
AS_USER = ("tool", "function")
"""Roles of results in examples of the SDK, which the API takes as the user's."""
ABOUT = {"mediaResolution", "videoMetadata", "partMetadata"}
"""Fields that a part may have beside its data."""
CALL = {"id", "name", "args"}
RESPONSE = {"id", "name", "response", "parts", "scheduling", "willContinue"}
MEDIA = {"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "application/pdf"}
OTHER_MEDIA = ("audio/", "video/", "text/")
FREE = {"args", "response", "parameters", "parametersJsonSchema", "responseJsonSchema"}
"""Fields whose names are the agent's."""


def gemini(body: Json) -> list[str]:
    """Why the API would answer 400; empty where it would not. Signatures as for Gemini 3."""
    body = _camel(body)
    found = list(_tools(body.get("tools", [])))
    try:
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        found.append("the body is no valid JSON in UTF-8")
    if "systemInstruction" in body:
        found += _system(body["systemInstruction"])
    contents = body.get("contents")
    if not contents:
        return [*found, "contents is not specified"]
    for at, content in enumerate(contents):
        found += (f"contents.{at}: {wrong}" for wrong in _content(content))
    return [*found, *_turns(contents)]


def _camel(value: Any) -> Any:
    if isinstance(value, list):
        return [_camel(one) for one in value]
    if not isinstance(value, dict):
        return value
    named = {
        re.sub(r"_([a-z])", lambda at: at[1].upper(), name): one for name, one in value.items()
    }
    return {name: one if name in FREE else _camel(one) for name, one in named.items()}


def _tools(tools: list[Json]) -> Iterator[str]:
    declared = [one for tool in tools for one in tool.get("functionDeclarations", [])]
    for tool in tools:
        if not tool or not set(tool) <= {"functionDeclarations", *BUILT_IN}:
            yield f"tools: unknown kind: {sorted(tool)}"
    if tools and not declared and not any(set(tool) & BUILT_IN for tool in tools):
        yield "tools: no tool is declared"
    for function in declared:
        if not FUNCTION_NAME.fullmatch(function.get("name", "")):
            yield f"function name {function.get('name')!r} is invalid"
        if not set(function) <= DECLARATION:
            yield f"unknown name in function declaration: {sorted(set(function) - DECLARATION)}"
    names = [function["name"] for function in declared]
    if len(names) != len(set(names)):
        yield "Duplicate function declaration found"


def _system(content: Json) -> Iterator[str]:
    parts = content.get("parts")
    if not parts or any(set(part) != {"text"} or not part["text"] for part in parts):
        yield "systemInstruction: parts with text are required"


def _role(content: Json) -> str:
    role = str(content.get("role", "user"))
    return "user" if role in AS_USER else role


def _content(content: Json) -> Iterator[str]:
    role = _role(content)
    if not set(content) <= {"role", "parts"} or role not in ROLES:
        yield "Please use a valid role: user, model"
        return
    if not content.get("parts"):
        yield "must include at least one parts field"
        return
    for part in content["parts"]:
        about = {*ABOUT, *(("thought", "thoughtSignature") if role == "model" else ())}
        data = set(part) - about
        # Gemini 3 signs the end of an answer with an empty text, which Gemini CLI leaves out.
        signs = set(part) == {"thoughtSignature"} and role == "model"
        if not signs and (len(data) != 1 or not data <= ROLES[role]):
            yield f"required oneof field 'data' must have one initialized field: {sorted(part)}"
        yield from _data(part)


def _data(part: Json) -> Iterator[str]:
    if "text" in part:
        signs = part["text"] == "" and "thoughtSignature" in part
        if not signs and (not isinstance(part["text"], str) or not part["text"].strip()):
            yield "text must not be empty"
    if "thought" in part and not isinstance(part["thought"], bool):
        yield "thought: a boolean is required"
    if "inlineData" in part:
        kind = part["inlineData"].get("mimeType")
        if kind not in MEDIA and not str(kind).startswith(OTHER_MEDIA):
            yield f"Unsupported MIME type: {kind}"
        if not _is_base64(part["inlineData"].get("data")):
            yield "inlineData: Base64 decoding failed"
    if "functionCall" in part:
        yield from _function(part, "functionCall", CALL, part["functionCall"].get("args", {}))
    if "functionResponse" in part:
        answer = part["functionResponse"].get("response")
        yield from _function(part, "functionResponse", RESPONSE, answer)
    if "thoughtSignature" in part and not _is_base64(part["thoughtSignature"]):
        yield "thoughtSignature: Base64 decoding failed"


def _function(part: Json, name: str, fields: set[str], given: Any) -> Iterator[str]:
    if not FUNCTION_NAME.fullmatch(part[name].get("name", "")):
        yield f"{name}.name: Name cannot be empty, and is a function's"
    if not isinstance(given, dict) or not set(part[name]) <= fields:
        yield f"{name}: an object is required, and known fields: {sorted(part[name])}"


def _is_base64(value: Any) -> bool:
    try:
        return bool(base64.b64decode(value.replace("-", "+").replace("_", "/"), validate=True))
    except (AttributeError, TypeError, ValueError, binascii.Error):
        return False


def _turns(contents: list[Json]) -> Iterator[str]:
    """Contents of one role after each other are one turn: SDKs send streamed parts so."""
    turns = [(role, list(parts)) for role, parts in _grouped(contents)]
    if turns[0][0] != "user":
        yield "Please ensure that the first turn is a user's"
    waiting: list[Json] = []
    for at, (_, parts) in enumerate([*turns, ("end", [])]):
        responses = [one["functionResponse"] for one in parts if "functionResponse" in one]
        if waiting and len(responses) != len(waiting):
            yield (
                f"turn {at}: Please ensure that the number of function response parts is equal "
                "to the number of function call parts of the function call turn."
            )
        elif not _answers(responses, waiting):
            yield (
                f"turn {at}: Please ensure that function response turn comes immediately after "
                "a function call turn."
            )
        if any("functionResponse" not in one for one in parts[: len(responses)]):
            yield f"turn {at}: function responses come first"
        calls = [one for one in parts if "functionCall" in one]
        if calls and "thoughtSignature" not in calls[0]:
            yield f"turn {at}: Function call is missing a thought_signature"
        waiting = [one["functionCall"] for one in calls]


def _grouped(contents: list[Json]) -> Iterator[tuple[str, Iterator[Json]]]:
    for role, listed in groupby(contents, _role):
        yield role, (part for content in listed for part in content.get("parts", ()))


def _answers(responses: list[Json], calls: list[Json]) -> bool:
    """Whether each response has its call; google-genai leaves out the call's id."""
    if any("id" not in one for one in responses):
        return sorted(one["name"] for one in responses) == sorted(one["name"] for one in calls)
    return sorted(map(_named, responses)) == sorted(map(_named, calls))


def _named(one: Json) -> tuple[str, str]:
    return str(one.get("id") or ""), str(one["name"])
