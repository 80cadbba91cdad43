"""Plain policies to compare with: everything, the last blocks, tool input and output by age.

They use intervals only and are independent of the engine, so that they check it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from compaction.context.blocks import KINDS, Block
from compaction.context.edits import Edit, Entry, Revision
from compaction.context.session import Call, Session
from compaction.facts.facts import facts_of
from compaction.policies.policy import Policy
from compaction.simulation.simulate import Run, StepTokens

Count = Callable[[str], int]
Make = Callable[[Session, Count], Run]

BATCH = 5


def everything(session: Session, count: Count) -> Run:
    """Keep the whole session, as recorded."""
    del count
    return _run(session, "everything", [Entry(block, block.born) for block in session.blocks], ())


def window(size: int) -> Make:
    """Keep the last blocks with text, and nothing else."""

    def make(session: Session, count: Count) -> Run:
        del count
        blocks = [block for block in session.blocks if block.type != "thinking"]
        entries, edits = [], {}
        for block, later in zip(blocks, [*blocks[size:], *[None] * size], strict=False):
            entries.append(Entry(block, block.born, later.born if later else None))
            if later is not None:
                edits.setdefault(later.born, []).append(Edit("window", (block.id,), None, ""))
        revisions = tuple(
            Revision(number, step, "window", tuple(made), 0, 0)
            for number, (step, made) in enumerate(edits.items(), 1)
        )
        return _run(session, f"window {size}", entries, revisions)

    return make


def offload(age: int, names: int) -> Make:
    """Tool input and output older than `age` steps becomes a stub, in batches of five steps.

    The stub lists the block's `names` rarest facts, by the blocks seen until then.
    """

    def make(session: Session, count: Count) -> Run:
        entries = [Entry(block, block.born) for block in session.blocks]
        stubs: list[Entry] = []
        revisions: list[Revision] = []
        held: Counter[str] = Counter()
        arrived = gone = 0
        last = 1
        for call in session.calls:
            while arrived < len(entries) and entries[arrived].block.born <= call.step:
                held.update(facts_of(entries[arrived].block) if names else ())
                arrived += 1
            ripe = call.step - age
            if ripe - last < BATCH:
                continue
            last, edits, opened = ripe, [], []
            while gone < arrived and entries[gone].block.born <= ripe:
                entry = entries[gone]
                gone += 1
                stub = _stub(entry.block, held, names, count)
                if stub is not None:
                    entry.to_step = call.step
                    opened.append(Entry(stub, call.step, opened_by=len(revisions) + 1))
                    edits.append(Edit("offload", (entry.block.id,), stub, ""))
            before = sum(entry.block.tokens for entry in entries[:arrived] if _stands(entry, call))
            now = before - sum(e.block.tokens for e in entries[:gone] if e.to_step == call.step)
            stubs.extend(opened)
            revisions.append(
                Revision(
                    number=len(revisions) + 1,
                    step=call.step,
                    trigger="batch",
                    edits=tuple(edits),
                    tokens_before=before,
                    tokens_after=now + sum(entry.block.tokens for entry in opened),
                )
            )
        return _run(session, f"offload {age}", [*entries, *stubs], tuple(revisions))

    return make


def _stands(entry: Entry, call: Call) -> bool:
    """Return whether an original was in the context when this call's revision was made."""
    return entry.to_step is None or entry.to_step >= call.step


def _stub(block: Block, held: Counter[str], names: int, count: Count) -> Block | None:
    if block.type not in ("tool_use", "tool_result"):
        return None
    text = f"[{block.tool} {block.type[5:]}, {block.tokens} tokens, ref {block.id}]"
    if names:
        rarest = sorted(facts_of(block), key=lambda fact: (held[fact], fact))[:names]
        text = f"{text[:-1]}: {' '.join(rarest)}]"
    tokens = count(text)
    if tokens >= block.tokens:
        return None
    return replace(
        block,
        id=f"stub:{block.id}",
        type="tool_result",
        text=text,
        tokens=tokens,
        chars=len(text),
        replaces=block.id,
        refs=(block.id,),
    )


def _run(session: Session, name: str, entries: list[Entry], revisions: tuple[Revision, ...]) -> Run:
    """Build every step from scratch: slow and simple, for sessions of some hundred steps."""
    by_step = {revision.step: revision.number for revision in revisions}
    steps: list[StepTokens] = []
    before: list[Block] = []
    for call in session.calls:
        now = sorted(
            (
                entry.block
                for entry in entries
                if entry.from_step <= call.step and call.step < (entry.to_step or call.step + 1)
            ),
            key=lambda block: block.position,
        )
        same = 0
        while same < min(len(before), len(now)) and before[same] is now[same]:
            same += 1
        stub = max((place for place, block in enumerate(now, 1) if block.replaces), default=0)
        steps.append(
            StepTokens(
                step=call.step,
                at=call.at,
                total=sum(block.tokens for block in now),
                unchanged_prefix=sum(block.tokens for block in now[:same]),
                frontier=sum(block.tokens for block in now[:stub]),
                by_kind=(0,) * len(KINDS),
                revision=by_step.get(call.step),
            )
        )
        before = now
    return Run(Policy(name), tuple(steps), tuple(entries), revisions, (), session.hidden)
