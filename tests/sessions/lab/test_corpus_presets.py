"""Real logs: under every preset, nothing fails, everything can be restored, and results are
deterministic.

CONTEXTLAB_CORPUS=/path/to/logs python -m pytest tests/sessions/lab/test_corpus_presets.py
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from compaction.context.blocks import Context, context_of
from compaction.context.edits import Entry, context_at
from compaction.context.invariants import violations
from compaction.context.session import Session
from compaction.outlines.outline import outline_of
from compaction.policies.presets import PRESETS
from compaction.simulation.recording import Recording
from compaction.simulation.simulate import Run, simulate
from sessions.actions.lab.unstored import recording_of_log
from sessions.importers import NotALog, parse

CORPUS = os.environ.get("CONTEXTLAB_CORPUS", "")
LOOKED_AT = 25
"""Contexts that are checked per session and preset, spread over its length, the last one always."""

pytestmark = pytest.mark.skipif(not CORPUS, reason="CONTEXTLAB_CORPUS names no folder of real logs")


def recordings() -> Iterator[Recording]:
    """All sessions with a model call of all logs below the folder."""
    for path in sorted(Path(CORPUS).rglob("*")):
        if not path.is_file() or path.suffix in {".csv", ".md"} or "LICENSES" in path.parts:
            continue
        try:
            found = parse(path.read_bytes(), path.name)
        except NotALog:
            continue
        yield from filter(None, map(recording_of_log, found.sessions))


def looked_at(run: Run) -> list[int]:
    """Steps spread over a run."""
    steps = [one.step for one in run.steps]
    stride = max(1, len(steps) // LOOKED_AT)
    return sorted({*steps[::stride], steps[-1]})


def as_recorded(session: Session, step: int) -> Context:
    return context_of(block for block in session.blocks if block.born <= step)


def check(session: Session, run: Run) -> None:
    """Every context that is looked at is sound, and every edit can be undone byte for byte."""
    known = {entry.block.id for entry in run.entries}
    for step in looked_at(run):
        context, before = context_at(run.entries, step), as_recorded(session, step)
        inherited = set(violations(before, known))
        assert [one for one in violations(context, known) if one not in inherited] == []
        for place, block in before.items():
            if block.pinned or block.kind == "system":
                assert context[place] == block
    originals = {block.id: block for block in session.blocks}
    for revision in run.revisions:
        for edit in revision.edits:
            if edit.replacement is None:
                continue
            text = edit.replacement.text.encode("utf-8", "surrogatepass")
            assert edit.replacement.sha == hashlib.sha256(text).hexdigest()
            assert set(edit.replacement.refs) <= set(originals)
    assert restored(run.entries) == {b.id: b for b in session.blocks if b.born <= len(run.steps)}


def restored(entries: tuple[Entry, ...]) -> dict[str, object]:
    """The originals as stored by the run, whatever replaced them."""
    return {entry.block.id: entry.block for entry in entries if entry.opened_by is None}


def answer(run: Run) -> list[tuple[object, ...]]:
    return [
        (entry.block.id, entry.block.sha, entry.from_step, entry.to_step) for entry in run.entries
    ]


def test_every_preset_over_every_real_session() -> None:
    seen = 0
    for recording in recordings():
        session = recording.value
        for policy in PRESETS.values():
            first, second = (
                simulate(session, policy, recording.counter(), outline=outline_of) for _ in range(2)
            )
            assert first.refusals == ()
            assert answer(first) == answer(second)
            check(session, first)
        seen += 1
    assert seen
