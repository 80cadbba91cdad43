"""The lines of each session in a file where several logs of Claude Code were joined."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from io import BytesIO

from sessions.importers.joined import object_of
from sessions.importers.records import Json
from sessions.importers.wire import string

_NAMED = re.compile(rb'"sessionId":\s*"([^"]+)"')
_CONTINUES = ("parentUuid", "logicalParentUuid")


def by_session(data: bytes, conversation: Iterable[str]) -> list[list[int]]:
    """The numbers of the lines of each session. Ids whose lines continue one another's, as after a
    resume, are one session.

    `conversation`: the types of lines whose ids count. A line without an id belongs to the next
    line that has one.
    """
    if len(set(_NAMED.findall(data))) < 2:
        return []
    lines = [object_of(line) for line in BytesIO(data)]
    spoken = [given for given in lines if string(given.get("type")) in conversation]
    sessions = _sessions(spoken)
    logs: dict[str, list[int]] = {}
    log: list[int] = []
    waiting: list[int] = []
    for number, given in enumerate(lines, start=1):
        waiting.append(number)
        if session := sessions.get(string(given.get("sessionId"))):
            log = logs.setdefault(session, [])
            log += waiting
            waiting = []
    log += waiting
    return list(logs.values())


def _sessions(spoken: list[dict[str, Json]]) -> dict[str, str]:
    """Id → the id of the session that its lines belong to."""
    ids_of: dict[str, dict[str, None]] = defaultdict(dict)
    joined: dict[str, str] = {}
    for given in spoken:
        if named := string(given.get("sessionId")):
            joined[named] = named
            ids_of[string(given.get("uuid"))].setdefault(named)

    def session_of(named: str) -> str:
        while joined[named] != named:
            joined[named] = named = joined[joined[named]]
        return named

    for given in spoken:
        named = string(given.get("sessionId"))
        for parent in (string(given.get(field)) for field in _CONTINUES):
            known = ids_of.get(parent) if parent and named else None
            if known and named not in known:
                joined[session_of(named)] = session_of(next(iter(known)))
    return {named: session_of(named) for named in joined}
