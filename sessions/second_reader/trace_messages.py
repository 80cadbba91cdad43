"""Messages in traces: tools of many makers write them, each in a form of its own."""

from __future__ import annotations

import json
from typing import NamedTuple

from sessions.second_reader.reread import Json, RereadPiece, dicts, piece, plain, said, within

_BY = {
    "assistant": ("ai", "assistant", "model", "AIMessage", "AIMessageChunk"),
    "system": ("system", "developer", "SystemMessage"),
    "user": ("user", "human", "message", "HumanMessage", "HumanMessageChunk"),
    "tool": ("tool", "function", "ToolMessage", "function_call_output", "tool-result"),
}
_ROLES = {name: role for role, names in _BY.items() for name in names}
_ROLES |= dict.fromkeys(("function_call", "reasoning", "tool-call", "tool_call"), "assistant")
_AROUND = ("messages", "contents", "message", "choices", "candidates", "content", "output")
_CALLS = ("tool-call", "tool_call", "function_call")
_RESULTS = ("tool-result", "tool_result", "tool_call_response", "function_call_output")

_Shown = tuple[str, str]
"""A form and its text."""


class SpanMessage(NamedTuple):
    """A message: who said it, and what."""

    role: str
    shown: list[_Shown]

    @property
    def same(self) -> str:
        """What equal messages have in common: histories leave thinking out."""
        shown = [(form, text.strip()) for form, text in self.shown if form != "thinking"]
        return json.dumps([self.role, shown])

    def pieces(self, line: int) -> list[RereadPiece]:
        """The pieces of the message."""
        return [piece(form, text, line) for form, text in self.shown]


def prompt(given: list[Json]) -> list[SpanMessage]:
    """The messages of a prompt, from the first of several places that has any."""
    return _joined(next((found for one in given if (found := messages(one))), []))


def answer(given: list[Json]) -> list[SpanMessage]:
    """The messages of a response: the model said all of them."""
    for one in given:
        found = [
            SpanMessage("assistant", each.shown) for each in messages(one) if each.role != "system"
        ]
        if found:
            return _joined(found)
    return []


def _joined(listed: list[SpanMessage]) -> list[SpanMessage]:
    found: list[SpanMessage] = []
    for one in listed:
        if found and one.role == found[-1].role == "assistant":
            one = SpanMessage("assistant", found.pop().shown + one.shown)
        found.append(one)
    return found


def opened(value: Json) -> Json:
    """A value that may be in JSON text."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def messages(value: Json) -> list[SpanMessage]:
    """All messages in a value: texts are a person's."""
    value = opened(value)
    if isinstance(value, list):
        return [each for one in value for each in messages(one)]
    if isinstance(value, str):
        return [SpanMessage("user", [("text", value)])] if value else []
    if not isinstance(value, dict):
        return []
    if isinstance(inner := value.get("kwargs"), dict):
        named = str(within(value, "id", -1))
        return messages({**inner, "role": inner.get("role") or inner.get("type") or named})
    if "role" in value or "toolCallId" in value or value.get("type") in _ROLES:
        return [one for one in [_message(value)] if one.shown]
    for name in (*_AROUND, "prompt"):
        is_text = isinstance(inner := value.get(name), str) and name in ("contents", "prompt")
        if inner and (is_text or isinstance(inner, dict | list)):
            return [*instructions(value), *messages(inner)]
    return []


def instructions(value: dict[str, Json]) -> list[SpanMessage]:
    """The system prompt beside messages."""
    stated = value.get("system") or value.get("instructions")
    stated = stated or within(value, "config", "system_instruction")
    return [SpanMessage("system", one.shown) for one in messages(stated)]


def _message(one: dict[str, Json]) -> SpanMessage:
    stated = str(one.get("role") or one.get("type") or "tool")
    role = "tool" if one.get("tool_call_id") else _ROLES.get(stated, "tool")
    content = one.get("parts", one.get("contents", one.get("content")))
    if one.get("type") in (*_CALLS, *_RESULTS) or "toolCallId" in one:
        shown = _part(one)
    elif role == "tool" and "parts" not in one and not _has_result(content):
        return SpanMessage(role, [("tool_result", _text(content))])
    else:
        shown = [each for part in _listed(content) for each in _part(part)]
    if any(form == "tool_result" for form, _ in shown):
        return SpanMessage("tool" if role == "user" else role, shown)
    return SpanMessage(role, [*_thought(one), *shown, *_called(one, content)])


def _listed(content: Json) -> list[Json]:
    return content if isinstance(content, list) else [content] if content else []


def _has_result(content: Json) -> bool:
    return any(part.get("type") in _RESULTS for part in dicts(content))


def _thought(one: dict[str, Json]) -> list[_Shown]:
    thought = one.get("reasoning_content")
    thought = thought or within(one, "additional_kwargs", "reasoning_content")
    return [("thinking", thought)] if thought else []


def _called(one: dict[str, Json], content: Json) -> list[_Shown]:
    """The calls beside a message's content, but for those in it."""
    listed = one.get("tool_calls") or within(one, "additional_kwargs", "tool_calls")
    known = {part.get("id") for part in dicts(content) if part.get("type") == "tool_use"}
    return [_use(call) for call in dicts(listed) if not known or call.get("id") not in known]


def _use(call: dict[str, Json]) -> _Shown:
    call = call.get("tool_call") or call
    call = call.get("function") or call
    names = ("input", "args", "arguments")
    given = opened(next((call[name] for name in names if call.get(name) is not None), {}))
    given = given if isinstance(given, dict) else {"arguments": given}
    return "tool_use", f"{call.get('toolName') or call.get('name') or ''} {plain(given)}"


def _part(part: Json) -> list[_Shown]:
    """What a part shows; nothing if it is empty."""
    if not isinstance(part, dict):
        return [("text", str(part))] if part else []
    part = part.get("message_content") or part
    form, called = part.get("type"), part.get("function_call") or part.get("functionCall")
    replied = part.get("function_response") or part.get("functionResponse")
    is_result = "toolCallId" in part and ("result" in part or "output" in part)
    if replied:
        given = replied.get("response")
        alone = isinstance(given, dict) and list(given) == ["output"]
        return [("tool_result", _text(given["output"] if alone else given))]
    if form in _RESULTS or is_result:
        return [("tool_result", _text(_found(part)))]
    if called or form in (*_CALLS, "tool_use") or "toolCallId" in part:
        return [_use(called or part)]
    text = part.get("text") or part.get("thinking") or part.get("content")
    if form in ("reasoning", "thinking"):
        return [("thinking", str(text))] if text else []
    if form in (None, "text", "input_text", "output_text"):
        return [("text", str(text))] if text else []
    return [({"image_url": "image", "file": "document"}.get(str(form), str(form)), "")]


def _found(part: dict[str, Json]) -> Json:
    names = ("output", "result", "response", "content")
    found = next((part[name] for name in names if part.get(name) is not None), "")
    return found["value"] if isinstance(found, dict) and {"type", "value"} <= {*found} else found


def _text(content: Json) -> str:
    """The text of a result, which is JSON if it is an object."""
    return said(content if isinstance(content, str | list) else json.dumps(content))
