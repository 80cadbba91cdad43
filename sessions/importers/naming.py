"""Ids for sessions whose file contains none: the file's name and a digest of how it begins.

File names often repeat; the first message stays the same as the log grows.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import PurePath

from sessions.importers.records import Json, Message, Session

_LONGEST = 200
"""Characters of the file's name in an id."""


def stem_of(name: str) -> str:
    """The name of a file without its folder and the endings of logs."""
    stem = PurePath(name).name
    for ending in (".gz", ".jsonl", ".json", ".traj", ".eval"):
        stem = stem.removesuffix(ending)
    return stem


def name_by_file(session: Session, name: str, log_format: str) -> None:
    """Give a session without an id one, and the ids that earlier releases gave it."""
    stem = stem_of(name)
    begin = (stem or log_format)[:_LONGEST]
    blocks, at = _beginning(session)
    session.external_id = f"{begin}-{_digest(blocks if at is None else [*blocks, at])}"
    session.former_ids = (f"{stem or log_format}-{_digest(blocks)}", stem or "unknown", name)


def _beginning(session: Session) -> tuple[list[Json], int | None]:
    """The first prompt of a person, else the first message, and when it was sent."""
    messages = [record for record in session.records if isinstance(record, Message)]
    if first := next((message for message in messages if message.human), None):
        return list(first.blocks), first.at
    return [message.blocks for message in messages[:1]], None


def _digest(value: Json) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:8]
