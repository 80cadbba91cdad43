"""A stored run as an engine value: the contexts that a session really had."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from heapq import heappop, heappush

from compaction.cache.prefix import PrefixSums
from compaction.context import edits
from compaction.context.blocks import Block as BlockValue
from compaction.context.session import Call
from compaction.context.wire import decode, text_of
from compaction.policies.presets import PRESETS
from compaction.simulation.simulate import Run as RunValue
from compaction.simulation.simulate import StepTokens
from sessions.models.record.model_calls import calls_of
from sessions.models.record.revisions import Edit, Entry, Run
from sessions.models.record.sessions import Session
from sessions.models.record.values import blocks_of, contents


def lived_run(session: Session, run: Run) -> RunValue:
    """Build the contexts of a recorded or managed run in the form of a simulation, so that both are
    priced by one set of rules.

    Tokens are in the session's counting; texts are omitted, except of summaries. O(n log n) in
    entries and steps.
    """
    entries = _entries(session, run)
    revisions = tuple(
        edits.Revision(number, step, trigger, (), 0, 0)  # type: ignore[arg-type]
        for number, step, trigger in _revisions(run)
    )
    by_step = {revision.step: revision.number for revision in revisions}
    steps = recorded_steps(entries, calls_of(session), by_step)
    return RunValue(PRESETS["passthrough"], steps, entries, revisions, (), session.hidden_tokens)


def _revisions(run: Run) -> Iterator[tuple[int, int, str]]:
    """Number, step and trigger of each revision: `clear` for those of a policy that wrote no
    summary."""
    compacted = set(
        Edit.objects.filter(revision__run=run, strategy="compact").values_list(
            "revision", flat=True
        )
    )
    by_policy = run.origin == Run.Origin.MANAGED
    for row in run.revisions.order_by("number"):
        clears = by_policy and row.pk not in compacted
        yield row.number, row.step, "clear" if clears else row.trigger


def _entries(session: Session, run: Run) -> tuple[edits.Entry, ...]:
    rows = run.entries.select_related("closed_by__revision", "opened_by__revision", "replacement")
    ended = {row.position: row for row in rows if row.block_id is not None}
    replaced = [row for row in rows if row.replacement is not None]
    found: list[edits.Entry] = []
    originals: dict[int, BlockValue] = {}
    for block in blocks_of(session, with_text=lambda row: row.kind == "summary"):
        originals[block.position] = block
        row = ended.get(block.position)
        found.append(
            edits.Entry(
                block,
                row.from_step if row else block.born,
                row.to_step if row else None,
                closed_by=row.closed_by.revision.number if row and row.closed_by else None,
            )
        )
    for row in replaced:
        original = originals[row.position]
        assert row.replacement is not None
        block = replace(
            original,
            id=f"p{row.replacement.pk}",
            tokens=session.scaled(row.replacement.tokens),
            replaces=original.id,
        )
        opened = row.opened_by.revision.number if row.opened_by else None
        found.append(edits.Entry(block, row.from_step, row.to_step, opened_by=opened))
    return tuple(sorted(found, key=lambda entry: (entry.block.position, entry.from_step)))


def recorded_steps(
    entries: tuple[edits.Entry, ...], calls: tuple[Call, ...], revisions: dict[int, int]
) -> tuple[StepTokens, ...]:
    """Token figures of each call's context, from the lifespans of its entries; `revisions` maps
    each revision's first step to its number."""
    positions = sorted({entry.block.position for entry in entries})
    places = {position: place for place, position in enumerate(positions)}
    sums = PrefixSums()
    for _ in positions:
        sums.append(0)
    opens: dict[int, list[edits.Entry]] = {}
    closes: dict[int, list[edits.Entry]] = {}
    for entry in entries:
        if entry.to_step is None or entry.to_step > entry.from_step:
            opens.setdefault(entry.from_step, []).append(entry)
            if entry.to_step is not None:
                closes.setdefault(entry.to_step, []).append(entry)
    made: list[StepTokens] = []
    replaced: list[int] = []
    standing: set[int] = set()
    for call in calls:
        leaving = closes.get(call.step, [])
        first = min((places[entry.block.position] for entry in leaving), default=len(positions))
        unchanged = sums.before(first)
        for entry in leaving:
            place = places[entry.block.position]
            sums.add(place, -entry.block.tokens)
            standing.discard(place)
        for entry in opens.get(call.step, []):
            place = places[entry.block.position]
            sums.add(place, entry.block.tokens)
            if entry.opened_by is not None:
                standing.add(place)
                heappush(replaced, -place)
        while replaced and -replaced[0] not in standing:
            heappop(replaced)
        frontier = sums.before(1 - replaced[0]) if replaced else 0
        total = sums.before(len(positions))
        made.append(
            StepTokens(call.step, call.at, total, unchanged, frontier, (), revisions.get(call.step))
        )
    return tuple(made)


def lived_context(session: Session, run: Run, revision: int, seq: int) -> list[BlockValue]:
    """The blocks of the recorded context after a revision, from messages up to `seq`, in order."""
    rows = run.entries.filter(opened_by__revision__number__lte=revision) | run.entries.filter(
        opened_by=None
    )
    made: dict[int, Entry] = {}
    left: set[int] = set()
    for row in rows.select_related("replacement", "closed_by__revision"):
        closed = row.closed_by is not None and row.closed_by.revision.number <= revision
        if row.block_id is None and not closed:
            made[row.position] = row
        elif row.block_id is not None and closed:
            left.add(row.position)
    data = contents(session, [row.replacement.sha for row in made.values() if row.replacement])
    standing = []
    for block in blocks_of(session, with_text=True):
        if block.message > seq:
            break
        if block.position in made:
            standing.append(_replaced(session, block, made[block.position], data))
        elif block.position not in left:
            standing.append(block)
    return standing


def _replaced(
    session: Session, original: BlockValue, entry: Entry, data: dict[str, bytes]
) -> BlockValue:
    row = entry.replacement
    assert row is not None
    return replace(
        original,
        id=f"p{row.pk}",
        tokens=session.scaled(row.tokens),
        chars=row.chars,
        sha=row.sha,
        text=text_of(decode(data[row.sha])),
        replaces=original.id,
    )
