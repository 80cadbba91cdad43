"""File dedupe: a file that the model has seen before is not shown to it again."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from compaction.context import Block, Context
from compaction.edits import Edit
from compaction.files.linediff import unified
from compaction.files.shown import Shown
from compaction.files.sights import Line, is_whole, sight
from compaction.plan import Mark, Proposal, View
from compaction.stubs import reference, stand_in

SOURCES = 8
"""A text that stands in more places than this is sent again: nobody would put it together."""

RUN = 5
"""Fewer lines than this that were seen before are shown again with their new neighbours."""


@dataclass(frozen=True, slots=True)
class Dedupe:
    """When a reading of a file is cut to what is new in it; `help` says what each value does.

    Where offload follows, text that is about to leave is nothing to rest on: `offload-first` has
    `within` 4, one less than its age (ours, docs/strategies.md has the figures). The least that is
    saved and the share are ours.
    """

    within: int = field(
        default=0,
        metadata={
            "min": 0,
            "max": 1_000_000,
            "help": "Text that has stood for more steps than this counts as not seen; 0 for none.",
        },
    )
    minimum: int = field(
        default=50,
        metadata={
            "min": 1,
            "max": 1_000_000,
            "help": "Tokens that must be saved at least, or the text is shown again.",
        },
    )
    share: float = field(
        default=0.8,
        metadata={
            "min": 0.05,
            "max": 1.0,
            "help": "Share of the full text that a diff, or the lines that are new, may take.",
        },
    )
    exclude: tuple[str, ...] = field(
        default=(), metadata={"help": "Tools whose readings are left alone."}
    )


MARK: Mark = {"seen": 0}
"""How many arrivals were looked at."""

Told = tuple[str, list[int]]
"""What stands for a text, and the positions of the blocks that it leaves the rest to."""


def dedupe(view: View, parameters: Dedupe) -> Proposal:
    """Cut readings of files to what the context does not show yet, at their arrival only.

    Unchanged lines become a note that says where they stand, changed ones a unified diff against
    what stands; the agent's own writes and edits count as seen. What has left the context counts
    as not seen. Source: CodeGenius; that lines are compared and not whole files is ours.
    """
    # Of two readings that arrive together the second may rest on what the first one leaves.
    entered: dict[int, Block] = {}
    edits = []
    for place in view.arrivals[view.mark["seen"] :]:
        block = view.originals[place]
        stub = _stub(view, block, parameters, entered) if _due(view, block, parameters) else None
        if stub is not None:
            entered[place] = stub
            edits.append(Edit("dedupe", (block.id,), stub, f"{block.tokens} tokens"))
    mark = {"seen": len(view.arrivals)}
    return Proposal(tuple(edits), mark, "entry", f"{len(edits)} readings of what was seen")


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
    # Asked for each sight of the file: mostly nothing else has entered, and a plain dict is quick.
    standing = ChainMap(entered, cast(Context, view.standing)) if entered else view.standing
    path = block.file.path
    known = view.sights.known(path, block.position, standing, view.originals, uses)
    old = known.region(found, is_whole(found, block))
    if parameters.within:
        old = [_young(view, line, block.born - parameters.within) for line in old]
    told = _told(view, block, found, old) if any(old) else None
    if told is None:
        return None
    text, sources = told
    tokens = view.means.count(text)
    if tokens > parameters.share * block.tokens or block.tokens - tokens < parameters.minimum:
        return None
    refs = (block.id, *(view.originals[source].id for source in sources))
    return stand_in(block, text, tokens, "dedupe", refs=refs)


def _young(view: View, line: Line | None, since: int) -> Line | None:
    return line if line is not None and view.originals[line.source].born >= since else None


def _told(view: View, block: Block, found: Shown, old: Sequence[Line | None]) -> Told | None:
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
        told = f"[unchanged: {title}, as shown before: {places} | ref {reference(block)}]"
        return _framed(found, ([told], sources))
    hunks = unified([line.text for line in lines], found.lines, found.first)
    if not hunks:
        return None
    told = f"[changed: {title}, diff against what was shown before: {places}"
    return _framed(found, ([f"{told} | ref {reference(block)}]", *hunks], sources))


def _framed(found: Shown, told: tuple[list[str], list[int]] | None) -> Told | None:
    if told is None:
        return None
    tail = f"\n{found.tail}" if found.tail else ""
    return f"{found.head}{chr(10).join(told[0])}{tail}", told[1]


def _partly(
    view: View, block: Block, found: Shown, old: Sequence[Line | None]
) -> tuple[list[str], list[int]] | None:
    """The lines that were not seen, as the tool printed them, between notes on those that were."""
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


def _seen_runs(found: Shown, old: Sequence[Line | None]) -> Iterator[tuple[int, int, list[Line]]]:
    """Stretches of a reading, seen and not seen in turn: start, end, and the lines if seen."""
    run: list[Line] = []
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


def _where(view: View, lines: Sequence[Line], first: int) -> tuple[str, list[int]] | None:
    """Where lines stand that are numbered from `first` now; None where in too many places."""
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
