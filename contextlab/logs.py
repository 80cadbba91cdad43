"""Log lines that carry no content: where an error arose and its class, not its text."""

import logging
import traceback
from pathlib import Path
from types import TracebackType

_Exception = (
    tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
)


class OneLine(logging.Formatter):
    """One line per record; of an exception the class and the frames only, as its text may quote
    stored content."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        if isinstance(record.args, tuple):
            record.args = tuple(_named(value) for value in record.args)
        return super().format(record).replace("\r", "\\r").replace("\n", "\\n")

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
