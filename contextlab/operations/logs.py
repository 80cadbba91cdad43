"""Log formatting without content: the class and place of an error, but not its message."""

from __future__ import annotations

import json
import logging
import re
import traceback
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any

from sessions import metrics
from sessions.log_context import ids

_Exception = (
    tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
)


# Addresses that grant access: Django logs the path of each request that it refuses.
_SECRET = re.compile(
    r"((?:/|%2F)(?:login|invitations)(?:/|%2F))[^\s?&\"']+?(?=/?(?:[\s?&\"']|$))", re.IGNORECASE
)


class OneLine(logging.Formatter):
    """Formats records as one line; exceptions are reduced to class and frames, because messages may
    quote stored content."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        if isinstance(record.args, tuple):
            record.args = tuple(_named(value) for value in record.args)
        line = super().format(record).replace("\r", "\\r").replace("\n", "\\n")
        return _SECRET.sub(r"\1…", line)

    def formatMessage(self, record: logging.LogRecord) -> str:
        bound = "".join(f" {name}={value}" for name, value in ids().items())
        return super().formatMessage(record) + bound

    def formatException(self, ei: _Exception) -> str:
        if ei[0] is None:
            return ""
        frames = list(traceback.extract_tb(ei[2]))
        ours = [one for one in frames[:-1] if "site-packages" not in one.filename]
        shown = [*ours[-5:], *frames[-1:]]
        places = " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in reversed(shown))
        return f"[{named(ei[1])} at {places}]"


def named(error: BaseException) -> str:
    """The class of an error, with PostgreSQL's code of it: 55P03 waited for a lock, 40P01 locked
    against another."""
    state = getattr(error.__cause__, "sqlstate", None)
    return f"{type(error).__name__} {state}" if state else type(error).__name__


def _named(value: object) -> object:
    return named(value) if isinstance(value, BaseException) else value


class JsonLine(OneLine):
    """Formats records as one JSON object: time, level, logger, message, ids of request and job,
    and the record's own `fields`; nothing else, since Django attaches whole requests."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return record.getMessage()

    def format(self, record: logging.LogRecord) -> str:
        values: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": super().format(record),
            **ids(),
            **getattr(record, "fields", {}),
        }
        return json.dumps(values, default=str)


class LineCounter(logging.Handler):
    """Counts warnings and errors for `/metrics`."""

    def emit(self, record: logging.LogRecord) -> None:
        metrics.LOG_LINES.labels(record.levelname.lower()).inc()


_VALID_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


def request_id(given: bytes) -> str:
    """The id that a client or proxy gave a request, if it may stand in a log; else a new one."""
    return given.decode() if _VALID_ID.fullmatch(given) else uuid.uuid4().hex[:16]
