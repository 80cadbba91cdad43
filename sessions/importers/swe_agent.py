"""SWE-agent trajectories (.traj): reads `history` once, never its per-step copies."""

from __future__ import annotations

from pathlib import PurePath
from typing import Literal

from sessions.importers.decoded import NotALog
from sessions.importers.importer import Importer
from sessions.importers.message_array import ArraySession, document
from sessions.importers.openai_wire import CallIds, assistant_blocks, content_blocks, result_block
from sessions.importers.records import Json, Log, Message
from sessions.importers.reported import NOTHING
from sessions.importers.wire import Block, has_type, mapping, sequence, string, text_block

FORMAT = "swe-agent-traj"


def recognises(value: Json) -> bool:
    """Whether a document has a history of roles next to a trajectory of actions."""
    given = mapping(value)
    history = sequence(given.get("history"))
    steps = given.get("trajectory")
    return (
        isinstance(steps, list)
        and bool(history)
        and isinstance(mapping(history[0]).get("role"), str)
    )


def read(data: bytes, name: str = "") -> Log:
    """Read a trajectory. Raises NotALog without history."""
    given = document(data, "a SWE-agent trajectory")
    if not recognises(given):
        raise NotALog(
            "The file contains no `history` next to a `trajectory`. Expected a SWE-agent "
            ".traj file."
        )
    reader = _SweReader()
    for index, item in enumerate(given["history"], start=1):
        if isinstance(item, dict) and isinstance(item.get("role"), str):
            reader.take(item, index)
        else:
            reader.writer.no_message(index)
    problem = mapping(mapping(given.get("replay_config")).get("problem_statement"))
    title = string(problem.get("id")) or PurePath(name).name.removesuffix(".traj")
    log = reader.writer.log(FORMAT, {"title": title}, name)
    info = mapping(given.get("info"))
    for key in ("model_stats", "exit_status"):
        if key in info:
            log.sessions[0].meta[key] = info[key]
    return log


class _SweReader:
    """Classifies user messages by order: demonstration, task, or observation."""

    def __init__(self) -> None:
        self.writer = ArraySession("swe-agent")
        self._asked = False
        self._ids = CallIds()
        self._waiting: list[str] = []

    def take(self, item: dict[str, Json], index: int) -> None:
        """Write one entry of the history."""
        role = string(item.get("role"))
        if role == "assistant":
            blocks = _response(item, index)
            self._ids.asked(blocks, index)
            uses = [string(b.get("id")) for b in blocks if b.get("type") == "tool_use"]
            self._waiting = uses
            message = Message("assistant", blocks, line=index)
            self.writer.response(message, NOTHING, model="", raw=None)
        elif role == "system":
            blocks = content_blocks(item.get("content"))
            self.writer.message(Message("system", blocks, kind="system", line=index))
        elif role == "tool" or (self._waiting and not item.get("is_demo")):
            self._observation(item, index)
        else:
            self._prompt(item, index)

    def _prompt(self, item: dict[str, Json], index: int) -> None:
        demo = item.get("is_demo") is True
        human = not demo and not self._asked
        self._asked = self._asked or human
        blocks = content_blocks(item.get("content"))
        kind: Literal["memory"] | None = "memory" if demo else None
        self.writer.message(Message("user", blocks, human=human, kind=kind, line=index))

    def _observation(self, item: dict[str, Json], index: int) -> None:
        stated = sequence(item.get("tool_call_ids")) or [item.get("tool_call_id")]
        answer = self._ids.answered(string(stated[0])) or next(iter(self._waiting), "")
        self._waiting = [key for key in self._waiting if key != answer]
        block = result_block(item, answer)
        role: Literal["tool", "user"] = "tool" if item["role"] == "tool" else "user"
        self.writer.message(Message(role, [block], line=index))


def _response(item: dict[str, Json], index: int) -> list[Block]:
    """Text and tool calls; an action that is part of the text is cut out of it."""
    blocks = assistant_blocks(item)
    action = string(item.get("action")).strip()
    if has_type(blocks, "tool_use") or not action:
        return blocks
    content = string(item.get("content"))
    start = content.rfind(action)
    before = content[:start] if start >= 0 else content
    after = content[start + len(action) :] if start >= 0 else ""
    use = {
        "type": "tool_use",
        "id": f"action-{index}",
        "name": action.split(None, 1)[0],
        "input": {"command": action},
    }
    parts = [text_block(before)] if before.strip() else []
    rest = [text_block(after)] if after.strip(" \n`") else []
    return [*parts, use, *rest]


IMPORTER = Importer(
    name=FORMAT,
    order=50,
    title="SWE-agent trajectories",
    files="`.traj`",
    recognised_by="`history` of roles next to `trajectory`",
    read=read,
    knows_document=recognises,
)
