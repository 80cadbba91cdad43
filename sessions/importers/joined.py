"""Logs of several sessions in one file, as `cat` joins them: found, and read one by one."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

from sessions.importers.decoded import Unreadable, decode
from sessions.importers.records import Json
from sessions.importers.wire import mapping, string


def object_of(line: bytes) -> dict[str, Json]:
    """The object on a line; empty if it has none."""
    try:
        return mapping(decode(line))
    except Unreadable:
        return {}


def by_headers(
    data: bytes, header: str, id_of: Callable[[dict[str, Json]], str]
) -> list[list[int]]:
    """The numbers of the lines of each session, where a line of the type `header` begins one.

    Headers that follow each other are one beginning, since the log of a fork goes on with that of
    its parent. A header with an id that was there before goes on with that session.
    """
    marker = f'"{header}"'.encode()
    if data.count(marker) < 2:
        return []
    logs: dict[str, list[int]] = {}
    log: list[int] = []
    after_header = False
    for number, line in enumerate(BytesIO(data), start=1):
        given = object_of(line) if marker in line else {}
        is_header = string(given.get("type")) == header
        if is_header and not after_header and (named := id_of(given)):
            log = logs.setdefault(named, [] if logs else log)
        log.append(number)
        after_header = is_header
    return list(logs.values())
