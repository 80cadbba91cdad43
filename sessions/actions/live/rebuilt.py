"""Rebuild a fold from stored rows, from scratch or with others' writes."""

from __future__ import annotations

from compaction.context.blocks import Block
from compaction.fold.fold import State, resume
from sessions.models import Run, Session
from sessions.models.live.revised import revisions_of
from sessions.models.record.values import blocks_of


def take_up(session: Session, run: Run, state: State, taken: int, head: int) -> list[Block]:
    """Load the originals from number `taken` on and the revisions after `head` of a managed run
    into the state; return all new blocks."""
    new: list[Block] = []
    if run.taken > taken:
        new = list(blocks_of(session, with_text=True, start=taken, end=run.taken))
    steps, left_out = _arrivals(run, taken)
    arrived = [(steps.get(b.position, b.born), b) for b in new if b.position not in left_out]
    originals = state.originals | {block.position: block for block in new}
    held = {entry.block.id: entry.block for entry in state.entries if entry.block.replaces}
    revisions = revisions_of(session, run, originals, held, after=head)
    resume(state, arrived, revisions, run.fold)
    edits = (edit.replacement for revision in revisions for edit in revision.edits)
    return [*new, *(block for block in edits if block is not None)]


def _arrivals(run: Run, taken: int) -> tuple[dict[int, int], set[int]]:
    """Steps of originals that arrived late, and positions of excluded ones."""
    rows = run.entries.filter(opened_by=None, block__isnull=False, position__gte=taken)
    late: dict[int, int] = {}
    left_out: set[int] = set()
    for place, step, end, closed in rows.values_list(
        "position", "from_step", "to_step", "closed_by"
    ):
        late[place] = step
        if end is not None and closed is None:
            left_out.add(place)
    return late, left_out
