"""From bytes to JSON values that can be stored, whatever the bytes are."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass

from sessions.importers.records import Json, Skipped

MAX_DEPTH = 150
"""Deeper values are refused: whoever serialises them again would run out of stack."""

_LONGEST_INT = 18
"""Longer integers stay text: they fit no column and no other reader."""

_NAMED = 5
"""Faults that a sentence names by number."""

_REPLACEMENT = "\ufffd"


class NotALog(ValueError):
    """The file is no agent log that we read: what was found, and what to do about it."""


class Unreadable(ValueError):
    """These bytes hold no JSON value that can be kept."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a JSONL file: its number from 1, its bytes, and its value (None if unreadable)."""

    number: int
    raw: bytes
    value: Json
    fault: str = ""
    last: bool = False
    """No line break follows: the writer may not be done with it."""


def decode(raw: bytes) -> Json:
    """Read one JSON value; raises Unreadable.

    NaN, infinities and huge integers become text; NUL and lone surrogates, the replacement sign:
    no database and no wire takes them.
    """
    try:
        text = raw.decode("utf-8-sig")
        value = json.loads(text, parse_constant=str, parse_float=_finite, parse_int=_small)
    except (ValueError, RecursionError) as error:
        raise Unreadable(str(error)) from None
    if depth(value) > MAX_DEPTH:
        raise Unreadable(f"nested more than {MAX_DEPTH} levels deep")
    escapes = raw.lower() if b"\\u" in raw or b"\\U" in raw else b""
    if b"\\ud" in escapes or b"\\u0000" in escapes:
        return clean(value)
    return value


def exact(raw: bytes) -> Json:
    """Read one JSON value and change nothing, for senders that can be told; raises Unreadable.

    NUL and lone surrogates stay as they are. NaN, infinities and numbers that no reader can hold
    are refused. How deep the value is nested is not looked at (see `depth`).
    """
    try:
        return json.loads(
            raw.decode("utf-8-sig"), parse_constant=_no_number, parse_float=_exact_float
        )
    except RecursionError:
        raise Unreadable(f"nested more than {MAX_DEPTH} levels deep") from None
    except ValueError as error:
        raise Unreadable(str(error)) from None


def lines(data: bytes) -> Iterator[Line]:
    """Go through a JSONL file; blank lines are left out but counted in the numbers."""
    pieces = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, piece in enumerate(pieces, start=1):
        raw = piece.rstrip(b"\r")
        if not raw.strip():
            continue
        last = number == len(pieces)
        try:
            yield Line(number, raw, decode(raw), last=last)
        except Unreadable as error:
            yield Line(number, raw, None, fault=str(error), last=last)


class Faults:
    """Gathers what could not be read, and says so in one sentence however much it is."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._numbers: list[int] = []
        self._reason = ""
        self._cut = 0

    def line(self, line: Line) -> Skipped:
        """Keep an unreadable line; the unfinished last line of a log is no damage."""
        if line.last:
            self._cut = line.number
            return Skipped(line.number, "", "malformed", line.raw)
        return self.item(line.number, line.raw, line.fault)

    def item(self, number: int, raw: bytes = b"", reason: str = "") -> Skipped:
        """Keep a line or an array item that is not what it should be."""
        self._numbers.append(number)
        self._reason = self._reason or reason
        return Skipped(number, "", "malformed", raw)

    def sentences(self) -> list[str]:
        """What to tell people."""
        told = []
        if self._numbers:
            first = ", ".join(str(number) for number in self._numbers[:_NAMED])
            more = len(self._numbers) - _NAMED
            rest = f" and {more} more" if more > 0 else ""
            why = f" ({self._reason})" if self._reason else ""
            told.append(f"{self._what}: {first}{rest}{why}. They were left out and kept aside.")
        if self._cut:
            told.append(
                f"Line {self._cut} is cut off: the log seems to be still written; import it again"
                " when it has grown."
            )
        return told


def _finite(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text


def _exact_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:20]} is too large")
    return value


def _no_number(text: str) -> Json:
    raise ValueError(f"{text} is no JSON")


def _small(text: str) -> int | str:
    return int(text) if len(text) <= _LONGEST_INT else text


def depth(value: Json) -> int:
    """How many lists and objects lie in one another; counting stops beyond MAX_DEPTH."""
    deepest, layer = 0, [value]
    while layer and deepest <= MAX_DEPTH:
        layer = [child for item in layer for child in _children(item)]
        deepest += bool(layer)
    return deepest


def _children(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return [child for child in value.values() if isinstance(child, dict | list)]
    if isinstance(value, list):
        return [child for child in value if isinstance(child, dict | list)]
    return []


def clean(value: Json) -> Json:
    """The value with the replacement sign for NUL and lone surrogates, which no column takes."""
    if isinstance(value, str):
        text = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text.replace("\x00", _REPLACEMENT)
    if isinstance(value, list):
        return [clean(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): clean(item) for key, item in value.items()}
    return value
