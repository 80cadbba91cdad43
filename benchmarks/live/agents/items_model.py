"""The model of Codex's scripted task: answers by what stands in the history."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.live.agents.coding_task import NEW, OLD, REPORT, Act
from tests.provider_openai import Calls, Reply, Says

Json = dict[str, Any]

STEP = re.compile(r"call_step_(\d+)$")
READ_BACK = "call_back_"
REF = re.compile(r"ref (m\d+\.\d+(?:@\w+)?)")


@dataclass
class ItemsModel:
    """Answers step N of the script to a history with N calls; `at_step` is called before."""

    acts: list[Act]
    read_back_at: int
    at_step: Callable[[int, Json], None] = lambda *_: None
    log: list[Json] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, body: Json) -> Reply:
        step = step_of(body)
        self.at_step(step, body)
        with self._lock:
            self.log.append(body)
        return self._answer(step, body)

    def _answer(self, step: int, body: Json) -> Reply:
        if step >= self.read_back_at and not has_read_back(body) and (ref := _ref(body)):
            return Calls("read_back", f"{READ_BACK}{step}", ref=ref, lines="1-3")
        if step >= len(self.acts):
            return Says(REPORT)
        return executes(f"call_step_{step + 1}", command_of(self.acts[step]))


def executes(call: str, command: str) -> Reply:
    """An answer that runs a command, as the default models of Codex do: by a script."""
    script = f"const done = await tools.exec_command({json.dumps({'cmd': command})});\n"
    known = {"type": "custom_tool_call", "name": "exec", "status": "completed"}
    thought = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"}
    return [thought, {**known, "call_id": call, "input": f"{script}text(done.output);"}]


def command_of(act: Act) -> str:
    """A command that does what a step asks for."""
    return {
        "read": f"cat {act.path}",
        "search": f"grep -n {OLD} {act.path}",
        "edit": f"sed -i s/{OLD}/{NEW}/ {act.path} && grep -n {NEW} {act.path}",
        "check": f"python3 {act.path} && wc -l {act.path}",
        "delegate": "ls",
    }[act.kind]


def is_managed(body: Json) -> bool:
    """Whether it lists our tool."""
    added = [item["tools"] for item in body["input"] if item.get("type") == "additional_tools"]
    listed = [tool for tools in (body.get("tools") or [], *added) for tool in tools]
    return any(tool.get("name") == "read_back" for tool in listed)


def step_of(body: Json) -> int:
    """How many steps of the script the history has."""
    found = [STEP.match(one.get("call_id") or "") for one in body["input"]]
    return max((int(one[1]) for one in found if one), default=0)


def has_read_back(body: Json) -> bool:
    """Whether the history has a call of our tool."""
    return any((one.get("call_id") or "").startswith(READ_BACK) for one in body["input"])


def _ref(body: Json) -> str:
    """The first reference in a stub; empty if nothing is offloaded."""
    outputs = (json.dumps(one["output"]) for one in body["input"] if "output" in one)
    return next((found[1] for said in outputs if (found := REF.search(said))), "")
