"""Part of a long text, by lines or by a pattern, bounded in length."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import re2

ANSWER = 40_000
"""Code points of one answer (our choice: about 10,000 tokens, too few to fill a window)."""
MATCH_LINE = 2_000
"""Code points shown of a matching line."""
PATTERN = 1_000
CONTEXT = 20
LAST = 2**31 - 1

_LINES = re.compile(r"\s*+(\d{1,9}+)?+\s*+([-:–]?+)\s*+(\d{1,9}+)?+\s*+\Z")


class BadSelection(ValueError):
    """A selection that cannot be applied; the message says why."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The lines to return: `first` to `last` (from 1, inclusive), or those that match `grep`.

    `head` and `tail` count lines. At most one of these is set; none means everything. `context` is
    the number of lines shown around a match. `offset` is the number of code points to skip, to
    continue an answer that was cut.
    """

    lines: tuple[int, int] | None = None
    grep: str | None = None
    head: int | None = None
    tail: int | None = None
    context: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The selected text, or as much of it as fits in one answer.

    `first` and `last` are its first and last line (0, 0 if nothing matched). `rest` are the
    arguments that return what follows, None at the end.
    """

    text: str
    first: int
    last: int
    total: int
    rest: dict[str, Any] | None = None


def selection_of(given: Mapping[str, Any]) -> Selection:
    """Parse a selection from arguments: lines "10-40", grep, head, tail, context, offset, all
    optional.

    Numbers may come as text. Raises BadSelection.
    """
    asked = [
        name for name in ("lines", "grep", "head", "tail") if given.get(name) not in (None, "")
    ]
    if len(asked) > 1:
        raise BadSelection(f"{' and '.join(asked)} cannot be combined. Use one of them.")
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
        raise BadSelection("lines must be an ascending range that starts at 1 or later.")
    return first, last


def excerpt(text: str, selection: Selection) -> Excerpt:
    """Apply a selection to a text.

    Lines end at line feeds only; other line endings are kept as they are. A search prefixes lines
    with their number, as grep does: "12:" for a match, "11-" for context lines, "--" for a gap.
    Raises BadSelection.
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


def attempt(text: str, selection: Selection) -> Excerpt | str:
    """As `excerpt`, but return the message of a BadSelection, for a caller in another process."""
    try:
        return excerpt(text, selection)
    except BadSelection as bad:
        return str(bad)


def _bounds(selection: Selection, total: int) -> tuple[int, int]:
    if selection.head is not None:
        return 1, min(selection.head, total)
    if selection.tail is not None:
        return max(1, total - selection.tail + 1), total
    assert selection.lines is not None
    first, last = selection.lines
    if first > total:
        raise BadSelection(f"Line {first} is beyond the end: the text has {total} lines.")
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
    # RE2 would log patterns, which are session content, to stderr.
    options.log_errors = False
    try:
        return re2.compile(pattern.encode("utf-8", "replace"), options)
    except re2.error as error:
        problem = error.args[0] if error.args else ""
        problem = problem.decode("utf-8", "replace") if isinstance(problem, bytes) else str(problem)
        raise BadSelection(
            f"The pattern is not a valid RE2 expression: {problem}. RE2 has no backreferences and "
            "no look-around."
        ) from None


def _short(line: str) -> str:
    return line if len(line) <= MATCH_LINE else f"{line[:MATCH_LINE]}… [{len(line)} chars]"


def _bounded(chosen: str, first: int, last: int, total: int, selection: Selection) -> Excerpt:
    """Cut to what fits in one answer, at a line end if its second half has one."""
    rest = chosen[selection.offset :]
    if selection.offset and not rest:
        raise BadSelection(f"The offset is beyond the end: {len(chosen)} characters are selected.")
    if selection.grep is None and selection.offset:
        first += chosen.count("\n", 0, selection.offset)
    if len(rest) <= ANSWER:
        return Excerpt(rest, first, last, total)
    cut = rest.rfind("\n", ANSWER // 2, ANSWER) + 1 or ANSWER
    if selection.grep is None:
        last = first + rest.count("\n", 0, cut - 1)
    return Excerpt(rest[:cut], first, last, total, _arguments(selection, selection.offset + cut))


def _arguments(selection: Selection, offset: int) -> dict[str, Any]:
    """Turn a selection back into arguments, starting at an offset."""
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
