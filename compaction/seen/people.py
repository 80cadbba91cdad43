"""What people said in a session: messages, answers to questions, and rejected tool calls."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from compaction.context.blocks import Block

NOT_SAID = (
    "<task-notification", "[Request interrupted", "<local-command", "Caveat:", "<system-reminder",
    "<bash-", "<ci-monitor-event", "<turn_aborted", "<environment_context",
    "This session is being continued", "Operation stopped by hook",
    "Base directory for this skill:",
)  # fmt: skip
"""Prefixes of texts that programs write in a person's name."""

NOT_ANSWERED = ("No response requested.",)
"""Texts that programs write in an agent's name."""

LONGEST = 20_000
"""Code points of a message that are read."""

_CLIENT = re.compile(r"\s*/[\w:-]+\s*\Z")
"""A bare command to the client, such as `/mode`."""

_COMMAND = "<command-"
"""How Claude Code records a command to itself, with what was typed after it."""

_PROMPT = "<command-message>"
"""How Claude Code begins a command whose text is a prompt, such as a skill; it asks for work."""

_NAME = re.compile(r"<command-name>([^<>]{1,80})</command-name>")
_ARGUMENTS = re.compile(r"<command-args>([^<>]*)</command-args>")

_FEWEST = 3
"""Words after a command that make it a request; fewer choose an option."""

_ATTACHED = re.compile(
    r"<(system-reminder|ide_\w{1,30}|environment_context|environment_details|user_instructions)>"
    r".*?(?:</\1>|\Z)",
    re.DOTALL,
)
"""Context that clients attach to a message."""

_REJECTED = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action",
    "The user rejected",
    "The user denied this operation",
    "[Request interrupted by user for tool use]",
    "[Operation Cancelled]",
    "exec command rejected by user",
    "patch rejected by user",
)
"""How results of rejected calls begin: Claude Code, opencode, Cline, Gemini CLI, Codex."""

_REASON = re.compile(r"the user said:|<feedback>|following feedback:")
_AFTER_REASON = re.compile(r"</feedback>|\n\nNote: The user's next message")

_ANSWERED = ("Your questions have been answered:", "User has answered your questions:")
_AFTER_ANSWER = " You can now continue with"


class Rejection(NamedTuple):
    """A tool call that a person refused, and their words ("" if they gave none)."""

    use: Block
    result: Block
    words: str


def is_said(text: str) -> bool:
    """Return whether a person wrote this to the agent: not a program, and not a bare command."""
    bare = text.lstrip()
    return not bare.startswith((*NOT_SAID, _COMMAND)) and _CLIENT.match(text) is None


def words_of(text: str) -> str:
    """Return what a person said in a text, without attached context; "" for programs' texts.

    A command to the client counts with the request typed after it, if there is one; one that sends
    a prompt always counts.
    """
    text = text[:LONGEST]
    if text.lstrip().startswith(_COMMAND):
        name, typed = _NAME.search(text), _ARGUMENTS.search(text)
        words = typed.group(1).split() if typed is not None else []
        asks = text.lstrip().startswith(_PROMPT) or len(words) >= _FEWEST
        if name is None or not asks:
            return ""
        return " ".join(["/" + name.group(1).strip().lstrip("/"), *words])
    bare = _ATTACHED.sub("", text).strip()
    return bare if is_said(bare) else ""


def message_of(block: Block) -> str:
    """Return a person's words in a block: a message, or answers to the agent's questions."""
    if block.type == "tool_result":
        return answers_in(block)
    spoken = block.type == "text" and block.kind == "user" and block.role == "user"
    return words_of(block.text) if spoken else ""


def answers_in(result: Block) -> str:
    """Return the questions and a person's answers in a result; "" if it has none."""
    start = next((one for one in _ANSWERED if result.text.startswith(one)), None)
    if start is None or result.error:
        return ""
    return result.text[len(start) : LONGEST].partition(_AFTER_ANSWER)[0].strip(" .")


def is_rejected(result: Block) -> bool:
    """Return whether a result says that a person refused the call."""
    return result.type == "tool_result" and result.text.startswith(_REJECTED)


def rejections(blocks: Iterable[Block]) -> list[Rejection]:
    """Return the rejected calls of a span, in order.

    Without words in the result, a message that follows before the agent goes on gives them.
    """
    uses: dict[str | None, Block] = {}
    found: list[Rejection] = []
    silent = False
    for block in blocks:
        if block.type == "tool_use":
            uses[block.tool_call] = block
        if block.role == "assistant":
            silent = False
        elif is_rejected(block) and (use := uses.get(block.tool_call)) is not None:
            found.append(Rejection(use, block, _reason(block.text)))
            silent = not found[-1].words
        elif silent and (words := message_of(block)):
            found[-1] = found[-1]._replace(words=words)
            silent = False
    return found


def _reason(text: str) -> str:
    start = _REASON.search(text[:LONGEST])
    if start is None:
        return ""
    words = text[start.end() : LONGEST]
    end = _AFTER_REASON.search(words)
    return (words[: end.start()] if end else words).strip()
