"""Parsing of one message of a live agent: format, validation and content."""

from __future__ import annotations

from typing import get_args

from compaction.context.blocks import Kind, Role
from compaction.context.session import MOST_TOKENS
from sessions.importers.decoded import MAX_DEPTH, clean, depth
from sessions.importers.openai_wire import assistant_blocks, content_blocks, result_block
from sessions.importers.records import Call, Json, Message
from sessions.importers.reported import Implausible, Reported, any_usage
from sessions.importers.wire import Block, is_said_in, milliseconds, sequence

LONGEST_ID = 200
"""Maximum length of an id, in characters."""

_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
_KINDS = frozenset(get_args(Kind))
_OURS = {
    *("role", "content", "blocks", "id", "call", "at", "timestamp", "created_at"),
    *("kind", "human", "pinned", "usage", "model", "stop_reason", "retry_of"),
    *("tool_calls", "function_call", "tool_call_id", "refusal", "reasoning_content", "reasoning"),
}
"""Known fields; others are kept unchanged."""

_OPENAI_FIELDS = ("tool_calls", "function_call", "tool_call_id", "refusal")
_OPENAI_PARTS = frozenset(
    {"input_text", "output_text", "refusal", "image_url", "input_image", "input_audio", "file"}
)
_TEXTS = {
    "text": ("text",),
    "thinking": ("thinking",),
    "tool_use": ("id", "name"),
    "tool_result": ("tool_use_id",),
}
"""Fields of a block that must be text."""


class Unacceptable(ValueError):
    """Invalid input: its place (a JSON pointer), and the problem as the end of a sentence."""

    def __init__(self, pointer: str, problem: str) -> None:
        super().__init__(f"{pointer}: {problem}")
        self.pointer = pointer
        self.problem = problem


def message(item: Json, place: str) -> tuple[Message, Call | None]:
    """Parse a message and, for an assistant's, its call. Raises Unacceptable."""
    given = _object(item, place)
    role = _role(given, place)
    if depth(given) > MAX_DEPTH:
        raise Unacceptable(place, f"is nested more than {MAX_DEPTH} levels deep")
    blocks = _blocks(given, role, place)
    stamp = given.get("timestamp") or given.get("created_at")
    made = Message(
        role,
        blocks,
        key=identifier(given, "id", place) or None,
        call=(identifier(given, "call", place) or None) if role == "assistant" else None,
        at=time_of(given, "at", place) or (None if stamp is None else milliseconds(stamp)),
        kind=_kind(given, role, place),
        human=_human(given, role, blocks, place),
        extra={name: value for name, value in given.items() if name not in _OURS} or None,
        pinned=_flag(given, "pinned", place) or False,
        retry_of=_retry_of(given, role, place),
    )
    reported = _call(given, made, place) if role == "assistant" else None
    return made, reported


def usage_of(raw: Json, place: str) -> Reported:
    """Parse usage in any provider's format. Raises Unacceptable."""
    given = _object(raw, place)
    listed = enumerate(sequence(given.get("iterations")))
    parts = {place: given} | {f"{place}/iterations/{at}": _object(one, place) for at, one in listed}
    for where, part in parts.items():
        for name, count in part.items():
            if isinstance(count, (int, float)) and not isinstance(count, bool) and count < 0:
                raise Unacceptable(f"{where}/{name}", "must not be below zero")
    try:
        return any_usage(given)
    except Implausible:
        raise Unacceptable(place, f"counts more than {MOST_TOKENS:,} tokens") from None


def identifier(given: dict[str, Json], name: str, place: str) -> str:
    """An id field; empty if missing or null. Raises Unacceptable."""
    value = given.get(name)
    if value is None:
        return ""
    where = f"{place}/{name}"
    if not isinstance(value, str):
        raise Unacceptable(where, f"must be text, not {_named(value)}")
    if len(value) > LONGEST_ID:
        raise Unacceptable(where, f"is longer than {LONGEST_ID} characters")
    if "\x00" in value or not value.isascii() and _has_surrogate(value):
        raise Unacceptable(where, "must not contain NUL or lone surrogates")
    return value


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def _object(value: Json, place: str) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise Unacceptable(place, f"must be an object, not {_named(value)}")
    return value


def _named(value: Json) -> str:
    """The JSON type of a value."""
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list"}
    return "null" if value is None else names.get(type(value), "an object")


def _role(given: dict[str, Json], place: str) -> Role:
    said = given.get("role")
    if isinstance(said, str) and said in _ROLES:
        return _ROLES[said]
    problem = "is missing" if said is None else "is unknown" if isinstance(said, str) else "is none"
    raise Unacceptable(f"{place}/role", f"{problem}; use one of {', '.join(_ROLES)}")


# Content


def _blocks(given: dict[str, Json], role: Role, place: str) -> list[Block]:
    name = "blocks" if given.get("content") is None and "blocks" in given else "content"
    content, where = given.get(name), f"{place}/{name}"
    if name == "content" and content is None and role != "assistant" and "content" not in given:
        raise Unacceptable(where, "is missing")
    _check_content(content, where)
    if _is_openai(given, content):
        blocks = _openai_blocks(given, role, place)
    else:
        # An empty message still counts, and must be recognizable.
        listed = [content] if isinstance(content, str) else content or []
        blocks = [_text(one) if isinstance(one, str) else dict(one) for one in listed]
    effort = given.get("output_config")
    if role == "system" and isinstance(effort, dict):
        # It holds from this place on, and so it is content: what is sent again must have it here.
        blocks.append({**effort, "type": "output_config"})
    return blocks or [_text("")]


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _is_openai(given: dict[str, Json], content: Json) -> bool:
    said = any(given.get(name) not in (None, "", []) for name in _OPENAI_FIELDS)
    if said or given["role"] in ("developer", "function"):
        return True
    parts = content if isinstance(content, list) else []
    forms = {part.get("type") for part in parts if isinstance(part, dict)}
    if given["role"] == "tool":
        return "tool_result" not in forms
    reasons = given["role"] == "assistant" and any(
        given.get(name) for name in ("reasoning_content", "reasoning")
    )
    return bool(reasons) or not forms.isdisjoint(_OPENAI_PARTS)


