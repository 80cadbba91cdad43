"""Attachments of a Claude Code log: which of them enter the prompt, and with what text.

The client renders most attachments as reminders around their content. The log contains only the
content, and that is what we show. Attachments without text in the log, or that the client only
displays or acts on, are not part of the context.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from compaction.context.blocks import Kind
from sessions.importers.records import Json
from sessions.importers.wire import Block, blocks_of, mapping, sequence, string, text_block


class Attached(NamedTuple):
    """Blocks that an attachment adds to the prompt, and their kind."""

    blocks: list[Block]
    kind: Kind
    human: bool = False


_Reader = Callable[[dict[str, Json]], str]


def attached(attachment: Json) -> Attached | None:
    """The blocks that an attachment adds to the prompt; None if there are none or the log lacks
    them."""
    given = mapping(attachment)
    form = string(given.get("type"))
    if form == "queued_command":
        return _queued(given)
    if form in _FILES:
        text, kind = _FILES[form](given), _FILE
    elif form in _REMINDERS:
        text, kind = _REMINDERS[form](given), _MEMORY
    else:
        return None
    return Attached([text_block(text)], kind) if text.strip() else None


def is_known(attachment: Json) -> bool:
    """Whether we know how the client treats this type of attachment."""
    form = string(mapping(attachment).get("type"))
    return form in _FILES or form in _REMINDERS or form in _NEVER or form == "queued_command"


_FILE: Kind = "file"
_MEMORY: Kind = "memory"


def _queued(given: dict[str, Json]) -> Attached | None:
    # Text typed while tools were running reaches the model in this form.
    blocks = blocks_of(given.get("prompt"))
    human = given.get("commandMode", "prompt") == "prompt"
    return Attached(blocks, "user", human) if blocks else None


def _field(*names: str) -> _Reader:
    def read(given: dict[str, Json]) -> str:
        value: Json = given
        for name in names:
            value = mapping(value).get(name)
        return _plain(value)

    return read


def _plain(value: Json) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(_plain(item) for item in value)
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return ""


def _hook_output(given: dict[str, Json]) -> str:
    # The model sees output of successful hooks only for these two events.
    answer = string(given.get("hookEvent")) in {"SessionStart", "UserPromptSubmit"}
    return string(given.get("content")) if answer else ""


def _file(given: dict[str, Json]) -> str:
    content = mapping(given.get("content"))
    return _plain(mapping(content.get("file")).get("content")) or _plain(content.get("content"))


def _todo(given: dict[str, Json]) -> str:
    return _plain(given.get("content")) if sequence(given.get("content")) else ""


_FILES: dict[str, _Reader] = {
    "file": _file,
    "edited_text_file": _field("snippet"),
    "selected_lines_in_ide": _field("content"),
    "directory": _field("content"),
}

_REMINDERS: dict[str, _Reader] = {
    "agent_listing_delta": _field("addedLines"),
    "critical_system_reminder": _field("content"),
    "date_change": _field("newDate"),
    "deferred_tools_delta": _field("addedLines"),
    "hook_additional_context": _field("content"),
    "hook_blocking_error": _field("blockingError", "blockingError"),
    "hook_success": _hook_output,
    "mcp_instructions_delta": _field("addedBlocks"),
    "nested_memory": _field("content", "content"),
    "relevant_memories": _field("memories"),
    "invoked_skills": _field("skills"),
    "plan_file_reference": _field("planContent"),
    "skill_listing": _field("content"),
    "task_reminder": _todo,
    "todo_reminder": _todo,
    "total_tokens_reminder": _field("text"),
}

_NEVER = frozenset(
    {
        "auto_mode",
        "auto_mode_exit",
        "command_permissions",
        "hook_cancelled",
        "hook_non_blocking_error",
        "hook_system_message",
        "plan_mode",
        "plan_mode_exit",
    }
)
"""Types that are acted on, displayed, or rendered to text that is not in the log."""
