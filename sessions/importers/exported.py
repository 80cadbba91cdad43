"""Files written by `contextlab export`: sessions with all their rows, as JSON lines."""

from __future__ import annotations

from io import BytesIO
from operator import itemgetter
from typing import Any

from compaction.context.iterations import unpacked
from compaction.context.session import MOST_TOKENS, Usage
from sessions.importers.decoded import MAX_DEPTH, NotALog, Unreadable, clean, depth, exact
from sessions.importers.importer import Importer
from sessions.importers.records import Call, Json, Log, Message, Record, Session, Skipped
from sessions.importers.wire import blocks_of, mapping, string

FORMAT = "contextlab-export"
VERSION = 2

_USAGE = ("uncached", "cache_read", "cache_write_5m", "cache_write_1h", "output")
_ROLES = frozenset({"system", "user", "assistant", "tool"})
_STATED = frozenset({"summary", "memory", "system", "tools"})
"""Kinds that cannot be derived from role and blocks."""

ROWS = frozenset(
    ("message", "block", "call", "pin", "retry", "tool_graph", "run", "revision", "replacement")
    + ("edit", "entry", "context", "recitation", "ledger", "review_item", "review", "step_note")
)
"""Types of lines that belong to the session before them."""


def recognises(head: list[dict[str, Json]]) -> bool:
    """Whether the first line is that of an export."""
    return bool(head) and head[0].get("is") == "export" and "version" in head[0]


def read(data: bytes, name: str = "") -> Log:
    """Read an export: its lines as they are, for the store, and as records what the recorded
    contexts consist of. Raises NotALog.
    """
    del name
    log = Log(FORMAT, rows=[])
    assert log.rows is not None
    for number, line in enumerate(BytesIO(data), start=1):
        if not line.strip():
            continue
        try:
            # As written: a text may hold what other importers replace.
            value = exact(line)
        except Unreadable as error:
            raise NotALog(f"Line {number} is not JSON ({error}). Export it again.") from None
        row = isinstance(value, dict) and isinstance(value.get("is"), str)
        row = row and (value["is"] == "export" or isinstance(value.get("id"), int | str))
        if not row or depth(value) > MAX_DEPTH:
            raise NotALog(f"Line {number} is not a row of an export. Export it again.")
        log.rows.append((number, value))
    first = log.rows[0][1]
    if first.get("is") != "export" or first.get("version") != VERSION:
        raise NotALog(
            "The export is of another version of ContextLab. Export it again with this one."
        )
    _records(log)
    if not log.sessions:
        raise NotALog("The export contains no session. Export it again.")
    return log


def _records(log: Log) -> None:
    placed: list[tuple[int, int, Record]] = []
    messages: dict[str, Message] = {}
    for number, row in log.rows or ():
        value, form = clean(row), row["is"]
        if form == "session":
            _close(log, placed)
            log.sessions.append(_session(value))
            log.skipped.append(Skipped(number, form, "not context"))
            placed, messages = [], {}
        elif form in ROWS and not log.sessions:
            raise NotALog(f"Line {number} precedes its session. Export it again.")
        elif form == "message":
            messages[str(value.get("id"))] = message = _message(value, number)
            placed.append((whole(value.get("born")), 0, message))
        elif form == "call":
            placed.append((whole(value.get("step")), 1, _call(value, number)))
        else:
            known = form in ROWS or form in ("export", "policy")
            log.skipped.append(Skipped(number, form, "not context" if known else "unknown"))
        if form == "block" and (owner := messages.get(str(value.get("message")))) is not None:
            owner.blocks += blocks_of([value.get("sha_content")])
            kind: Any = string(value.get("kind"))
            owner.kind = kind if kind in _STATED else owner.kind
    _close(log, placed)


def _close(log: Log, placed: list[tuple[int, int, Record]]) -> None:
    """Give a session its records: a call comes before what its answer brought."""
    if log.sessions:
        log.sessions[-1].records = [record for *_, record in sorted(placed, key=itemgetter(0, 1))]


def _session(value: dict[str, Json]) -> Session:
    window = value.get("window")
    return Session(
        external_id=string(value.get("external_id"))[:300],
        agent=string(value.get("agent")),
        model=string(value.get("model")),
        title=string(value.get("title")),
        window=window if isinstance(window, int) and 0 < window < 10**9 else None,
        meta=mapping(value.get("meta")),
    )


def _message(value: dict[str, Json], line: int) -> Message:
    role: Any = string(value.get("role"))
    if role not in _ROLES:
        raise NotALog(f"Line {line}, message.role: is not a role. Export it again.")
    call = string(value.get("call"))
    return Message(
        role=role,
        blocks=[],
        key=string(value.get("key")) or f"#{value.get('seq')}",
        call=call if call and role == "assistant" else None,
        at=whole(value.get("at")) or None,
        human=value.get("human") is True,
        line=line,
    )


def _call(value: dict[str, Json], line: int) -> Call:
    usage = None
    if value.get("uncached") is not None:
        counts = {name: whole(value.get(name)) for name in _USAGE}
        if max(counts.values()) > MOST_TOKENS:
            raise NotALog(f"Line {line}: the call counts more than {MOST_TOKENS:,} tokens.")
        try:
            iterations = unpacked(string(value.get("iterations")))
        except ValueError:
            raise NotALog(
                f"Line {line}, call.iterations: cannot be read. Export it again."
            ) from None
        usage = Usage(**counts, iterations=iterations)
    return Call(
        call=string(value.get("call")),
        model=string(value.get("model")),
        at=whole(value.get("at")) or None,
        usage=usage,
        stop_reason=string(value.get("stop_reason")),
        settings=string(value.get("settings")),
        client=string(value.get("client")),
        line=line,
    )


def whole(value: Json) -> int:
    """The value if it is a count that a column holds, else 0."""
    return value if type(value) is int and 0 <= value < 2**63 else 0


IMPORTER = Importer(
    name=FORMAT,
    order=10,
    title="ContextLab exports",
    files="files of `contextlab export`",
    recognised_by="a first line of `is` export with a version",
    read=read,
    knows_lines=recognises,
)
