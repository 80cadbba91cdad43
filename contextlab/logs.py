"""Log formatting without content: the class and place of an error, but not its message."""

import logging
import re
import traceback
from pathlib import Path
from types import TracebackType

_Exception = (
    tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
)


# Addresses that grant access: Django logs the path of each request that it refuses.
_SECRET = re.compile(
    r"((?:/|%2F)(?:login|invitations)(?:/|%2F))(?:(?!%2F)[^\s/?&\"'])+", re.IGNORECASE
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

    def formatException(self, ei: _Exception) -> str:
        if ei[0] is None:
            return ""
        frames = traceback.extract_tb(ei[2])[-6:]
        places = " < ".join(
            f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in reversed(frames)
        )
        return f"[{ei[0].__name__} at {places}]"


def _named(value: object) -> object:
    return type(value).__name__ if isinstance(value, BaseException) else value
