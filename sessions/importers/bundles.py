"""Logs that are several files: joined to one document before they are parsed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

_EVENT = re.compile(r"event-(\d{1,9})-[\w-]+\.json")
"""Name of one event of an OpenHands conversation."""


def is_event(name: str) -> bool:
    """Whether a file has one event of a conversation."""
    return _EVENT.fullmatch(PurePosixPath(name).name) is not None


def conversation_of(name: str) -> str:
    """The folder that has the events of a conversation, named after it: `…/ID/events` is `…/ID`."""
    return name_of(str(PurePosixPath(name).parent))


def name_of(path: str) -> str:
    """The name of a log by its path: a conversation's folder of events bears its parent's."""
    given = PurePosixPath(path)
    return str(given.parent) if given.name == "events" else path


def join_events(files: Iterable[tuple[str, bytes]]) -> bytes:
    """JSON lines of the events in order, each with its number."""
    numbered = sorted((_number(name), data) for name, data in files)
    # In JSON, line breaks stand between values only.
    return b"".join(
        b'{"number": %d, "event": %s}\n' % (number, data.replace(b"\n", b" "))
        for number, data in numbered
    )


def _number(name: str) -> int:
    found = _EVENT.fullmatch(PurePosixPath(name).name)
    return int(found[1]) if found else 0


def is_evaluation(names: Iterable[str]) -> bool:
    """Whether an archive is an evaluation log of Inspect (`.eval`)."""
    found = set(names)
    return "header.json" in found and any(name.startswith("samples/") for name in found)


def join_samples(header: bytes, samples: Iterable[bytes]) -> bytes:
    """One JSON document of an evaluation's header and samples."""
    head = header.strip()
    if not head.endswith(b"}"):
        return header
    return head[:-1] + b', "samples": [' + b",".join(samples) + b"]}"
