"""Importers: detect the format of a log and convert it into our records.

Pure: bytes in, values out. The format is detected from the content, never the file name; the name
only serves, with how the log begins, to name a session whose file has no id.
"""

from __future__ import annotations

from io import BytesIO
from itertools import islice

from compaction.records import in_order, records_in
from sessions.importers.counted import Counts, counts
from sessions.importers.decoded import NotALog, Unreadable, decode, lines
from sessions.importers.importer import Importer
from sessions.importers.naming import name_by_file
from sessions.importers.records import Json, Log
from sessions.importers.wire import mapping, sequence

__all__ = [
    "IMPORTERS",
    "MOST_USED_FIRST",
    "Counts",
    "Importer",
    "NotALog",
    "counts",
    "detect",
    "parse",
]

_HEAD = 200
"""Number of readable lines inspected to detect the format of a JSONL file."""

_START = 4096
"""Bytes inspected to detect a format that is not JSON."""


IMPORTERS: dict[str, Importer] = in_order(records_in(__name__, __path__, "IMPORTER"))
"""In order of detection: specific formats first, because later, broader ones would accept their
files too."""


MOST_USED_FIRST = sorted(IMPORTERS.values(), key=lambda one: (one.rank, one.title.lower()))
"""In the order of lists that people read."""


def detect(data: bytes, name: str = "") -> str | None:
    """Detect the format of a file; None if it is not a known log.

    `name` is ignored; it is accepted so that all importers share one signature.
    """
    del name
    start = data[:_START].decode("utf-8-sig", "replace")
    for log_format, importer in IMPORTERS.items():
        if importer.knows_text is not None and importer.knows_text(start):
            return log_format
    head = _objects(data)
    for log_format, importer in IMPORTERS.items():
        if importer.knows_lines is not None and head and importer.knows_lines(head):
            return log_format
    try:
        value = decode(data)
    except Unreadable:
        return None
    for log_format, importer in IMPORTERS.items():
        if importer.knows_document is not None and importer.knows_document(value):
            return log_format
    return None


def parse(data: bytes, name: str = "") -> Log:
    """Read a file of any known format. Raises NotALog with what was found and what to do."""
    log_format = detect(data, name)
    if log_format is None:
        raise NotALog(_what(data))
    importer = IMPORTERS[log_format]
    parts = importer.split(data) if importer.split is not None else []
    log = _joined(importer, data, parts, name) if len(parts) > 1 else importer.read(data, name)
    for session in log.sessions:
        if not session.external_id:
            name_by_file(session, name, log_format)
    return log


def _joined(importer: Importer, data: bytes, parts: list[list[int]], name: str) -> Log:
    """Read the logs of a file, each from its lines, as if it were a file of its own."""
    whole = Log(importer.name)
    whole.problems.append(
        f"The file has the logs of {len(parts)} sessions; each was imported by itself. Line "
        "numbers below count from where its log begins."
    )
    raw = list(BytesIO(data))
    for numbers in parts:
        log = importer.read(b"".join(raw[number - 1] for number in numbers), name)
        for one in (*log.skipped, *(record for each in log.sessions for record in each.records)):
            one.line = numbers[one.line - 1] if one.line else 0
        whole.sessions += log.sessions
        whole.skipped += log.skipped
        whole.problems += log.problems
    return whole


def _objects(data: bytes) -> list[dict[str, Json]]:
    """Objects on the first lines; empty if most lines are something else, such as prose with
    examples."""
    head = list(islice(lines(data), _HEAD))
    objects = [line.value for line in head if isinstance(line.value, dict)]
    return objects if 2 * len(objects) >= len(head) else []


def _what(data: bytes) -> str:
    known = ", ".join(IMPORTERS)
    if not data.strip():
        return "The file is empty. Choose a file that contains a session."
    if data[:2] == b"\x1f\x8b" or data[:4] == b"PK\x03\x04":
        return "The file is compressed. Unpack it and import its content."
    if data[:16] == b"SQLite format 3\x00":
        return (
            "This is a SQLite database, which is not read yet. Export its sessions first: `goose "
            "session export --format json`, `opencode export`; of Cursor, import the folder "
            "`~/.cursor/projects`."
        )
    if b"\x00" in data[:4096]:
        return f"The file is binary, not a text log. Supported formats: {known}."
    try:
        if tool := _not_read_yet(decode(data)):
            return f"This is {tool}; not read yet. Supported formats: {known}."
    except Unreadable:
        if not _objects(data):
            return f"The file is neither JSON nor JSONL. Supported formats: {known}."
    signs = "; ".join(f"{one.name}: {one.recognised_by}" for one in IMPORTERS.values())
    return f"The file is JSON, but not a known agent log. Recognized by: {signs}."


def _not_read_yet(value: Json) -> str:
    """The tool whose file this is, for those that no importer reads; empty if unknown."""
    given = mapping(value)
    first = mapping(next(iter(sequence(given.get("messages"))), None))
    if "User" in first or "Agent" in first:
        return "a thread of Zed"
    if "workspaceDirectory" in given and "history" in given:
        return "a session of Continue"
    return ""
