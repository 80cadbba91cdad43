"""The lines of a failed output that say what went wrong."""

from __future__ import annotations

import re
from collections.abc import Collection

LOOK_AT = 30_000
"""Code points read from each end of an output."""

_WRAPPING = re.compile(r"^(?:Exit code|exit status) \d+\s*$|</?tool_use_error>", re.MULTILINE)
_CANCELLED = ("Sibling tool call errored", "Cancelled: parallel tool call")
"""How Claude Code begins the results of calls that it cancelled."""

_MESSAGE = re.compile(
    r"\b\w{0,60}(?:Error|Exception)\b: ?\S|\berror(?:\[\w{1,9}\]| TS\d{1,6})?: ?\S|^E {2,}\S"
    r"|\b(?:panic|fatal|FATAL)\b: ?\S|^CONFLICT \("
    r"|\b(?:undefined|cannot|can't|could not|not found|no such|unexpected|expected|mismatch"
    r"|missing|denied|refused|invalid|unknown|does not exist|timed out|unused"
    r"|declared and not used)\b",
    re.IGNORECASE,
)
_PLACE = re.compile(r"[\w-]\.[A-Za-z]{1,5}:\d+|\bline \d+")
_GENERIC = re.compile(
    r"^(?:Exit code \d+|exit status \d+|npm (?:ERR!|error) (?:code|errno|A complete log)"
    r"|make.{0,9}: \*\*\*|FAIL(?:ED)?$|Error:?$|Traceback \(most|error: (?:Recipe|script)\b|\$ |> "
    r"|warning:)"
    r"|ERROR task failed|\bexited with code \d+$|^={3,}|^-{3,}$|ELIFECYCLE",
    re.IGNORECASE,
)


def unwrapped(output: str) -> str:
    """Return an output without what agents' programs add to it: tags and the exit code."""
    return _WRAPPING.sub("", output).strip()


def never_ran(output: str) -> bool:
    """Return whether a failed result says that the call was cancelled because another failed."""
    return unwrapped(output[:200]).startswith(_CANCELLED)


def error_lines(output: str, most: int, known: Collection[str] = ()) -> list[str]:
    """Return up to `most` lines that distinguish a failure from others, in order.

    Prefers a message with a place over a message, leaves out what every failure of a tool prints,
    and lines that are already known. Empty if no line says anything specific.
    """
    if len(output) > 2 * LOOK_AT:
        output = f"{output[:LOOK_AT]}\n{output[-LOOK_AT:]}"
    lines = dict.fromkeys(line.strip() for line in unwrapped(output).splitlines())
    scored = [(_score(line[:400]), -place) for place, line in enumerate(lines)]
    listed = list(lines)
    best = sorted(one for one in scored if one[0] > 0 and listed[-one[1]] not in known)[::-1]
    return [listed[place] for place in sorted(-place for _, place in best[:most])]


def _score(line: str) -> int:
    if len(line) < 8 or _GENERIC.search(line):
        return 0
    message, place = _MESSAGE.search(line) is not None, _PLACE.search(line) is not None
    return 2 * message + place
