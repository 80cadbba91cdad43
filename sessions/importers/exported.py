"""Files written by `contextlab export`: one session as JSON lines."""

from __future__ import annotations

from typing import Any

from compaction.context.session import Usage
from sessions.importers.decoded import Line, NotALog, lines
from sessions.importers.importer import Importer
from sessions.importers.records import Call, Json, Log, Message, Reason, Session, Skipped
from sessions.importers.wire import blocks_of, mapping, string

FORMAT = "contextlab-export"

_USAGE = ("uncached", "cache_read", "cache_write_5m", "cache_write_1h", "output")
_ROLES = frozenset({"system", "user", "assistant", "tool"})
_KINDS = frozenset({"summary", "memory", "system", "tools"})


def recognises(head: list[dict[str, Json]]) -> bool:
    """Whether the first line is that of an exported session."""
    return bool(head) and head[0].get("type") == "session" and "external_id" in head[0]


def read(data: bytes, name: str = "") -> Log:
    """Read an export. The session's id gets the prefix `export:`, so that it can coexist with the
    original.

    Revisions are not imported: messages stay in context from their birth. Raises NotALog.
    """
    del name
    log = Log(FORMAT)
    revisions = 0
    for line in lines(data):
        value = mapping(line.value)
        form = value.get("type")
        if form == "session" and not log.sessions:
            log.sessions.append(_session(value))
            log.skipped.append(_skipped(line, form))
        elif form == "message" and log.sessions and string(value.get("role")) in _ROLES:
            log.sessions[0].records.append(_message(value, line.number))
        elif form == "call" and log.sessions and string(value.get("call")):
            log.sessions[0].records.append(_call(value, line.number))
        else:
            revisions += form == "revision"
            log.skipped.append(_skipped(line, form))
    if not log.sessions:
        raise NotALog(
            "The export has no session line. It must be the first line; export the session again."
        )
    if revisions:
        log.problems.append(f"{revisions} revisions of the exported session were not imported.")
    return log


def _session(value: dict[str, Json]) -> Session:
    window = value.get("window")
    return Session(
        external_id=f"export:{string(value.get('external_id'))}"[:300],
        agent=string(value.get("agent")),
        model=string(value.get("model")),
        title=string(value.get("title")),
        window=window if isinstance(window, int) and 0 < window < 10**9 else None,
        meta=mapping(value.get("metadata")),
    )


def _message(value: dict[str, Json], line: int) -> Message:
    kind: Any = string(value.get("kind"))
    role: Any = value["role"]
    call = string(value.get("call"))
    at = value.get("at")
    return Message(
        role=role,
        blocks=blocks_of(value.get("content")),
        key=string(value.get("id")) or f"#{value.get('seq')}",
        call=call if call and role == "assistant" else None,
        at=at if isinstance(at, int) else None,
        kind=kind if kind in _KINDS else None,
        human=value.get("human") is True,
        line=line,
    )


def _call(value: dict[str, Json], line: int) -> Call:
    usage = mapping(value.get("usage"))
    counts = {
        name: count
        for name in _USAGE
        if isinstance(count := usage.get(name), int) and 0 <= count < 10**12
    }
    at = value.get("at")
    return Call(
        call=string(value["call"]),
        model=string(value.get("model")),
        at=at if isinstance(at, int) else None,
        usage=Usage(**counts) if len(counts) == len(_USAGE) else None,
        stop_reason=string(value.get("stop_reason")),
        settings=string(value.get("settings")),
        client=string(value.get("client")),
        line=line,
    )


def _skipped(line: Line, form: Json) -> Skipped:
    reason: Reason = "not context" if form in ("session", "revision") else "unknown"
    return Skipped(line.number, string(form) or "line", reason, line.raw)


IMPORTER = Importer(
    name=FORMAT,
    order=10,
    title="ContextLab exports",
    files="files written by `contextlab export`; their ids get the prefix `export:`",
    recognised_by="a first line of `type` session with an `external_id`",
    read=read,
    knows_lines=recognises,
)
