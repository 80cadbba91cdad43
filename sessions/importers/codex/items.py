"""Response items of a Codex rollout, converted to blocks."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from compaction.context.blocks import Kind, Role
from sessions.importers.records import Json
from sessions.importers.wire import Block, blocks_of, mapping, sequence, string, text_of

_NOT_TYPED = re.compile(
    r"\s*(# AGENTS\.md instructions|</?(environment_context|user_instructions|INSTRUCTIONS|"
    r"turn_aborted|subagent_notification|skill|user_shell_command|permissions|collaboration_mode|"
    r"environments|apps_instructions|plugins_instructions|recommended_plugins|hook_prompt)\b)"
)
"""Prefixes of user items written by the client: instructions it found, and its own tags."""

_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
_BY_PROVIDER = frozenset(
    {"web_search_call", "tool_search_call", "image_generation_call", "file_search_call"}
)
_TEXTS = frozenset({"input_text", "output_text", "summary_text", "reasoning_text", "text"})

_HEADER = re.compile(
    r"(?:Chunk ID|Wall time|Original token count|Total output lines|Process running with session ID"
    r"):? .{1,60}|(?P<script>Script (?:completed|failed))"
    r"|(?:Process exited with code|Exit code:) (?P<code>-?\d{1,10})"
)
"""Lines that Codex itself writes above a program's output."""

_HEADER_SIZE = 400
"""Maximum length of such a header, in code points."""

_PATCH_FAILED = "apply_patch verification failed"


class Item(NamedTuple):
    """A response item as part of a context."""

    role: Role
    blocks: list[Block]
    kind: Kind | None = None
    human: bool = False


def item_of(given: dict[str, Json]) -> Item | None:
    """Convert a response item; None for unknown types."""
    form = string(given.get("type"))
    if form == "message":
        return _message(given)
    if form == "reasoning":
        return Item("assistant", [_thinking(given)])
    if form in _CALLS:
        return Item("assistant", [_tool_use(given)])
    if form in _RESULTS:
        return Item("tool", [_tool_result(given)])
    if form in _BY_PROVIDER:
        return Item("assistant", [dict(given)])
    if form == "tool_search_output":
        return Item("tool", [{"type": "tools", "tools": sequence(given.get("tools"))}])
    if form == "agent_message":
        return Item("user", _parts(given.get("content")))
    if form in {"compaction", "compaction_summary", "context_compaction"}:
        return Item("user", [dict(given)], kind="summary")
    return None


def _message(given: dict[str, Json]) -> Item:
    role, blocks = string(given.get("role")), _parts(given.get("content"))
    if role == "assistant":
        return Item("assistant", blocks)
    if role in {"developer", "system"}:
        return Item("system", blocks, kind="system")
    typed = _NOT_TYPED.match(text_of(blocks)) is None
    return Item("user", blocks, kind=None if typed else "memory", human=typed)


def _parts(content: Json) -> list[Block]:
    return [_part(block) for block in blocks_of(content)]


def _part(block: Block) -> Block:
    if block.get("type") in _TEXTS and isinstance(block.get("text"), str):
        return {**block, "type": "text"}
    if block.get("type") == "input_image":
        source = {"type": "url", "url": block.get("image_url")}
        return {"type": "image", "source": source}
    return block


def _thinking(given: dict[str, Json]) -> Block:
    shown = [*sequence(given.get("summary")), *sequence(given.get("content"))]
    text = "\n\n".join(string(mapping(part).get("text")) for part in shown)
    return {**given, "type": "thinking", "thinking": text}


def _tool_use(given: dict[str, Json]) -> Block:
    return {
        "type": "tool_use",
        "id": string(given.get("call_id") or given.get("id")),
        "name": string(given.get("name")) or "local_shell",
        "input": _input(given),
    }


def _input(given: dict[str, Json]) -> Json:
    if "input" in given:
        return {"input": given["input"]}
    if "action" in given:
        return given["action"]
    return parsed(given.get("arguments"))


def parsed(arguments: Json) -> Json:
    """Parse function call arguments into an object; {"arguments": …} if they are not one."""
    try:
        value = json.loads(arguments, parse_constant=str) if isinstance(arguments, str) else None
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"arguments": arguments}


def _tool_result(given: dict[str, Json]) -> Block:
    output = given.get("output")
    failed = _failed(output)
    if isinstance(output, dict):
        output = output.get("content", output)
    content = output if isinstance(output, str) else _parts(output)
    result: Block = {
        "type": "tool_result",
        "tool_use_id": string(given.get("call_id")),
        "content": content,
    }
    return {**result, "is_error": True} if failed else result


def _failed(output: Json) -> bool:
    """Whether the tool itself reports a failure; program output is ignored.

    It reports one in metadata with an exit code, or in a header that ends before a line `Output:`.
    """
    if isinstance(output, list):
        output = string(mapping(output[0]).get("text")) if output else ""
    if not isinstance(output, str):
        return _code_of(output) or mapping(output).get("success") is False
    if output.startswith('{"'):
        return _code_of(parsed(output))
    head, end, _ = output[:_HEADER_SIZE].partition("\nOutput:")
    lines = [_HEADER.fullmatch(line) for line in head.splitlines()]
    if not end or not all(lines):
        return output.startswith(_PATCH_FAILED)
    return any(
        line["script"] == "Script failed" or int(line["code"] or 0) != 0 for line in lines if line
    )


def _code_of(output: Json) -> bool:
    """Whether an object's metadata has a nonzero exit code."""
    code = mapping(mapping(output).get("metadata")).get("exit_code")
    return isinstance(code, int) and code != 0
