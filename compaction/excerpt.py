"""Part of a long text, by lines or by a pattern, never more than an answer may hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import re2

ANSWER = 40_000
"""Code points of one answer (ours: some 10,000 tokens, so that reading back fills no window)."""
MATCH_LINE = 2_000
"""Code points of a line that a search shows."""
PATTERN = 1_000
CONTEXT = 20
LAST = 2**31 - 1

_LINES = re.compile(r"\s*(\d{1,9})?\s*([-:–]?)\s*(\d{1,9})?\s*\Z")


class BadSelection(ValueError):
    """What was asked for cannot be given; the text is a sentence that says why."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which lines are wanted: `first` to `last` (from 1, inclusive), or those that match `grep`.

    `head` and `tail` count lines. At most one of these is set; none means everything. `context`
    are lines shown around a match, `offset` code points of the selected text to skip: where an
    answer was too long, it is how the next one goes on.
    """

    lines: tuple[int, int] | None = None
    grep: str | None = None
    head: int | None = None
    tail: int | None = None
    context: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The selected text, or as much of it as one answer holds.

    `first` and `last` are the lines that it lies between (0, 0 where there are none). `rest` are
    the arguments that give what follows, None where nothing does.
    """

    text: str
    first: int
    last: int
    total: int
    rest: dict[str, Any] | None = None


def selection_of(given: Mapping[str, Any]) -> Selection:
    """A selection from arguments: lines "10-40", grep, head, tail, context, offset, each optional.

    Numbers may come as text. Raises BadSelection.
    """
    asked = [
        name for name in ("lines", "grep", "head", "tail") if given.get(name) not in (None, "")
    ]
    if len(asked) > 1:
        raise BadSelection(f"{' and '.join(asked)} were asked for: choose one of them.")
    context = _number(given, "context", 0, CONTEXT) or 0
    offset = _number(given, "offset", 0, LAST) or 0
    grep = given.get("grep") or None
    if grep is not None and not isinstance(grep, str):
        raise BadSelection("grep must be a regular expression as text.")
    return Selection(
        lines=_lines(given["lines"]) if "lines" in asked else None,
        grep=grep,
        head=_number(given, "head", 1, LAST),
        tail=_number(given, "tail", 1, LAST),
        context=context if grep else 0,
        offset=offset,
    )


def _number(given: Mapping[str, Any], name: str, low: int, high: int) -> int | None:
    value = given.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        value = int(value[:20])
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BadSelection(f"{name} must be a whole number from {low} to {high}.")
    return value


def _lines(given: Any) -> tuple[int, int]:
    if isinstance(given, list) and len(given) == 2:
        given = f"{given[0]}-{given[1]}"
    found = _LINES.match(str(given)) if not isinstance(given, bool) else None
    if found is None or not (found[1] or found[3]):
        raise BadSelection('lines must be a range such as "10-40", "10-" or "10".')
    first = int(found[1] or 1)
    last = int(found[3]) if found[3] else (LAST if found[2] else first)
    if first < 1 or last < first:
        raise BadSelection("lines must be a range from 1 on, the first line first.")
    return first, last


def excerpt(text: str, selection: Selection) -> Excerpt:
    """What a selection gives of a text. Raises BadSelection.

    Lines end at line feeds only and keep what they have before them. A search prefixes lines with
    their number, as grep does: "12:" for a match, "11-" for the lines around, "--" for a gap.
    """
    lines = text.split("\n")
    if len(lines) > 1 and lines[-1] == "":
        lines.pop()
    total = len(lines)
    if selection.grep is not None:
        chosen, first, last = _search(lines, selection.grep, selection.context)
    elif selection.lines is None and selection.head is None and selection.tail is None:
        chosen, first, last = text, 1, total
    else:
        first, last = _bounds(selection, total)
        chosen = "\n".join(lines[first - 1 : last])
    return _bounded(chosen, first, last, total, selection)


def _bounds(selection: Selection, total: int) -> tuple[int, int]:
    if selection.head is not None:
        return 1, min(selection.head, total)
    if selection.tail is not None:
        return max(1, total - selection.tail + 1), total
    assert selection.lines is not None
    first, last = selection.lines
    if first > total:
        raise BadSelection(f"There are {total} lines: line {first} is beyond the end.")
    return first, min(last, total)


def _search(lines: list[str], pattern: str, around: int) -> tuple[str, int, int]:
    matcher = _matcher(pattern)
    hits = [n for n, line in enumerate(lines, 1) if matcher.search(line.encode("utf-8", "replace"))]
    shown: list[str] = []
    last = 0
    matching = set(hits)
    for hit in hits:
        start = max(1, hit - around, last + 1)
        if around and last and start > last + 1:
            shown.append("--")
        for number in range(start, min(len(lines), hit + around) + 1):
            mark = ":" if number in matching else "-"
            shown.append(f"{number}{mark}{_short(lines[number - 1])}")
            last = number
    first = max(1, hits[0] - around) if hits else 0
    return "\n".join(shown), first, last


def _matcher(pattern: str) -> Any:
    if len(pattern) > PATTERN:
        raise BadSelection(f"The pattern is longer than {PATTERN} characters.")
    options = re2.Options()
    # It would write patterns, which are content, to stderr.
    options.log_errors = False
    try:
        return re2.compile(pattern.encode("utf-8", "replace"), options)
    except re2.error as error:
        told = error.args[0] if error.args else ""
        told = told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)
        raise BadSelection(
            f"The pattern is no regular expression of RE2: {told}. RE2 has no backreferences and "
            "no look-around."
        ) from None


def _short(line: str) -> str:
    return line if len(line) <= MATCH_LINE else f"{line[:MATCH_LINE]}… [{len(line)} chars]"


def _bounded(chosen: str, first: int, last: int, total: int, selection: Selection) -> Excerpt:
    """As much as an answer holds, cut at the end of a line where one ends in its second half."""
    rest = chosen[selection.offset :]
    if selection.offset and not rest:
        raise BadSelection(f"There are {len(chosen)} characters: nothing begins at the offset.")
    if selection.grep is None and selection.offset:
        first += chosen.count("\n", 0, selection.offset)
    if len(rest) <= ANSWER:
        return Excerpt(rest, first, last, total)
    cut = rest.rfind("\n", ANSWER // 2, ANSWER) + 1 or ANSWER
    if selection.grep is None:
        last = first + rest.count("\n", 0, cut - 1)
    return Excerpt(rest[:cut], first, last, total, _arguments(selection, selection.offset + cut))


def _arguments(selection: Selection, offset: int) -> dict[str, Any]:
    """A selection as the arguments that give it, from an offset on."""
    made: dict[str, Any] = {}
    if selection.lines is not None:
        first, last = selection.lines
        made["lines"] = f"{first}-{last if last != LAST else ''}"
    for name in ("grep", "head", "tail"):
        if getattr(selection, name) is not None:
            made[name] = getattr(selection, name)
    if selection.context:
        made["context"] = selection.context
    return {**made, "offset": offset}
