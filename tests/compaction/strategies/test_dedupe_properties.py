"""File dedupe, whatever happens to a file: nothing is called seen that is not there."""

from __future__ import annotations

import json
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.context.blocks import Block
from compaction.context.edits import Edit, context_at
from compaction.context.session import Session
from compaction.fold.fold import Arrival, advance, start
from compaction.policies.policy import Policy, Step
from compaction.proposals.plan import Means
from compaction.seen.shown import shown
from compaction.seen.sights import Sights
from compaction.simulation.simulate import Run, simulate
from compaction.strategies.compact_settings import Compact
from compaction.strategies.dedupe import Dedupe
from compaction.strategies.offload import Offload
from compaction.summaries.extract import extractive
from tests.build import rough
from tests.compaction.strategies.test_dedupe import EditedFile


def _game(data: bytes) -> Session:
    """A file that agent and others change between readings; every choice is a byte."""
    work = EditedFile()
    dice = iter(data)
    for choice in dice:
        one, two = next(dice, 0), next(dice, 0)
        size = len(work.lines)
        if choice % 8 < 3:
            work.read(*(sorted((1 + one % size, 1 + two % size)) if choice % 2 else ()))
        elif choice % 8 == 3:
            work.edit(work.lines[one % size], f"edited {two}\n" * (two % 3) + "to this")
        elif choice % 8 == 4:
            work.lines[one % size : one % size + two % 4] = [f"outside {two}", "}"][: two % 3]
            work.lines = work.lines or ["rest"]
        elif choice % 8 == 5:
            work.wait(1 + one % 3)
        elif choice % 8 == 6:
            work.edit(work.lines[one % size], "never", error=True)
        else:
            work.user("next " * (two % 90))
    return work.session(window=6_000)


_STEPS = [
    Step("offload", Offload(age=2, batch=2)),
    Step("offload", Offload(age=0, batch=1, inputs=False)),
    Step("compact", Compact(trigger=0.4, summary_tokens=200)),
]


def _plain(block: Block) -> set[str]:
    """Every line that someone who looks at a block can read in it."""
    if block.type == "tool_use":
        texts = [text for text in json.loads(block.text).values() if isinstance(text, str)]
        return {line for text in texts for line in text.split("\n")}
    rows = block.text.split("\n")
    return {re.sub(r"^\s*\d+→", "", row) for row in rows} | {row[1:] for row in rows}


def _check(session: Session, run: Run, edit: Edit, step: int) -> None:
    """All that a note leaves out stands elsewhere in the context of its first step."""
    stub = edit.replacement
    assert stub is not None
    original = next(block for block in session.blocks if block.id == edit.targets[0])
    context = context_at(run.entries, step)
    if context.get(stub.position) != stub:
        return  # with an age of 0, and people talking on, it has left again at once
    origin = {block.replaces or block.id: block for block in context.values()}
    found = shown(original.text, original.file)
    assert found is not None
    rests = [origin[name] for name in stub.refs[1:]]
    assert rests
    readable = _plain(stub).union(*map(_plain, rests))
    assert set(found.lines) <= readable
    assert stub.tokens < original.tokens


@given(st.binary(min_size=9, max_size=240), st.lists(st.sampled_from(_STEPS), max_size=2))
@settings(max_examples=250)
def test_nothing_is_called_seen_that_cannot_be_read(data: bytes, others: list[Step]) -> None:
    session = _game(data)
    policy = Policy("d", steps=(Step("dedupe", Dedupe(minimum=1, share=1.0)), *others))
    run = simulate(session, policy, rough)
    assert run.refusals == ()
    summed = any(step.strategy == "compact" for step in others)
    for revision in run.revisions:
        for edit in revision.edits:
            if edit.strategy == "dedupe":
                born = next(b.born for b in session.blocks if b.id == edit.targets[0])
                assert revision.step == born
                # A summary made at the very step may take away what a note rests on.
                if not summed:
                    _check(session, run, edit, revision.step)


@given(st.binary(min_size=9, max_size=240), st.lists(st.sampled_from(_STEPS), max_size=2))
@settings(max_examples=60)
def test_sights_can_be_rebuilt_at_any_step(data: bytes, others: list[Step]) -> None:
    session = _game(data)
    policy = Policy("d", steps=(Step("dedupe", Dedupe(minimum=1, share=1.0)), *others))
    state = start(policy, session.window, Means(rough, extractive))
    made = []
    for call in session.calls:
        fresh = tuple(block for block in session.blocks if block.born == call.step)
        state.sights = Sights()
        for place in state.arrivals:
            state.sights.add(state.originals[place])
        state, revision = advance(state, Arrival(call.step, fresh))
        made += [revision] if revision is not None else []
    assert tuple(made) == simulate(session, policy, rough).revisions
