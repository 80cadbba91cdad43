"""Find the file that a tool call shows or changes, from its name and input."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from compaction.context.blocks import FileAction, FileRef

Extract = Callable[[Mapping[str, Any]], FileRef | None]
"""Takes the input of a call, returns the file it is about or None."""

PATH_KEYS = ("file_path", "path", "notebook_path", "filePath", "filepath", "absolute_path",
             "filename", "target_file", "relative_workspace_path")  # fmt: skip

LONGEST_COMMAND = 20_000
"""Code points above which a shell command counts as a script, not a read."""

_SED = re.compile(r"(\d+)(?:,(\d+|\$))?p")
_PATCH = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)
_SEPARATORS = frozenset({"|", "||", "&&", ";", "&", ">", ">>", "<", "<<", "2>", "(", ")"})


def _path(given: Mapping[str, Any]) -> str | None:
    for key in PATH_KEYS:
        value = given.get(key)
        if isinstance(value, str) and value:
            return value
    return None


def _number(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.isdecimal():
        value = int(value[:9])
    return value if isinstance(value, int) and value > 0 else None


def on_path(action: FileAction) -> Extract:
    """Make an extractor for tools that take one path and always perform one action on it."""

    def extract(given: Mapping[str, Any]) -> FileRef | None:
        path = _path(given)
        return FileRef(path, action) if path is not None else None

    return extract


def read_range(given: Mapping[str, Any]) -> FileRef | None:
    """Parse a read with `offset` and `limit` (Claude Code, opencode) or start and end lines."""
    path = _path(given)
    if path is None:
        return None
    start = _number(given.get("offset", given.get("start_line", given.get("line_number"))))
    end = _number(given.get("end_line"))
    limit = _number(given.get("limit"))
    if end is None and limit is not None:
        end = (start or 1) + limit - 1
    if end is not None and start is None:
        start = 1
    return FileRef(path, "read", start, end)


def str_replace_editor(given: Mapping[str, Any]) -> FileRef | None:
    """Parse a call of SWE-agent's or OpenHands' editor: one tool, the action in `command`."""
    path = _path(given)
    actions: dict[Any, FileAction] = {"view": "read", "create": "write"}
    if path is None:
        return None
    command = given.get("command")
    action = actions.get(command, "edit") if isinstance(command, str) else "edit"
    lines = given.get("view_range")
    if action == "read" and isinstance(lines, list) and len(lines) == 2:
        return FileRef(path, "read", _number(lines[0]), _number(lines[1]))
    return FileRef(path, action)


def listing(given: Mapping[str, Any]) -> FileRef | None:
    """Parse a tool call that lists names rather than content; the folder defaults to `.`."""
    return FileRef(_path(given) or "." if given else ".", "list")


def patch(given: Mapping[str, Any]) -> FileRef | None:
    """Parse Codex' apply_patch: the first file of the patch."""
    text = next((v for v in given.values() if isinstance(v, str) and "*** " in v), "")
    return _patched(text)


def _patched(text: str) -> FileRef | None:
    found = _PATCH.search(text)
    if found is None:
        return None
    actions: dict[str, FileAction] = {"Add": "write", "Update": "edit", "Delete": "delete"}
    return FileRef(found.group(2).strip(), actions[found.group(1)])


def shell(given: Mapping[str, Any]) -> FileRef | None:
    """Parse a shell command that shows one file: cat, nl, sed -n, head or tail; else None.

    The command may be text or a list of words, be wrapped in `bash -lc`, and follow a `cd`, whose
    folder then becomes part of the path. `open` is SWE-agent's. A heredoc of apply_patch counts as
    its patch.
    """
    command = command_of(given)
    if command is None or len(command) > LONGEST_COMMAND:
        return None
    if "*** Begin Patch" in command:
        return _patched(command)
    return shell_read(command)


def command_of(given: Mapping[str, Any]) -> str | None:
    """Return the command line in the input of a shell tool, or None."""
    command = next(
        (given[key] for key in ("command", "cmd", "script", "commands") if given.get(key)), None
    )
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        if len(command) == 3 and command[1] in ("-c", "-lc"):
            return str(command[2])
        return shlex.join(command)
    return command if isinstance(command, str) else None


def shell_read(command: str) -> FileRef | None:
    """Return the file and lines that a shell command line shows, or None.

    Pipes may only narrow the output, by `head` or `sed -n`. Any other pipe, several files, or a
    redirection into a file returns None.
    """
    folder, stages = _stages(command)
    if not stages[0]:
        return None
    file = _shown(stages[0])
    if file is None:
        return None
    if len(stages) > 1:
        narrows = len(stages) == 2 and stages[1][:1] in (["head"], ["sed"])
        if not narrows or file.start is not None:
            return None
        file = _shown([*stages[1], file.path])
    if file is None or folder is None:
        return file
    return replace(file, path=str(PurePosixPath(folder) / file.path))


