"""File dedupe: do not show a file again that the model has already seen."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from compaction.context.blocks import Block, Context
from compaction.context.edits import Edit, amount
from compaction.context.stubs import reference, stand_in
from compaction.proposals.plan import Mark, Proposal, View
from compaction.proposals.setting import setting
from compaction.proposals.strategy import Place, Remark, Strategy
from compaction.seen.linediff import unified
from compaction.seen.shown import Shown
from compaction.seen.sights import ShownLine, is_whole, sight

SOURCES = 8
"""A text spread over more places than this is sent again, because it would be hard to follow."""

RUN = 5
"""Runs of known lines shorter than this are shown again along with the new lines around them."""


@dataclass(frozen=True, slots=True)
class Dedupe:
    """When a reading of a file is reduced to what is new in it.

    If offload follows, text that is about to leave must not be relied on: `offload-first` has
    `within` 4, one less than its age (our choice, docs/policies/strategies.md has the
    figures). The minimum savings and the share are our choice.
    """

    within: int = setting(
        0,
        "Show a file again if last seen more than",
        "Until then, reading it again shows only what changed.",
        "Files",
        "steps ago",
        between=(0, 1_000_000),
        zero="never",
        tries=(0, 2, 4, 8, 16),
        drawn=range(4),
    )
    minimum: int = setting(
        50,
        "Shorten a repeated file if it saves",
        "Show the text again if that would save fewer tokens than this.",
        "Files",
        "tokens",
        between=(1, 1_000_000),
        advanced=True,
        drawn=range(1, 61),
    )
    share: float = setting(
        0.8,
        "Show only what changed if that is at most",
        "Maximum size of a diff or of the new lines; above it, the full text is shown.",
        "Files",
        "% of the file",
        between=(0.05, 1.0),
        advanced=True,
    )
    exclude: tuple[str, ...] = setting(
        (),
        "Always show these tools in full",
        "Tools whose readings are never shortened.",
        "Files",
        advanced=True,
    )


MARK: Mark = {"seen": 0}
"""The number of arrivals processed."""

Note = tuple[str, list[int]]
"""The replacement of a text, and the positions of the blocks it relies on."""


def dedupe(view: View, parameters: Dedupe) -> Proposal:
    """Reduce new readings of files to what the context does not show yet.

    Unchanged lines become a note on where they are, changed ones a unified diff; the agent's own
    writes and edits count as seen. Text that has left the context counts as not seen. Source:
    CodeGenius; comparing lines instead of whole files is our choice.
    """
    # Of two readings that arrive together, the second may rely on the first.
    entered: dict[int, Block] = {}
    edits = []
    for place in view.arrivals[view.mark["seen"] :]:
        block = view.originals[place]
        stub = _stub(view, block, parameters, entered) if _due(view, block, parameters) else None
        if stub is not None:
            entered[place] = stub
            edits.append(Edit("dedupe", (block.id,), stub, f"{block.tokens} tokens"))
    mark = {"seen": len(view.arrivals)}
    return Proposal(tuple(edits), mark, "entry", f"{amount(len(edits), 'reading')} of known files")


def _due(view: View, block: Block, parameters: Dedupe) -> bool:
    if block.type != "tool_result" or block.tokens <= parameters.minimum:
        return False
    now = view.standing.get(block.position)
    stands = now is not None and now.id == block.id
    return stands and block.tool not in parameters.exclude and view.guard.may_enter_as(block)


def _stub(view: View, block: Block, parameters: Dedupe, entered: dict[int, Block]) -> Block | None:
    uses = view.guard.groups.uses
    found = sight(block, uses)
    if found is None or block.file is None:
        return None
    # Looked up for each sight of the file: a plain dict is faster, and mostly nothing has entered.
    standing = ChainMap(entered, cast(Context, view.standing)) if entered else view.standing
    path = block.file.path
    known = view.sights.known(path, block.position, standing, view.originals, uses)
    old = known.region(found, is_whole(found, block))
    if parameters.within:
        old = [_young(view, line, block.born - parameters.within) for line in old]
    noted = _noted(view, block, found, old) if any(old) else None
    if noted is None:
        return None
    text, sources = noted
    tokens = view.means.count(text)
    if tokens > parameters.share * block.tokens or block.tokens - tokens < parameters.minimum:
        return None
    refs = (block.id, *(view.originals[source].id for source in sources))
    return stand_in(block, text, tokens, "dedupe", refs=refs)


def _young(view: View, line: ShownLine | None, since: int) -> ShownLine | None:
    return line if line is not None and view.originals[line.source].born >= since else None


def _noted(view: View, block: Block, found: Shown, old: Sequence[ShownLine | None]) -> Note | None:
    assert block.file is not None
    lines = [line for line in old if line is not None]
    if len(lines) < len(old):
        return _framed(found, _partly(view, block, found, old))
    where = _where(view, lines, found.first)
    if where is None:
        return None
    places, sources = where
    title = f"{block.file.path} lines {found.first}-{found.last}"
    if [line.text for line in lines] == list(found.lines):
        note = f"[unchanged: {title}, as shown before: {places} | ref {reference(block)}]"
        return _framed(found, ([note], sources))
    hunks = unified([line.text for line in lines], found.lines, found.first)
    if not hunks:
        return None
    note = f"[changed: {title}, diff against what was shown before: {places}"
    return _framed(found, ([f"{note} | ref {reference(block)}]", *hunks], sources))


def _framed(found: Shown, note: tuple[list[str], list[int]] | None) -> Note | None:
    if note is None:
        return None
    tail = f"\n{found.tail}" if found.tail else ""
    return f"{found.head}{chr(10).join(note[0])}{tail}", note[1]


def _partly(
    view: View, block: Block, found: Shown, old: Sequence[ShownLine | None]
) -> tuple[list[str], list[int]] | None:
    """Return the unseen lines as the tool printed them, between notes on the others."""
    assert block.file is not None
    rows = [
        f"[partly shown before: {block.file.path} lines {found.first}-{found.last}"
        f" | ref {reference(block)}]"
    ]
    sources: list[int] = []
    start = 0
    for start, end, lines in _seen_runs(found, old):
        where = _where(view, lines, found.first + start)
        if where is None or end - start < RUN:
            rows.extend(found.raw[start:end])
            continue
        rows.append(f"[lines {found.first + start}-{found.first + end - 1} unchanged: {where[0]}]")
        sources.extend(source for source in where[1] if source not in sources)
    return (rows, sources) if sources else None


def _seen_runs(
    found: Shown, old: Sequence[ShownLine | None]
) -> Iterator[tuple[int, int, list[ShownLine]]]:
    """Yield runs of seen and unseen lines: start, end, and the lines if seen."""
    run: list[ShownLine] = []
    start = 0
    for place, text in enumerate(found.lines):
        line = old[place] if place < len(old) else None
        same = line if line is not None and line.text == text else None
        if place > start and bool(run) != (same is not None):
            yield start, place, run
            start, run = place, []
        if same is not None:
            run.append(same)
    yield start, len(found.lines), run


def _where(view: View, lines: Sequence[ShownLine], first: int) -> tuple[str, list[int]] | None:
    """Describe where lines are that are now numbered from `first`; None if in too many places."""
    runs: list[list[int]] = []
    for number, line in enumerate(lines, first):
        same = runs and runs[-1][0] == line.source
        if same and (not line.number or line.number == runs[-1][2] + number - runs[-1][1]):
            runs[-1][3] = number
        else:
            runs.append([line.source, number, line.number, number])
    sources = list(dict.fromkeys(run[0] for run in runs))
    if not runs or len(sources) > SOURCES:
        return None
    if len(runs) > SOURCES:
        return ", ".join(_source(view, source) for source in sources), sources
    return ", ".join(_run(view, run, len(runs) == 1) for run in runs), sources


def _run(view: View, run: Sequence[int], alone: bool) -> str:
    source, start, was, end = run
    span = "" if alone else f"{start}-{end} "
    moved = f" as lines {was}-{was + end - start}" if was not in (0, start) else ""
    return f"{span}in {_source(view, source)}{moved}"


def _source(view: View, source: int) -> str:
    block = view.originals[source]
    return f"your {block.tool or 'message'} (ref {reference(block)})"


def _remarks(place: Place, given: Dedupe) -> Iterator[Remark]:
    ages = [one.age for one in place.parameters_of("offload") if one.unit == "steps"]
    if ages and (given.within == 0 or given.within >= min(ages)):
        text = (
            f"Notes rely on text that offload removes after {min(ages)} steps, which delays the "
            f"offload or shows the text again. Set it to {max(min(ages) - 1, 1)}, one less than "
            f"the age."
        )
        yield Remark("within", text, "note")


STRATEGY = Strategy(
    name="dedupe",
    order=10,
    title="File dedupe",
    does="Does not show a file again that the model has already seen.",
    event="entry",
    propose=dedupe,
    parameters=Dedupe,
    mark=MARK,
    docs="file-dedupe",
    remarks=_remarks,
    joins=True,
)
