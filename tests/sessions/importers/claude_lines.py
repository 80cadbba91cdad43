"""Lines of Claude Code logs."""

from __future__ import annotations

import json
from typing import Any

from sessions.importers import parse
from sessions.importers.records import Log, Record, Session

Json = dict[str, Any]


def of(session: Session, kind: type[Record]) -> list[Any]:
    return [record for record in session.records if isinstance(record, kind)]


def line(form: str, uuid: str, parent: str | None, **more: Any) -> Json:
    return {
        "type": form,
        "uuid": uuid,
        "parentUuid": parent,
        "isSidechain": False,
        "sessionId": "s",
        "timestamp": "2026-03-01T10:00:00Z",
        **more,
    }


def said(uuid: str, parent: str | None, content: Any = "Do it.", **more: Any) -> Json:
    return line("user", uuid, parent, message={"role": "user", "content": content}, **more)


def responded(
    uuid: str, parent: str | None, call: str, tool_call: str | None = None, **more: Any
) -> Json:
    block: Json = {"type": "text", "text": "Yes."}
    if tool_call:
        block = {"type": "tool_use", "id": tool_call, "name": "Read", "input": {}}
    message = {"role": "assistant", "id": call, "model": "claude-opus-4-5", "content": [block]}
    return line("assistant", uuid, parent, message={**message, **more})


def session_of(*given: Json) -> Session:
    return log_of(*given).sessions[0]


def log_of(*given: Json) -> Log:
    return parse("\n".join(json.dumps(each) for each in given).encode(), "s.jsonl")


TALK = [
    said("u1", None),
    responded("a1", "u1", "m1"),
    said("u2", "a1"),
    responded("a2", "u2", "m2"),
]