def _stages(command: str) -> tuple[str | None, list[list[str]]]:
    """Split a command line into the folder of a leading `cd` and the words of each pipe stage.

    There are no words if the line does more than that.
    """
    lexer = shlex.shlex(command, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return None, [[]]
    folder = None
    if words[:1] == ["cd"] and words[2:3] in (["&&"], [";"]):
        folder, words = words[1], words[3:]
    stages: list[list[str]] = [[]]
    place = 0
    while place < len(words):
        word = words[place]
        if word == "|":
            stages.append([])
        elif word == ">" and words[place + 1 : place + 2] == ["/dev/null"]:
            if stages[-1][-1:] == ["2"]:
                stages[-1].pop()
            place += 1
        elif word in _SEPARATORS:
            return None, [[]]
        else:
            stages[-1].append(word)
        place += 1
    return folder, stages


def _shown(words: list[str]) -> FileRef | None:
    name = words[0].rsplit("/", 1)[-1]
    if name in ("cat", "nl", "bat"):
        paths = [word for word in words[1:] if not word.startswith("-")]
        return FileRef(paths[0], "read") if len(paths) == 1 else None
    if name == "sed" and len(words) == 4 and words[1] in ("-n", "-ne"):
        found = _SED.fullmatch(words[2])
        if found is None:
            return None
        start, end = int(found.group(1)), found.group(2)
        last = start if end is None else None if end == "$" else int(end)
        return FileRef(words[3], "read", start, last)
    if name == "open" and 2 <= len(words) <= 3:
        return FileRef(words[1], "read", _number(words[2]) if len(words) == 3 else None)
    if name in ("head", "tail"):
        return _head_or_tail(name, words[1:])
    return None


def _head_or_tail(name: str, words: list[str]) -> FileRef | None:
    count, paths = "10", []
    place = 0
    while place < len(words):
        word = words[place]
        if word in ("-n", "--lines") and place + 1 < len(words):
            place += 1
            count = words[place]
        elif word.startswith(("-n", "--lines=")):
            count = word.removeprefix("--lines=").removeprefix("-n")
        elif word[:1] == "-" and word[1:].isdecimal():
            count = word[1:]
        elif word.startswith("-"):
            return None
        else:
            paths.append(word)
        place += 1
    if len(paths) != 1:
        return None
    if name == "tail":
        # Line numbers are known for `tail -n +N` only, not for a count from the end.
        start = int(count[1:]) if count[:1] == "+" and count[1:].isdecimal() else None
        return FileRef(paths[0], "read", start)
    return FileRef(paths[0], "read", 1, int(count)) if count.isdecimal() and int(count) else None


EXTRACTORS: dict[str, Extract] = {
    # Claude Code
    "read": read_range,
    "write": on_path("write"),
    "edit": on_path("edit"),
    "multiedit": on_path("edit"),
    "notebookread": on_path("read"),
    "notebookedit": on_path("edit"),
    "glob": listing,
    "grep": listing,
    "ls": listing,
    # Codex
    "shell": shell,
    "exec_command": shell,
    "local_shell": shell,
    "apply_patch": patch,
    # SWE-agent, mini-swe-agent, OpenHands
    "bash": shell,
    "execute_bash": shell,
    "terminal": shell,
    "run": shell,
    "str_replace_editor": str_replace_editor,
    "file_editor": str_replace_editor,
    "str_replace_based_edit_tool": str_replace_editor,
    "open": read_range,
    # Cline, Gemini CLI, aider, Copilot
    "read_file": read_range,
    "view": read_range,
    "write_file": on_path("write"),
    "create": on_path("write"),
    "create_file": on_path("write"),
    "write_to_file": on_path("write"),
    "replace_in_file": on_path("edit"),
    "apply_diff": on_path("edit"),
    "edit_file": on_path("edit"),
    "replace": on_path("edit"),
    "str_replace": on_path("edit"),
    "insert": on_path("edit"),
    "delete_file": on_path("delete"),
    "list_files": listing,
    "list_directory": listing,
    "search_files": listing,
    "execute_command": shell,
    "run_shell_command": shell,
    "run_in_terminal": shell,
}
"""Extractors by lowercase tool name, for common coding agents."""


def file_of(
    tool: str, given: Any, extractors: Mapping[str, Extract] = EXTRACTORS
) -> FileRef | None:
    """Return the file that a tool call reads, writes, edits, deletes or lists; None if unknown.

    `given` is the call's input, or its JSON. Names are looked up ignoring case and an MCP prefix
    (`mcp__server__tool`). Never raises, whatever the input.
    """
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            given = {"command": given}
    if not isinstance(given, Mapping):
        return None
    extract = extractors.get(tool.lower().rsplit("__", 1)[-1])
    return extract(given) if extract is not None else None
