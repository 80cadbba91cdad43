"""The agent's own to-do list: a file named todo.md, or the input of a todo or plan tool."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from compaction.context.blocks import Block
from compaction.context.stubs import arguments
from compaction.seen.changes import change_of
from compaction.seen.shown import content

FILE = "todo.md"

LONGEST = 200_000
"""Maximum code points of a call's input to parse."""

_LISTS = ("todos", "plan", "todoList", "todo_list", "task_list", "task_progress")
_QUOTED = tuple(f'"{key}"' for key in _LISTS)
_TEXTS = ("content", "step", "title", "subject", "description", "text", "task")
_LINE = re.compile(r"^[ \t]*(?:[-*+][ \t]+)?\[([ xX~-])\][ \t]+(\S[^\n]{0,999})", re.MULTILINE)
"""A line of a checklist: done, in progress (`-`, `~`) or open."""
_DONE = frozenset({"completed", "done", "cancelled"})
_UNDER_WAY = " (in progress)"
_NUMBER = re.compile(r"#(\d{1,6})\b")
_LISTED = re.compile(r"^#(\d{1,6}) \[(\w{1,20})\] (\S[^\n]{0,999})", re.MULTILINE)
"""A line of the result of Claude Code's TaskList."""
_BLOCKED = re.compile(r" \[blocked by [#\d, ]{1,60}\]$")


class TodoItem(NamedTuple):
    """One item and its status in the agent's own word ("" if it gives none)."""

    text: str
    status: str

    @property
    def done(self) -> bool:
        """Whether the item needs no more work."""
        return self.status in _DONE

    @property
    def label(self) -> str:
        """The text on one line, and whether it is in progress."""
        under_way = _UNDER_WAY if self.status in ("in_progress", "in-progress") else ""
        return f"{' '.join(self.text.split())}{under_way}"

    def __str__(self) -> str:
        return f"- [{'x' if self.done else ' '}] {self.label}"


def items_of(given: Mapping[str, Any]) -> list[TodoItem] | None:
    """Parse the items in the input of a todo or plan tool; None if it contains no such list.

    Accepts lists of objects under `todos`, `plan` and the like (Claude Code, Codex, Gemini CLI,
    opencode, OpenHands, Cursor, Copilot), their JSON, or a checklist as text (Roo Code, Cline).
    """
    for key in _LISTS:
        items = given.get(key)
        if isinstance(items, str):
            if listed := checklist(items):
                return listed
            try:
                items = json.loads(items)
            except (ValueError, RecursionError):
                continue
        if isinstance(items, list) and all(isinstance(item, dict) for item in items):
            return [_item(item) for item in items]
    return None


def checklist(text: str) -> list[TodoItem]:
    """Parse the items of a Markdown checklist, in order."""
    states = {"x": "completed", "X": "completed", "-": "in_progress", "~": "in_progress"}
    return [TodoItem(said, states.get(mark, "")) for mark, said in _LINE.findall(text)]


def _item(given: Mapping[str, Any]) -> TodoItem:
    text = next((str(given[key]) for key in _TEXTS if given.get(key)), "")
    return TodoItem(text, str(given.get("status") or "").lower())


