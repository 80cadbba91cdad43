"""Gather a session's board entries, and what its agent saw of the project's files."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from compaction.board.board import LONGEST, BoardNote, plain, shortened
from compaction.context.blocks import Block
from compaction.context.hints import one_line
from compaction.context.stubs import arguments, digest
from compaction.seen.changes import change_of
from compaction.seen.people import is_said
from compaction.seen.shown import content
from compaction.seen.todo import Todo, TodoItem
from compaction.tools.read_tool import NAME as READ_BACK

MOST_FILES = 200
"""Maximum files whose last known content is remembered, the newest (our choice)."""

MOST_WAITING = 400
"""Maximum calls stored while waiting for their result, the newest (our choice)."""

_DONE = frozenset({"attempt_completion", "complete_task", "finish", "submit", "task_done", "done"})
"""Tools that report a finished task: Cline, Gemini CLI, OpenHands, SWE-agent, tau."""

_SUB_AGENTS = frozenset(
    {"task", "agent", "new_task", "delegate", "delegate_task", "spawn_agent", "subagent",
     "dispatch_agent"}
)  # fmt: skip
"""Tools that return a sub-agent's findings: Claude Code, Cline, OpenHands, opencode, Codex."""

_RETRIEVAL = frozenset(
    {"websearch", "web_search", "webfetch", "web_fetch", "google_web_search", "fetch",
     "search_memory", "memory_search", "retrieve", "knowledge_search", "tavily_search"}
)  # fmt: skip
"""Tools that return content from outside the task."""

MOST_READ = 200
"""Maximum references whose readings are counted, the newest (our choice)."""

AGAIN = 2
"""Times that offloaded content is read back before it is kept as knowledge (our choice)."""

_NAMED_BY = ("subagent_type", "agent_type", "agent", "name", "mode")
_ASKED = ("description", "prompt", "task", "message", "query", "url", "q")
_RESULT = ("result", "summary", "message", "answer", "output")

_BOX = re.compile(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]*(?:\[.\][ \t]*)?")