def _openai_blocks(given: dict[str, Json], role: Role, place: str) -> list[Block]:
    if role == "tool":
        named = identifier(given, "tool_call_id", place) or identifier(given, "name", place)
        return [result_block(given, named)]
    if role != "assistant":
        return content_blocks(given.get("content"))
    _check_calls(given, place)
    blocks = assistant_blocks(given)
    for block in blocks:
        if block.get("type") == "tool_use" and not block["id"]:
            # The old format has no ids: results name the function.
            block["id"] = block["name"]
    return blocks


def _check_calls(given: dict[str, Json], place: str) -> None:
    calls = given.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        raise Unacceptable(f"{place}/tool_calls", f"must be a list, not {_named(calls)}")
    for index, call in enumerate(calls or []):
        where = f"{place}/tool_calls/{index}"
        identifier(_object(call, where), "id", where)
        part = "custom" if isinstance(call.get("custom"), dict) else "function"
        function = _object(call.get(part), f"{where}/{part}")
        if not isinstance(function.get("name"), str):
            raise Unacceptable(f"{where}/{part}/name", "must be text")
    if given.get("function_call") is not None:
        function = _object(given["function_call"], f"{place}/function_call")
        if not isinstance(function.get("name"), str):
            raise Unacceptable(f"{place}/function_call/name", "must be text")


def _check_content(content: Json, where: str) -> None:
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        raise Unacceptable(where, f"must be text or a list of blocks, not {_named(content)}")
    for index, block in enumerate(content):
        if not isinstance(block, str):
            _check_block(_object(block, f"{where}/{index}"), f"{where}/{index}")


def _check_block(block: dict[str, Json], where: str) -> None:
    form = block.get("type")
    if not isinstance(form, str):
        raise Unacceptable(f"{where}/type", "must be text: the type of the block")
    for name in _TEXTS.get(form, ()):
        if not isinstance(block.get(name), str):
            given = "missing" if block.get(name) is None else _named(block[name])
            raise Unacceptable(f"{where}/{name}", f"must be text, but is {given}")
        if name in ("id", "tool_use_id") and len(block[name]) > LONGEST_ID:
            raise Unacceptable(f"{where}/{name}", f"is longer than {LONGEST_ID} characters")
    if form == "tool_use" and not isinstance(block.get("input", {}), dict):
        raise Unacceptable(f"{where}/input", f"must be an object, not {_named(block['input'])}")
    if form == "tool_result":
        _check_content(block.get("content"), f"{where}/content")


# Other fields


def time_of(given: dict[str, Json], name: str, place: str) -> int | None:
    """A time field in ms since the epoch; None if missing. Raises Unacceptable."""
    if given.get(name) is None:
        return None
    at = milliseconds(given[name])
    if at is None:
        raise Unacceptable(f"{place}/{name}", "must be a time: ISO 8601, or ms since the epoch")
    return at


def _kind(given: dict[str, Json], role: Role, place: str) -> Kind | None:
    kind: Kind | None = given.get("kind")
    if kind is None:
        return "system" if role == "system" else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise Unacceptable(f"{place}/kind", f"must be one of {', '.join(get_args(Kind))}")
    return kind


def _flag(given: dict[str, Json], name: str, place: str) -> bool | None:
    value = given.get(name)
    if value is not None and not isinstance(value, bool):
        raise Unacceptable(f"{place}/{name}", f"must be true or false, not {_named(value)}")
    return value


def _retry_of(given: dict[str, Json], role: Role, place: str) -> int | None:
    step = given.get("retry_of")
    if step is None:
        return None
    where = f"{place}/retry_of"
    if isinstance(step, bool) or not isinstance(step, int) or step < 1:
        raise Unacceptable(where, "must be a whole number from 1: the step that failed")
    if role != "assistant":
        raise Unacceptable(where, "is allowed only on the assistant message that retries the step")
    return step


def _human(given: dict[str, Json], role: Role, blocks: list[Block], place: str) -> bool:
    """Whether a message begins a turn: a user message with more than results and notices."""
    said = _flag(given, "human", place)
    if said is not None:
        return said
    own = given.get("kind") not in (None, "user")
    return role == "user" and not own and any(is_said_in(block) for block in blocks)


def _call(given: dict[str, Json], made: Message, place: str) -> Call | None:
    """The call described by a message; None without any information."""
    raw = given.get("usage")
    reported = Reported(None, True) if raw is None else usage_of(raw, f"{place}/usage")
    texts = (given.get("model"), given.get("stop_reason"))
    model, stopped = (clean(one) if one and isinstance(one, str) else "" for one in texts)
    if reported.usage is None and not model and not stopped:
        return None
    return Call(
        call=made.call or "",
        model=model,
        at=made.at,
        usage=reported.usage,
        usage_raw=raw if reported.usage else None,
        reconciles=reported.reconciles,
        stop_reason=stopped,
    )
