"""What the model can still see of each file: lines, and the blocks that show them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from compaction.context import Block
from compaction.files.changes import Change, Swap, change_of
from compaction.files.linediff import matches
from compaction.files.shown import Shown, shown

STUB = "dedupe:"
"""How ids begin of blocks that say only what is new about a file."""

PAGE = 2_000
"""A reading of so many lines may have been cut off by the tool (Claude Code's limit)."""

LONGEST = 2_000_000
"""Code points above which a text is no sight: it is not worth the comparing."""


LOOK_BACK = 100
STRIDE = 50
"""Of a file that was seen more often, so many newest sights count, and up to a stride more."""

_MEDIA = re.compile(r"^\[(?:image|document)\b", re.MULTILINE)
"""Pictures stand in a text as a word, which says nothing of whether they are the same."""


class Line(NamedTuple):
    """A line as the block at position `source` shows it, under `number` (0 where it has none)."""

    text: str
    source: int
    number: int


@dataclass(slots=True)
class Known:
    """Lines of one file by their present number; `total` is how many it has, where known."""

    lines: dict[int, Line] = field(default_factory=dict)
    total: int | None = None

    def region(self, found: Shown, whole: bool) -> list[Line | None]:
        """The known lines where a sight has its own, None where one is not known."""
        last = found.last
        if whole:
            last = self.total if self.total is not None else max([last, *self.lines])
        return [self.lines.get(number) for number in range(found.first, last + 1)]


def is_whole(found: Shown, block: Block) -> bool:
    """Whether a reading shows its file to the end."""
    file = block.file
    asked = file is None or (file.start is None and file.end is None)
    frame = found.tail.strip()
    closed = not frame or frame.startswith(("<system-reminder>", "</output>"))
    return asked and closed and found.first == 1 and len(found.lines) < PAGE


def sight(block: Block, uses: Mapping[str, Block]) -> Shown | None:
    """The lines that a reading shows; None where the block is no reading or cannot tell."""
    if block.file is None or block.file.action != "read" or block.error:
        return None
    if len(block.text) > LONGEST or _MEDIA.search(block.text):
        return None
    use = uses.get(block.tool_call) if block.tool_call is not None else None
    if use is not None and block.file.start is None and "tail " in use.text:
        return None
    return shown(block.text, block.file)


@dataclass(slots=True)
class Sights:
    """Readings, writes and edits of each file, in order, and what they add up to.

    `paths` holds the positions of results by path; what stands decides what they show. It can be
    made anew from the originals at any time: nothing else is remembered but what was worked out
    for the same standing blocks before, so that a sight costs what is new.
    """

    paths: dict[str, list[int]] = field(default_factory=dict)
    _worked_out: dict[str, tuple[list[str], Known]] = field(default_factory=dict)
    _silent: dict[str, set[int]] = field(default_factory=dict)

    def add(self, block: Block) -> None:
        """Take in the next original; positions must ascend."""
        if block.file is None or block.file.action == "list" or block.error:
            return
        if block.type == "tool_result" or (block.type == "text" and block.kind == "file"):
            self.paths.setdefault(block.file.path, []).append(block.position)

    def known(
        self,
        path: str,
        before: int,
        standing: Mapping[int, Block],
        originals: Mapping[int, Block],
        uses: Mapping[str, Block],
    ) -> Known:
        """What the standing blocks before a position show of a file; not to be changed."""
        places = self.paths.get(path, [])
        end = bisect_left(places, before)
        # In strides, or every sight of a file seen so often would start from the beginning.
        start = max(0, (end - LOOK_BACK) // STRIDE * STRIDE)
        silent = self._silent.setdefault(path, set())
        telling = []
        for place in places[start:end]:
            if place in silent:
                continue
            block = _telling(originals[place], standing, uses)
            if block is not None:
                telling.append((place, block.id))
            elif _shows(originals[place]):
                # Of a change another call may yet tell that came under the same id.
                silent.add(place)
        ids = [name for _, name in telling]
        done, known = self._worked_out.get(path, ([], Known()))
        if ids[: len(done)] != done:
            done, known = [], Known()
        for place, _ in telling[len(done) :]:
            _take_in(known, originals[place], standing, uses)
        self._worked_out[path] = (ids, known)
        return known

    def restored(self) -> None:
        """Take note that something stands again: what told nothing any more may tell."""
        self._silent.clear()

    def resting(self, block: Block, standing: Mapping[int, Block]) -> Iterator[Block]:
        """Standing blocks after this one that leave out what it shows."""
        if block.file is None:
            return
        places = self.paths.get(block.file.path, [])
        for place in places[bisect_left(places, block.position) :]:
            later = standing.get(place)
            if later is not None and later.id.startswith(STUB) and block.id in later.refs[1:]:
                yield later

    def rested_on(
        self, stub: Block, originals: Mapping[int, Block], uses: Mapping[str, Block]
    ) -> list[int]:
        """Positions of the readings, writes and edits to which a stub leaves its text."""
        assert stub.file is not None
        places = self.paths.get(stub.file.path, [])
        found: set[int] = set()
        for place in places[: bisect_left(places, stub.position)]:
            result = originals[place]
            use = uses.get(result.tool_call or "")
            found.update(
                one.position for one in (result, use) if one is not None and one.id in stub.refs[1:]
            )
        return sorted(found)


def _shows(result: Block) -> bool:
    return result.file is not None and result.file.action == "read"


def _telling(
    result: Block, standing: Mapping[int, Block], uses: Mapping[str, Block]
) -> Block | None:
    """The standing block that tells what a reading showed or an edit did, as it was at first."""
    assert result.file is not None
    if result.file.action == "read":
        now = standing.get(result.position)
        tells = now is not None and (now.id == result.id or now.id.startswith(STUB))
        return now if tells else None
    use = uses.get(result.tool_call or "")
    now = standing.get(use.position) if use is not None else None
    return use if use is not None and now is not None and now.id == use.id else None


def _take_in(
    known: Known, result: Block, standing: Mapping[int, Block], uses: Mapping[str, Block]
) -> None:
    told = _telling(result, standing, uses)
    assert told is not None and result.file is not None
    if result.file.action == "delete":
        known.lines, known.total = {}, None
    elif result.file.action != "read":
        change = change_of(told)
        if change is not None:
            _change(known, change, told.position)
    elif (found := sight(result, uses)) is not None:
        whole = is_whole(found, result)
        lines: list[Line | None] = [
            Line(text, told.position, n) for n, text in enumerate(found.lines, found.first)
        ]
        kept = _kept(known, found, whole, told) if told.id != result.id else lines
        if whole:
            known.lines, known.total = {}, len(lines)
        for number, line in enumerate(kept, found.first):
            if line is not None:
                known.lines[number] = line
            else:
                known.lines.pop(number, None)


def _kept(known: Known, found: Shown, whole: bool, stub: Block) -> list[Line | None]:
    """The lines of a reading that a stub stands for: as known before, or as the stub shows them."""
    old = known.region(found, whole)
    new: list[Line | None] = [None] * len(found.lines)
    # A line that is not known any more agrees with nothing.
    pairs = matches([line.text if line else "\0" for line in old], found.lines) or []
    for a, b, size in pairs:
        new[b : b + size] = old[a : a + size]
    rows = stub.text.split("\n")
    told = {row[1:] for row in rows if row[:1] in ("+", " ")} | set(rows)
    for place, text in enumerate(found.lines):
        if new[place] is None and (text in told or found.raw[place] in told):
            new[place] = Line(text, stub.position, found.first + place)
    return new


def _change(known: Known, change: Change, source: int) -> None:
    if change.whole is not None:
        texts = change.whole.split("\n")
        if not texts[-1]:
            texts.pop()
        known.lines = {n: Line(text, source, n) for n, text in enumerate(texts, 1)}
        known.total = len(texts)
        return
    for swap in change.swaps:
        if not _swap(known, swap, source):
            # What it did to the lines after it cannot be told: they are compared as they stand.
            return


def _swap(known: Known, swap: Swap, source: int) -> bool:
    """Put a text in place of another where the known lines hold it; False where they do not."""
    places = [
        (start, text, at) for start, text in _runs(known.lines) for at in _finds(text, swap.old)
    ]
    if not places or (len(places) > 1 and not swap.everywhere):
        return False
    for start, text, at in reversed(places):
        first = start + text.count("\n", 0, at)
        last = first + swap.old.count("\n")
        head = text[text.rfind("\n", 0, at) + 1 : at]
        stop = text.find("\n", at + len(swap.old))
        tail = text[at + len(swap.old) : stop if stop >= 0 else len(text)]
        _splice(known, first, last, (head + swap.new + tail).split("\n"), source)
    return True


def _runs(lines: Mapping[int, Line]) -> Iterator[tuple[int, str]]:
    """Stretches of lines without a gap: number of the first, and the text."""
    run: list[str] = []
    start = last = 0
    for number in sorted(lines):
        if run and number != last + 1:
            yield start, "\n".join(run)
            run = []
        if not run:
            start = number
        run.append(lines[number].text)
        last = number
    if run:
        yield start, "\n".join(run)


def _finds(text: str, part: str) -> Iterator[int]:
    place = text.find(part)
    while place >= 0:
        yield place
        place = text.find(part, place + len(part))


def _splice(known: Known, first: int, last: int, texts: Sequence[str], source: int) -> None:
    shift = len(texts) - (last - first + 1)
    before = {n: line for n, line in known.lines.items() if n < first}
    after = {n + shift: line for n, line in known.lines.items() if n > last}
    old = [known.lines[n] for n in range(first, last + 1)]
    made = [Line(text, source, 0) for text in texts]
    # Lines that the edit only repeats to say where it goes are still those that were read.
    for a, b, size in matches([line.text for line in old], texts) or []:
        made[b : b + size] = old[a : a + size]
    known.lines = before | dict(enumerate(made, first)) | after
    if known.total is not None:
        known.total += shift
