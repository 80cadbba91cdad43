"""The model of Codex's scripted task: answers by what stands in the history."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.live.agents.coding_task import NEW, OLD, REPORT, SUB_REPORT, SUBTASK, Act
from tests.provider_openai import Calls, Reply, Says

Json = dict[str, Any]

STEP = re.compile(r"call_step_(\d+)$")
READ_BACK, WAIT, LISTS = "call_back_", "call_wait", "call_list"
REF = re.compile(r"ref (m\d+\.\d+(?:@\w+)?)")


@dataclass
class ItemsModel:
    """Answers step N of the script to a history with N calls; `at_step` is called before.

    A sub-agent lists files and reports; its requests are in `of_sub_agents`.
    """

    acts: list[Act]
    read_back_at: int
    at_step: Callable[[int, Json], None] = lambda *_: None
    log: list[Json] = field(default_factory=list)
    of_sub_agents: list[Json] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, body: Json) -> Reply:
        if is_of_sub_agent(body):
            with self._lock:
                self.of_sub_agents.append(body)
            return Says(SUB_REPORT) if has_call(body, LISTS) else executes(LISTS, "ls")
        step = step_of(body)
        self.at_step(step, body)
        with self._lock:
            self.log.append(body)
        return self._answer(step, body)

    def _answer(self, step: int, body: Json) -> Reply:
        if step >= self.read_back_at and not has_read_back(body) and (ref := _ref(body)):
            return Calls("read_back", f"{READ_BACK}{step}", ref=ref, lines="1-3")
        if step and self.acts[step - 1].kind == "delegate" and not has_call(body, WAIT):
            return collaborates("wait_agent", WAIT, timeout_ms=60_000)
        if step >= len(self.acts):
            return Says(REPORT)
        call, act = f"call_step_{step + 1}", self.acts[step]
        if act.kind == "delegate":
            return collaborates(
                "spawn_agent", call, task_name="count", message=SUBTASK, fork_turns="none"
            )
        return executes(call, command_of(act))


def collaborates(name: str, call: str, **given: Any) -> Reply:
    """An answer that calls a tool for sub-agents."""
    return [{**item, "namespace": "collaboration"} if "call_id" in item else item
            for item in _items(Calls(name, call, **given))]  # fmt: skip


def _items(reply: Reply) -> list[Json]:
    assert isinstance(reply, list)
    return reply


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
    return has_call(body, READ_BACK)


def has_call(body: Json, begins: str) -> bool:
    """Whether the history has a call whose id begins so."""
    return any((one.get("call_id") or "").startswith(begins) for one in body["input"])


def is_of_sub_agent(body: Json) -> bool:
    """Whether a request is a sub-agent's: its task came from another agent."""
    given = [one for one in body["input"] if one.get("type") == "agent_message"]
    return any(one["recipient"] != "/root" for one in given)


def _ref(body: Json) -> str:
    """The first reference in a stub; empty if nothing is offloaded."""
    outputs = (json.dumps(one["output"]) for one in body["input"] if "output" in one)
    return next((found[1] for said in outputs if (found := REF.search(said))), "")
