"""The model of Claude Code's scripted task: answers by what stands in the history."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.live.agents.coding_task import NEW, OLD, REPORT, SUB_REPORT, SUBTASK, Act
from tests.provider import Text
from tests.provider_messages import Answer

Json = dict[str, Any]

STEP = re.compile(r"toolu_(sub)?step_(\d+)$")
READ_BACK = "toolu_back_"
REF = re.compile(r"ref (m\d+\.\d+(?:@\w+)?)")
SUMMARY = "<analysis>Short.</analysis><summary>All modules were renamed and checked.</summary>"


@dataclass
class Sent:
    """A request that the provider answered, with its answer."""

    at: float
    kind: str
    step: int
    body: Json
    answer: Answer

    @property
    def is_managed(self) -> bool:
        """Whether it lists our tool."""
        return any(tool["name"] == "read_back" for tool in self.body.get("tools", []))


@dataclass
class Model:
    """Answers step N of the script to a history with N tool uses, and reports after `until`.

    `at_step` is called before it answers.
    """

    acts: list[Act]
    read_back_at: int
    until: int
    at_step: Callable[[int, Json], None] = lambda *_: None
    log: list[Sent] = field(default_factory=list)
    _has_read: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, body: Json) -> Answer:
        kind, step = kind_of(body), step_of(body)
        if kind == "main":
            self.at_step(step, body)
        made = self._answer(kind, step, body)
        with self._lock:
            self.log.append(Sent(time.monotonic(), kind, step, body, made))
        return made

    def _answer(self, kind: str, step: int, body: Json) -> Answer:
        if kind == "side":
            return Text('{"title": "Rename in all modules"}')
        if kind == "compact":
            return Text(SUMMARY)
        if kind == "sub":
            if step < 2:
                given = {"pattern": "harbor_*.py"} if step == 0 else {"pattern": NEW}
                return used(f"toolu_substep_{step + 1}", ("Glob", "Grep")[step], given)
            return Text(SUB_REPORT)
        asks = step >= self.read_back_at and not self._has_read
        if asks and (ref := _ref(body)):
            self._has_read = True
            return used(f"{READ_BACK}{step}", "read_back", {"ref": ref, "lines": "1-3"})
        if step >= self.until:
            return Text(REPORT)
        return used(f"toolu_step_{step + 1}", *call_of(self.acts[step]))


def used(id: str, name: str, given: Json) -> Answer:
    """An answer that says a word and calls a tool."""
    said = {"type": "text", "text": "Next."}
    return Answer((said, {"type": "tool_use", "id": id, "name": name, "input": given}), "tool_use")


def call_of(act: Act) -> tuple[str, Json]:
    """A tool of Claude Code's, and its input."""
    if act.kind == "read":
        return "Read", {"file_path": act.path}
    if act.kind == "search":
        return "Grep", {"pattern": OLD, "path": act.path, "output_mode": "content"}
    if act.kind == "edit":
        changed = {"old_string": OLD, "new_string": NEW, "replace_all": True}
        return "Edit", {"file_path": act.path, **changed}
    if act.kind == "check":
        return "Bash", {"command": f"python3 {act.path} && wc -l {act.path}"}
    asked = {"description": "Count modules", "prompt": SUBTASK, "run_in_background": False}
    return "Agent", {**asked, "subagent_type": "general-purpose"}


def kind_of(body: Json) -> str:
    """What a request is for: the task, a sub-agent, a compaction, or the agent itself."""
    if not body.get("tools"):
        return "side"
    users = [one for one in body["messages"] if one["role"] == "user"]
    if "create a detailed summary of" in texts(users[-1]):
        return "compact"
    return "sub" if SUBTASK in texts(users[0]) else "main"


def step_of(body: Json) -> int:
    """How many steps of the script the history has."""
    found = [STEP.match(one["id"]) for one in blocks(body, "tool_use")]
    return max((int(one[2]) for one in found if one), default=0)


def blocks(body: Json, kind: str) -> list[Json]:
    """All blocks of a kind."""
    said = [one["content"] for one in body["messages"] if isinstance(one["content"], list)]
    return [block for content in said for block in content if block["type"] == kind]


def texts(message: Json) -> str:
    """The text of a message."""
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content)


def _ref(body: Json) -> str:
    """The first reference in a stub; empty if nothing is offloaded."""
    for one in blocks(body, "tool_result"):
        content = one.get("content", "")
        said = content if isinstance(content, str) else texts({"content": content})
        if found := REF.search(said):
            return found[1]
    return ""


def has_read_back(body: Json) -> bool:
    """Whether the history has a call of our tool."""
    return any(one["id"].startswith(READ_BACK) for one in blocks(body, "tool_use"))