@dataclass(slots=True)
class Gatherer:
    """Gather the board entries of a session, block by block in order of position.

    `files` has the SHA-256 of each file's text as the agent last saw or wrote it ("" if unknown),
    newest last; `changed` the files that it wrote since `changed` was last emptied; `read` how
    often it read back each reference. The state is small and can be stored (`remembered`,
    `recalled`).
    """

    agent: str = ""
    todo: Todo = field(default_factory=Todo)
    calls: int = 0
    files: dict[str, str] = field(default_factory=dict)
    changed: dict[str, str] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)
    tasked: bool = False
    _asked: str = ""
    _said: tuple[str, str, int] = ("", "", 0)
    _worked: bool = False
    _planned: str = ""
    _waiting: dict[str, Block] = field(default_factory=dict)

    def add(self, block: Block) -> Iterator[BoardNote]:
        """Process the next block and yield the entries it creates."""
        if block.type == "text":
            yield from self._text(block)
        elif block.type == "tool_use":
            self.calls += 1
            self._worked = True
            if block.tool_call is not None:
                self._waiting[block.tool_call] = block
                while len(self._waiting) > MOST_WAITING:
                    del self._waiting[next(iter(self._waiting))]
        elif block.type == "tool_result" and block.tool_call in self._waiting:
            use = self._waiting.pop(block.tool_call)
            if not block.error:
                yield from self._result(use, block)

    def ended(self) -> Iterator[BoardNote]:
        """Yield the report on the task, once the session is over."""
        block, text, message = self._said
        if text:
            yield BoardNote("task_done", text, "done", self.agent, message=message, block=block)

    def _text(self, block: Block) -> Iterator[BoardNote]:
        if block.role == "assistant":
            if text := plain(block.text).strip():
                self._said = block.id, shortened(text, LONGEST), block.message
            return
        if block.role != "user" or block.kind != "user" or not is_said(block.text):
            return
        text = plain(block.text).strip()
        if not text:
            return
        yield from self._answer()
        if not self.tasked:
            self.tasked = True
            yield self._entry("task", shortened(text, LONGEST), "task", block)
        self._asked, self._said, self._worked = one_line(text, 160), ("", "", 0), False

    def _answer(self) -> Iterator[BoardNote]:
        """Yield the agent's answer to the people after a turn in which it did something."""
        block, text, message = self._said
        if self._worked and text:
            report = f"Asked: {self._asked}\nAnswered: {text}" if self._asked else text
            yield BoardNote(
                "agent", shortened(report, LONGEST), f"answer:{block}", self.agent,
                message=message, block=block,
            )  # fmt: skip

    def _result(self, use: Block, result: Block) -> Iterator[BoardNote]:
        tool = (use.tool or "").lower().rsplit("__", 1)[-1]
        before, calls = self.todo.text, self.calls
        self.todo.take_in(use, result, calls)
        if self.todo.text != before:
            yield from self._plan(use)
        self._file(use, result)
        if len(use.text) > 200_000:
            return
        given = arguments(use) or {}
        if "plan" in tool and isinstance(given.get("plan"), str) and given["plan"].strip():
            yield self._entry("plan", given["plan"], f"plan:{digest(given['plan'])[:16]}", use)
        elif tool in _DONE:
            text = _first(given, _RESULT) or result.text
            if text.strip():
                yield self._entry("task_done", text, f"done:{use.id}", use)
        elif tool in _SUB_AGENTS and result.text.strip():
            named = _first(given, _NAMED_BY) or "sub-agent"
            asked = one_line(_first(given, _ASKED), 160)
            yield self._entry(
                "agent", f"{asked}: {result.text}" if asked else result.text,
                f"found:{result.id}", result, agent=named,
            )  # fmt: skip
        elif tool == READ_BACK and result.text.strip():
            yield from self._read_back(given, result)
        elif tool in _RETRIEVAL and result.text.strip():
            asked = one_line(_first(given, _ASKED), 160)
            text = f"{tool} {asked}: {shortened(result.text.strip(), 800)}"
            yield self._entry("knowledge", text, f"known:{result.id}", result, untrusted=True)

    def _read_back(self, given: Mapping[str, Any], result: Block) -> Iterator[BoardNote]:
        """Yield what was read back again: CodeGenius' last tier, content that is accessed often.

        The next part of a long text is the same reading.
        """
        ref = str(given.get("ref", "")).strip().removeprefix("ref ").strip().partition("@")[0]
        if not ref or given.get("offset"):
            return
        times = self.read[ref] = self.read.pop(ref, 0) + 1
        while len(self.read) > MOST_READ:
            del self.read[next(iter(self.read))]
        if times == AGAIN:
            text = f"Needed {times} times: {shortened(result.text.strip(), 800)}"
            yield self._entry("knowledge", text, f"read:{ref}", result, untrusted=True)

    def _plan(self, use: Block) -> Iterator[BoardNote]:
        """Yield a new plan; ticking off items does not make a new one."""
        text = self.todo.text.strip()
        things = [_BOX.sub("", line).removesuffix(" (in progress)") for line in text.splitlines()]
        key = f"plan:{digest(chr(10).join(things))[:16]}"
        # A list that grows by an item continues the plan.
        if self._planned and _mostly(things, self._planned.split("\n")[1:]):
            key = self._planned.split("\n", 1)[0]
        if text:
            self._planned = "\n".join([key, *things])[:20_000]
            yield self._entry("plan", text, key, use)

    def _file(self, use: Block, result: Block) -> None:
        file = use.file or result.file
        if file is None or file.action == "list":
            return
        seen: str | None = None
        if file.action in ("write", "edit", "delete"):
            change = change_of(use)
            seen = _hash(change.whole) if change is not None and change.whole is not None else ""
            self.changed[file.path] = seen
        elif file.start is None and (shown := content(result.text))[1] == 1:
            seen = _hash(shown[0])
            if self.files.get(file.path) not in (None, "", seen):
                self.changed[file.path] = seen
        if seen is not None:
            self.files.pop(file.path, None)
            self.files[file.path] = seen
            while len(self.files) > MOST_FILES:
                del self.files[next(iter(self.files))]

    def _entry(self, kind: Any, text: str, key: str, block: Block, **more: Any) -> BoardNote:
        values = {"agent": self.agent, "message": block.message, "block": block.id, **more}
        return BoardNote(kind, shortened(plain(text).strip(), LONGEST), key, **values)

    def remembered(self) -> dict[str, Any]:
        """Return the state needed to continue later, as JSON; waiting calls by position."""
        todo = self.todo
        return {
            "todo": [todo.text[:20_000], todo.calls, todo.behind or len(todo.text) > 20_000],
            "tasks": {key: list(item) for key, item in todo.tasks.items()},
            "calls": self.calls,
            "files": self.files,
            "read": self.read,
            "tasked": self.tasked,
            "asked": self._asked,
            "said": list(self._said),
            "worked": self._worked,
            "planned": self._planned,
            "waiting": [block.position for block in self._waiting.values()],
        }

    @classmethod
    def recalled(cls, agent: str, known: Mapping[str, Any], waiting: list[Block]) -> Gatherer:
        """Continue from a stored state; `waiting` are the blocks at its positions."""
        if not known:
            return cls(agent)
        tasks = {key: TodoItem(*item) for key, item in known["tasks"].items()}
        block, text, message = known["said"]
        text_of_todo, of_call, behind = known["todo"]
        return cls(
            agent,
            Todo(text_of_todo, of_call, behind, tasks),
            known["calls"],
            dict(known["files"]),
            read=dict(known.get("read", {})),
            tasked=known["tasked"],
            _asked=known["asked"],
            _said=(block, text, message),
            _worked=known["worked"],
            _planned=known["planned"],
            _waiting={one.tool_call: one for one in waiting if one.tool_call is not None},
        )


def _mostly(things: list[str], before: list[str]) -> bool:
    """Return whether most items of a list occur in another."""
    return bool(before) and 2 * len(set(things) & set(before)) > len(set(before))


def _first(given: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return next((v for key in keys if isinstance(v := given.get(key), str) and v.strip()), "")


def _hash(text: str) -> str:
    data = text.rstrip("\n").encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()
