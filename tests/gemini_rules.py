"""What Gemini's generateContent refuses: the published rules, as sentences about a request body."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

FUNCTION_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
DECLARATION = {
    *("name", "description", "parameters", "parametersJsonSchema", "parameters_json_schema"),
    *("behavior", "response", "responseJsonSchema", "response_json_schema"),
}
DATA = {"text", "inlineData", "functionCall", "functionResponse"}
MEDIA = {"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "application/pdf"}
BY_ROLE = {"user": DATA - {"functionCall"}, "model": DATA - {"functionResponse"}}


def gemini(body: Json) -> list[str]:
    """Why the API would answer 400; empty where it would not. Signatures as for Gemini 3."""
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


def _tools(tools: list[Json]) -> Iterator[str]:
    declared = [one for tool in tools for one in tool.get("functionDeclarations", [])]
    if tools and not declared:
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


def _content(content: Json) -> Iterator[str]:
    if set(content) != {"role", "parts"} or content["role"] not in BY_ROLE:
        yield "Please use a valid role: user, model"
        return
    if not content["parts"]:
        yield "must include at least one parts field"
    for part in content["parts"]:
        data = set(part) - {"thoughtSignature"}
        if len(data) != 1 or not data <= BY_ROLE[content["role"]]:
            yield f"required oneof field 'data' must have one initialized field: {sorted(part)}"
        if "thoughtSignature" in part and content["role"] != "model":
            yield "a signature is the model's"
        yield from _data(part)


def _data(part: Json) -> Iterator[str]:
    if "text" in part and (not isinstance(part["text"], str) or not part["text"].strip()):
        yield "text must not be empty"
    if "inlineData" in part:
        if part["inlineData"].get("mimeType") not in MEDIA:
            yield f"Unsupported MIME type: {part['inlineData'].get('mimeType')}"
        if not _is_base64(part["inlineData"].get("data")):
            yield "inlineData: Base64 decoding failed"
    for name, field in (("functionCall", "args"), ("functionResponse", "response")):
        given = part.get(name)
        if given is None:
            continue
        if not FUNCTION_NAME.fullmatch(given.get("name", "")):
            yield f"{name}.name: Name cannot be empty, and is a function's"
        if not isinstance(given.get(field), dict) or not set(given) <= {"id", "name", field}:
            yield f"{name}.{field}: an object is required"
    if "thoughtSignature" in part and not _is_base64(part["thoughtSignature"]):
        yield "thoughtSignature: Base64 decoding failed"


def _is_base64(value: Any) -> bool:
    try:
        return bool(base64.b64decode(value.replace("-", "+").replace("_", "/"), validate=True))
    except (AttributeError, TypeError, ValueError, binascii.Error):
        return False


def _turns(contents: list[Json]) -> Iterator[str]:
    if contents[0].get("role") != "user":
        yield "Please ensure that the first turn is a user's"
    waiting: list[Json] = []
    for at, content in enumerate([*contents, {"role": "end", "parts": []}]):
        if at and content["role"] == contents[at - 1]["role"]:
            yield f"contents.{at}: roles must alternate between user and model"
        responses = [
            one["functionResponse"] for one in content["parts"] if "functionResponse" in one
        ]
        if waiting and len(responses) != len(waiting):
            yield (
                f"contents.{at}: Please ensure that the number of function response parts is equal "
                "to the number of function call parts of the function call turn."
            )
        elif sorted(map(_named, responses)) != sorted(map(_named, waiting)):
            yield (
                f"contents.{at}: Please ensure that function response turn comes immediately after "
                "a function call turn."
            )
        if any("functionResponse" not in one for one in content["parts"][: len(responses)]):
            yield f"contents.{at}: function responses come first"
        calls = [one for one in content["parts"] if "functionCall" in one]
        if calls and "thoughtSignature" not in calls[0]:
            yield f"contents.{at}: Function call is missing a thought_signature"
        waiting = [one["functionCall"] for one in calls]


def _named(one: Json) -> tuple[str, str]:
    return str(one.get("id") or ""), str(one["name"])
