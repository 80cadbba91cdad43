"""Decoding of arbitrary bytes into JSON values that can be stored."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass

from sessions.importers.records import Json, Skipped

MAX_DEPTH = 150
"""Maximum depth of a value; serializing deeper ones would overflow the stack."""

_LONGEST_INT = 18
"""Longer integers stay text, because no column and no other reader can hold them."""

_NAMED = 5
"""Number of faults listed by line number."""

_REPLACEMENT = "\ufffd"


class NotALog(ValueError):
    """The file is not a known agent log: what was found, and what to do."""


class Unreadable(ValueError):
    """The bytes contain no JSON value that can be stored."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a JSONL file: number (from 1), bytes, and value (None if unreadable)."""

    number: int
    raw: bytes
    value: Json
    fault: str = ""
    last: bool = False
    """No line break follows: it may still be being written."""


def decode(raw: bytes) -> Json:
    """Parse one JSON value. Raises Unreadable.

    NaN, infinities and huge integers become text; NUL and lone surrogates become the replacement
    character, because databases and APIs reject them.
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
    """Parse one JSON value without changing it, for senders that can be sent an error. Raises
    Unreadable.

    NUL and lone surrogates are preserved. NaN, infinities and floats out of range are refused.
    Depth is not checked (see `depth`).
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
    """Iterate over a JSONL file; blank lines are skipped but numbered."""
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
    """Collects unreadable lines, and reports them in one sentence."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._numbers: list[int] = []
        self._reason = ""
        self._cut = 0

    def line(self, line: Line) -> Skipped:
        """Record an unreadable line; an unfinished last line is not an error."""
        if line.last:
            self._cut = line.number
            return Skipped(line.number, "", "malformed", line.raw)
        return self.item(line.number, line.raw, line.fault)

    def item(self, number: int, raw: bytes = b"", reason: str = "") -> Skipped:
        """Record an invalid line or array item."""
        self._numbers.append(number)
        self._reason = self._reason or reason
        return Skipped(number, "", "malformed", raw)

    def sentences(self) -> list[str]:
        """The problems as sentences for people."""
        answer = []
        if self._numbers:
            first = ", ".join(str(number) for number in self._numbers[:_NAMED])
            more = len(self._numbers) - _NAMED
            rest = f" and {more} more" if more > 0 else ""
            why = f" ({self._reason})" if self._reason else ""
            named = "number" if len(self._numbers) == 1 else "numbers"
            answer.append(
                f"{self._what}: {named} {first}{rest}{why}. "
                "They were skipped and kept for inspection."
            )
        if self._cut:
            answer.append(
                f"Line {self._cut} is incomplete, probably because the log is still being "
                "written. Import it again when it has grown."
            )
        return answer


def _finite(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text


def _exact_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:20]} is too large")
    return value


def _no_number(text: str) -> Json:
    raise ValueError(f"{text} is not valid JSON")


def _small(text: str) -> int | str:
    return int(text) if len(text) <= _LONGEST_INT else text


def depth(value: Json) -> int:
    """Nesting depth of lists and objects; counting stops beyond MAX_DEPTH."""
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
    """Replace NUL and lone surrogates, which no column accepts."""
    if isinstance(value, str):
        text = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text.replace("\x00", _REPLACEMENT)
    if isinstance(value, list):
        return [clean(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): clean(item) for key, item in value.items()}
    return value
