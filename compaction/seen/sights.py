"""What the model can still see of each file: lines, and the blocks that show them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from compaction.context.blocks import Block
from compaction.seen.changes import FileChange, Swap, change_of
from compaction.seen.linediff import matches
from compaction.seen.shown import Shown, shown

STUB = "dedupe:"
"""Id prefix of blocks that show only the new lines of a file."""

PAGE = 2_000
"""A reading of this many lines may have been cut off by the tool (Claude Code's limit)."""

LONGEST = 2_000_000
"""Code points above which a text is too long to compare."""


LOOK_BACK = 100
STRIDE = 50
"""The newest sights of a file that count, and up to one stride more."""

_MEDIA = re.compile(r"^\[(?:image|document)\b", re.MULTILINE)
"""An image appears in a text as a word, which cannot show whether two images are equal."""


class ShownLine(NamedTuple):
    """A line shown by the block at position `source`, with its `number` (0 if it has none)."""

    text: str
    source: int
    number: int


@dataclass(slots=True)
class KnownLines:
    """The known lines of a file by their current number; `total` is its length, if known."""

    lines: dict[int, ShownLine] = field(default_factory=dict)
    total: int | None = None

    def region(self, found: Shown, whole: bool) -> list[ShownLine | None]:
        """Return the known lines at the line numbers of a sight, None where a line is not known."""
        last = found.last
        if whole:
            last = self.total if self.total is not None else max([last, *self.lines])
        return [self.lines.get(number) for number in range(found.first, last + 1)]


def is_whole(found: Shown, block: Block) -> bool:
    """Return whether a reading shows its file to the end."""
    file = block.file
    asked = file is None or (file.start is None and file.end is None)
    frame = found.tail.strip()
    closed = not frame or frame.startswith(("<system-reminder>", "</output>"))
    return asked and closed and found.first == 1 and len(found.lines) < PAGE


def sight(block: Block, uses: Mapping[str, Block]) -> Shown | None:
    """Return the lines that a reading shows; None if the block is not a reading or unclear."""
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
    """Readings, writes and edits of each file in order, and the lines they show together.

    `paths` holds the positions of results by path; the blocks in the context decide what they show.
    Everything can be rebuilt from the originals; intermediate results are cached per list of
    blocks, so that a sight costs only its new part.
    """

    paths: dict[str, list[int]] = field(default_factory=dict)
    _worked_out: dict[str, tuple[list[str], KnownLines]] = field(default_factory=dict)
    _silent: dict[str, set[int]] = field(default_factory=dict)

    def add(self, block: Block) -> None:
        """Add the next original; positions must ascend."""
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
    ) -> KnownLines:
        """Return what the blocks before a position show of a file; read-only."""
        places = self.paths.get(path, [])
        end = bisect_left(places, before)
        # Start in strides: a start that moves with every sight would invalidate the cache.
        start = max(0, (end - LOOK_BACK) // STRIDE * STRIDE)
        silent = self._silent.setdefault(path, set())
        telling = []
        for place in places[start:end]:
            if place in silent:
                continue
            block = _shown_by(originals[place], standing, uses)
            if block is not None:
                telling.append((place, block.id))
            elif _shows(originals[place]):
                # Only readings fall silent: a later call with the same id may still show a change.
                silent.add(place)
        ids = [name for _, name in telling]
        done, known = self._worked_out.get(path, ([], KnownLines()))
        if ids[: len(done)] != done:
            done, known = [], KnownLines()
        for place, _ in telling[len(done) :]:
            _take_in(known, originals[place], standing, uses)
        self._worked_out[path] = (ids, known)
        return known

    def restored(self) -> None:
        """Forget which blocks show nothing: a block has returned, so they may show it again."""
        self._silent.clear()

    def resting(self, block: Block, standing: Mapping[int, Block]) -> Iterator[Block]:
        """Yield the blocks after this one that leave out what it shows."""
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
        """Return the positions of the readings, writes and edits whose text a stub relies on."""
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


def _shown_by(
    result: Block, standing: Mapping[int, Block], uses: Mapping[str, Block]
) -> Block | None:
    """Return the block in the context that shows the reading or edit in its original form."""
    assert result.file is not None
    if result.file.action == "read":
        now = standing.get(result.position)
        tells = now is not None and (now.id == result.id or now.id.startswith(STUB))
        return now if tells else None
    use = uses.get(result.tool_call or "")
    now = standing.get(use.position) if use is not None else None
    return use if use is not None and now is not None and now.id == use.id else None


def _take_in(
    known: KnownLines, result: Block, standing: Mapping[int, Block], uses: Mapping[str, Block]
) -> None:
    source = _shown_by(result, standing, uses)
    assert source is not None and result.file is not None
    if result.file.action == "delete":
        known.lines, known.total = {}, None
    elif result.file.action != "read":
        change = change_of(source)
        if change is not None:
            _change(known, change, source.position)
    elif (found := sight(result, uses)) is not None:
        whole = is_whole(found, result)
        lines: list[ShownLine | None] = [
            ShownLine(text, source.position, n) for n, text in enumerate(found.lines, found.first)
        ]
        kept = _kept(known, found, whole, source) if source.id != result.id else lines
        if whole:
            known.lines, known.total = {}, len(lines)
        for number, line in enumerate(kept, found.first):
            if line is not None:
                known.lines[number] = line
            else:
                known.lines.pop(number, None)


def _kept(known: KnownLines, found: Shown, whole: bool, stub: Block) -> list[ShownLine | None]:
    """Return the lines of a reading with a stub: as known before, or as the stub shows them."""
    old = known.region(found, whole)
    new: list[ShownLine | None] = [None] * len(found.lines)
    # A line that is no longer known matches nothing.
    pairs = matches([line.text if line else "\0" for line in old], found.lines) or []
    for a, b, size in pairs:
        new[b : b + size] = old[a : a + size]
    rows = stub.text.split("\n")
    rows_now = {row[1:] for row in rows if row[:1] in ("+", " ")} | set(rows)
    for place, text in enumerate(found.lines):
        if new[place] is None and (text in rows_now or found.raw[place] in rows_now):
            new[place] = ShownLine(text, stub.position, found.first + place)
    return new


def _change(known: KnownLines, change: FileChange, source: int) -> None:
    if change.whole is not None:
        texts = change.whole.split("\n")
        if not texts[-1]:
            texts.pop()
        known.lines = {n: ShownLine(text, source, n) for n, text in enumerate(texts, 1)}
        known.total = len(texts)
        return
    for swap in change.swaps:
        if not _swap(known, swap, source):
            # Its effect on the following lines is unknown: leave them as they are.
            return


def _swap(known: KnownLines, swap: Swap, source: int) -> bool:
    """Apply a replacement to the known lines; False if they do not contain the old text."""
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


def _runs(lines: Mapping[int, ShownLine]) -> Iterator[tuple[int, str]]:
    """Yield runs of consecutive lines: number of the first, and the text."""
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


def _splice(known: KnownLines, first: int, last: int, texts: Sequence[str], source: int) -> None:
    shift = len(texts) - (last - first + 1)
    before = {n: line for n, line in known.lines.items() if n < first}
    after = {n + shift: line for n, line in known.lines.items() if n > last}
    old = [known.lines[n] for n in range(first, last + 1)]
    made = [ShownLine(text, source, 0) for text in texts]
    # Context lines that the edit repeats still come from the earlier reading.
    for a, b, size in matches([line.text for line in old], texts) or []:
        made[b : b + size] = old[a : a + size]
    known.lines = before | dict(enumerate(made, first)) | after
    if known.total is not None:
        known.total += shift
