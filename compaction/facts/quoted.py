"""Choose the lines of a reading that hold what nothing else in the context holds."""

from __future__ import annotations

import re
from collections.abc import Set

from compaction.context.blocks import Block
from compaction.facts.facts import OUTSIDE, RUN

LONGEST_LINE = 240
"""Code points from which a line is left out."""

AROUND = 6
"""Code points that a line costs besides its text: its number and the line break."""

_NUMBERED = re.compile(r"\s{0,20}\d{1,7}[\t→:|]")
"""A line that already begins with its number, as agents' reading tools print it."""


def quoted(block: Block, wanted: Set[str], room: int) -> tuple[str, set[str]]:
    """Return lines of a block with their numbers, in order, and the wanted facts they hold.

    At most `room` code points. A line counts by the wanted facts that no chosen line holds,
    relative to its length. Linear in the text, but for sorting its lines.
    """
    lines = block.text.split("\n")
    holds: dict[int, set[str]] = {}
    for place, line in enumerate(lines):
        if len(line) < LONGEST_LINE:
            found = {run.strip(OUTSIDE) for run in RUN.findall(line)} & wanted
            if found:
                holds[place] = found
    ranked = sorted(holds, key=lambda place: (-len(holds[place]) / _cost(lines[place]), place))
    chosen: list[int] = []
    held: set[str] = set()
    for place in ranked:
        cost = _cost(lines[place])
        if cost <= room and not holds[place] <= held:
            room -= cost
            held |= holds[place]
            chosen.append(place)
    first = block.file.start if block.file is not None and block.file.start else 1
    return "\n".join(_numbered(first + place, lines[place]) for place in sorted(chosen)), held


def _cost(line: str) -> int:
    return len(line.strip()) + AROUND


def _numbered(number: int, line: str) -> str:
    return line.strip() if _NUMBERED.match(line) else f"{number}: {line.strip()}"
