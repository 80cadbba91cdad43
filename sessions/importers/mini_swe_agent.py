"""mini-swe-agent trajectories: `messages` with raw responses in `extra`, or a bare message list."""

from __future__ import annotations

from typing import Literal

from sessions.importers.decoded import NotALog
from sessions.importers.importer import Importer
from sessions.importers.message_array import (
    ArraySession,
    Conversation,
    conversation_of,
    document,
)
from sessions.importers.openai_messages import MessageReader
from sessions.importers.records import Json, Log, Message, Skipped
from sessions.importers.wire import mapping, milliseconds, string, text_block

FORMAT = "mini-swe-agent"

_OBSERVED = ("<returncode>", "<output>", "Observation:", "<warning>")
"""Prefixes of the agent's own user messages in the bare lists of old versions."""


def recognises(value: Json) -> bool:
    """Whether a document names mini-swe-agent as its writer, or looks like its old bare lists."""
    found = conversation_of(value)
    if found is None:
        return False
    if string(found.around.get("trajectory_format")).startswith("mini-swe-agent"):
        return True
    if "mini_version" in mapping(found.around.get("info")):
        return True
    users = [m for m in map(mapping, found.messages) if m.get("role") == "user"]
    return not found.around and any(_is_observation(message) for message in users[1:])


def _is_observation(message: dict[str, Json]) -> bool:
    return string(message.get("content")).lstrip().startswith(_OBSERVED)


def read(data: bytes, name: str = "") -> Log:
    """Read a trajectory. Raises NotALog without messages."""
    found = conversation_of(document(data, "a mini-swe-agent trajectory"))
    if found is None:
        raise NotALog("The file contains no `messages`. Expected a mini-swe-agent trajectory.")
    info = mapping(found.around.get("info"))
    writer = ArraySession("mini-swe-agent")
    reader = _MiniSweReader(writer, _model(info))
    for index, item in enumerate(found.messages, start=1):
        if not isinstance(item, dict) or not isinstance(item.get("role"), str):
            writer.no_message(index)
        elif item["role"] == "exit":
            # The outcome, written for people after the last call.
            writer.skipped.append(Skipped(index, "exit", "not context"))
        else:
            reader.take(item, index)
    return _named(writer, found, info, name)


def _named(
    writer: ArraySession,
    found: Conversation,
    info: dict[str, Json],
    name: str,
) -> Log:
    instance = string(found.around.get("instance_id"))
    log = writer.log(FORMAT, {"id": instance, "title": instance}, name)
    session = log.sessions[0]
    for key in ("model_stats", "exit_status", "mini_version"):
        if key in info:
            session.meta[key] = info[key]
    return log


def _model(info: dict[str, Json]) -> str:
    config = mapping(mapping(info.get("config")).get("model"))
    return string(config.get("model_name"))


class _MiniSweReader:
    """Reads chat-completions messages; every user message after the first is the agent's own."""

    def __init__(self, writer: ArraySession, model: str) -> None:
        self._writer = writer
        self._reader = MessageReader(writer, model)
        self._asked = False

    def take(self, item: dict[str, Json], index: int) -> None:
        extra = mapping(item.get("extra"))
        response = mapping(extra.get("response"))
        stamp = extra.get("timestamp") or item.get("timestamp")
        if item["role"] == "user" and self._asked:
            text = string(item.get("content"))
            blocks = [text_block(text)] if text else []
            at = milliseconds(stamp)
            kind: Literal["result"] | None = "result" if _is_observation(item) else None
            self._writer.message(Message("user", blocks, at=at, kind=kind, line=index))
            return
        self._asked = self._asked or item["role"] == "user"
        own = {"usage": response.get("usage"), "model": response.get("model"), "timestamp": stamp}
        self._reader.take({**item, **{k: v for k, v in own.items() if v}}, index)


IMPORTER = Importer(
    name=FORMAT,
    order=60,
    title="mini-swe-agent trajectories",
    files="`.traj.json`, both ages",
    recognised_by="`trajectory_format`, `mini_version`, or a bare list with its observations",
    read=read,
    knows_document=recognises,
)