@dataclass(slots=True)
class Todo:
    """The newest list of a session, learned from its calls one by one.

    `text` is empty if there is none. `calls` counts the tool calls up to the last update. `behind`:
    it was edited since in a way that cannot be followed, so the text is outdated. `found`: it was
    read from a file whose text the agent had not written.
    """

    text: str = ""
    calls: int = 0
    behind: bool = False
    tasks: dict[str, TodoItem] = field(default_factory=dict)
    found: bool = False

    def take_in(self, use: Block, result: Block, calls: int) -> None:
        """Process a successful call with its result; `calls` is its number in the session."""
        if len(use.text) > LONGEST:
            return
        if _is_list(use.file.path if use.file is not None else ""):
            self._file(use, result, calls)
            return
        name = _name(use.tool or "")
        if name == "tasklist":
            self._list(result.text, calls)
        elif name in ("taskcreate", "taskupdate"):
            self._task(name, arguments(use) or {}, result, calls)
        elif any(key in use.text for key in _QUOTED):
            self._items(items_of(arguments(use) or {}), calls)
        elif "todo" in name and '"content"' in use.text:
            # Goose sends the list as one text.
            text = (arguments(use) or {}).get("content")
            self._items(checklist(text) or None if isinstance(text, str) else None, calls)

    @property
    def open(self) -> list[str]:
        """The open items, each with its number if the agent refers to it by one."""
        if self.tasks and self.text == self._of_tasks():
            return [f"#{n} {one.label}" for n, one in self.tasks.items() if not one.done]
        return [one.label for one in checklist(self.text) if not one.done]

    def _of_tasks(self) -> str:
        return "\n".join(str(item) for item in self.tasks.values())

    def _items(self, items: list[TodoItem] | None, calls: int) -> None:
        if items is not None:
            self._now("\n".join(str(item) for item in items if item.text), calls)

    def _now(self, text: str, calls: int, *, found: bool = False) -> None:
        self.text, self.calls, self.behind, self.found = text, calls, False, found

    def _file(self, use: Block, result: Block, calls: int) -> None:
        assert use.file is not None
        if use.file.action == "delete":
            self._now("", calls)
        elif use.file.action == "read":
            if use.file.start is None and (shown := content(result.text))[1] == 1:
                # Reading the list is not an update.
                found = self.found or shown[0] != self.text
                self._now(shown[0], self.calls if self.text else calls, found=found)
        elif use.file.action in ("write", "edit"):
            change = change_of(use)
            text = change.whole if change is not None else None
            found = self.found and text is None
            if change is not None and text is None:
                text = self.text
                for swap in change.swaps:
                    if swap.old not in text:
                        text = None
                        break
                    text = text.replace(swap.old, swap.new, -1 if swap.everywhere else 1)
            if text is not None:
                self._now(text, calls, found=found)
            else:
                self.calls, self.behind = calls, True

    def _task(self, name: str, given: Mapping[str, Any], result: Block, calls: int) -> None:
        """Process Claude Code's tasks, created and changed one by one, by their number."""
        number = str(given.get("taskId") or "")
        if name == "taskcreate" and (found := _NUMBER.search(result.text)):
            number = found.group(1)
            # Prefer the subject: the description is long.
            text = given.get("subject") or given.get("description") or ""
            self.tasks[number] = TodoItem(str(text), "")
        elif number in self.tasks:
            old = self.tasks[number]
            text = str(given.get("subject") or old.text)
            self.tasks[number] = TodoItem(text, str(given.get("status") or old.status).lower())
            if self.tasks[number].status == "deleted":
                del self.tasks[number]
        else:
            return
        self._now(self._of_tasks(), calls)

    def _list(self, shown: str, calls: int) -> None:
        """Process a listing of all tasks, unknown ones included."""
        listed = _LISTED.findall(shown)
        for number, status, text in listed:
            self.tasks[number] = TodoItem(_BLOCKED.sub("", text), status)
        if listed:
            self._now(self._of_tasks(), calls)


def is_shown_by(tool: str, path: str) -> bool:
    """Return whether the result of such a call can say something of the list."""
    return _is_list(path) or _name(tool) in ("tasklist", "taskcreate")


def _is_list(path: str) -> bool:
    return path.replace("\\", "/").rsplit("/", 1)[-1].lower() == FILE


def _name(tool: str) -> str:
    return tool.lower().rsplit("__", 1)[-1]


def newest_todo(blocks: Iterable[Block], open_before: Iterable[str] = ()) -> Todo | None:
    """Return the newest list of a span; None if no call wrote or showed one.

    `open_before` are open items that a summary lists: a call may name a task by its number only.
    """
    todo, uses = Todo(), {}
    for line in open_before:
        number, _, text = line.partition(" ")
        if number[:1] == "#" and number[1:].isdecimal():
            under_way = text.endswith(_UNDER_WAY)
            status = "in_progress" if under_way else ""
            todo.tasks[number[1:]] = TodoItem(text.removesuffix(_UNDER_WAY), status)
    calls = 0
    for block in blocks:
        if block.type == "tool_use":
            uses[block.tool_call] = block
        elif block.type == "tool_result" and not block.error:
            calls += 1
            if (use := uses.get(block.tool_call)) is not None:
                todo.take_in(use, block, calls)
    return todo if todo.calls else None
