"""Needed-later recall: the four states, and what must hold for any session and any run."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.context import Block
from compaction.edits import Edit, Entry, Revision
from compaction.facts import FactIndex
from compaction.recall import Recall, needed, recall
from compaction.session import Call, Session


@dataclass
class Run:
    entries: list[Entry]
    revisions: tuple[Revision, ...] = ()


def block(number: int, born: int, text: str, *, tool: bool = False) -> Block:
    return Block(
        id=f"b{number}",
        position=number,
        message=number,
        born=born,
        turn=1,
        role="assistant" if tool else "tool",
        type="tool_use" if tool else "tool_result",
        kind="assistant" if tool else "result",
        tokens=10,
        chars=len(text),
        sha="",
        text=text,
    )


def stub(number: int, target: Block, text: str) -> Block:
    return replace(
        target,
        id=f"s{number}",
        text=text,
        type="tool_result",
        replaces=target.replaces or target.id,
    )


def session(*blocks: Block) -> Session:
    steps = max((b.born for b in blocks), default=0)
    return Session(blocks, tuple(Call(step) for step in range(1, steps + 1)), "m", 1000)


def unmanaged(blocks: tuple[Block, ...]) -> Run:
    return Run([Entry(b, b.born) for b in blocks])


def revision(number: int, step: int, target: Block, by: Block | None) -> Revision:
    return Revision(number, step, "batch", (Edit("offload", (target.id,), by, ""),), 0, 0)


READ = block(0, 2, "see src/deep_file.py there")
LATER = block(1, 5, '{"path": "src/deep_file.py"}', tool=True)
SEEN = session(READ, LATER)
PLAIN = stub(1, READ, "[result: 12 tokens, ref r1]")
NAMING = stub(2, READ, "[result: names src/deep_file.py]")


def state(entries: list[Entry], *revisions: Revision) -> str:
    judged = recall(SEEN, Run(entries, revisions))
    assert judged.needs == 1
    return "in_place" if judged.in_place else judged.worst[0].state


def test_a_need_is_of_the_step_that_wrote_the_input() -> None:
    assert [(step, fact) for step, fact, _ in needed(SEEN, FactIndex(SEEN.blocks))] == [
        (4, "src/deep_file.py")
    ]


def test_an_original_that_stands_is_in_place() -> None:
    assert state([Entry(READ, 2), Entry(LATER, 5)]) == "in_place"
    assert state([Entry(READ, 2, 5)], revision(1, 5, READ, PLAIN)) == "in_place"


def test_a_replacement_that_says_it_names() -> None:
    entries = [Entry(READ, 2, 4), Entry(NAMING, 4)]
    assert state(entries, revision(1, 4, READ, NAMING)) == "named"


def test_a_replacement_of_the_block_refers() -> None:
    entries = [Entry(READ, 2, 4), Entry(PLAIN, 4)]
    assert state(entries, revision(1, 4, READ, PLAIN)) == "retrievable"


def test_a_replacement_of_a_replacement_refers_too() -> None:
    summary = stub(3, PLAIN, "what happened so far")
    entries = [Entry(READ, 2, 3), Entry(PLAIN, 3, 4), Entry(summary, 4)]
    steps = (revision(1, 3, READ, PLAIN), revision(2, 4, PLAIN, summary))
    assert state(entries, *steps) == "retrievable"


def test_what_left_without_a_trace_is_lost() -> None:
    assert state([Entry(READ, 2, 4)], revision(1, 4, READ, None)) == "lost"
    entries = [Entry(READ, 2, 3), Entry(PLAIN, 3, 4)]
    steps = (revision(1, 3, READ, PLAIN), revision(2, 4, PLAIN, None))
    assert state(entries, *steps) == "lost"


def test_what_came_back_is_in_place_again() -> None:
    back = revision(2, 4, PLAIN, READ)
    entries = [Entry(READ, 2, 3), Entry(PLAIN, 3, 4), Entry(READ, 4)]
    assert state(entries, revision(1, 3, READ, PLAIN), back) == "in_place"


def test_a_revision_after_the_step_does_not_count() -> None:
    entries = [Entry(READ, 2, 3), Entry(PLAIN, 5)]
    assert state(entries, revision(1, 5, READ, PLAIN)) == "lost"


def test_nothing_needed_is_nothing_lost() -> None:
    judged = recall(session(READ), Run([]))
    assert (judged.needs, judged.in_place, judged.lost, judged.worst) == (0, 1.0, 0.0, ())


WORDS = st.sampled_from(["src/a_file.py", "load_rows", "80801", "plain", "Makefile2"])


@st.composite
def sessions(draw: st.DrawFn) -> Session:
    blocks, born = [], 1
    for number in range(draw(st.integers(0, 14))):
        born += draw(st.integers(0, 2))
        text = " ".join(draw(st.lists(WORDS, max_size=3)))
        blocks.append(block(number, born, text, tool=draw(st.booleans())))
    return session(*blocks)


@given(sessions())
def test_an_unmanaged_run_hides_nothing(recorded: Session) -> None:
    assert recall(recorded, unmanaged(recorded.blocks)).in_place == 1.0


@given(sessions(), st.data())
def test_shares_sum_to_one(recorded: Session, data: st.DataObject) -> None:
    entries, revisions = [], []
    for number, original in enumerate(recorded.blocks):
        kept = data.draw(st.none() | st.integers(0, 4))
        entries.append(Entry(original, original.born, kept and original.born + kept))
        if kept:
            by = stub(number, original, data.draw(WORDS)) if data.draw(st.booleans()) else None
            revisions.append(revision(number + 1, original.born + kept, original, by))
            if by:
                entries.append(Entry(by, original.born + kept))
    judged = recall(recorded, Run(entries, tuple(revisions)))
    total = judged.in_place + judged.named + judged.retrievable + judged.lost
    assert total == pytest.approx(1)
    assert judged.needs == recall(recorded, unmanaged(recorded.blocks)).needs


@given(sessions(), st.integers(0, 14))
def test_recall_of_the_beginning_does_not_change_with_the_rest(recorded: Session, cut: int) -> None:
    """What a step needed is settled when it happens: only noise (common facts) is added later."""
    index = FactIndex(recorded.blocks)
    whole = {(s, f) for s, f, _ in needed(recorded, index)}
    first = replace(recorded, blocks=tuple(b for b in recorded.blocks if b.born <= cut))
    part = {(s, f) for s, f, _ in needed(first, FactIndex(first.blocks))}
    assert {n for n in whole if n[0] < cut} <= part


def test_work_is_linear() -> None:
    blocks = []
    for i in range(3000):
        blocks.append(block(2 * i, i + 1, f"dir/file_{i}.py " * 20 + "words " * 200))
        blocks.append(block(2 * i + 1, i + 1, f'{{"p":"dir/file_{i - 5}.py"}}', tool=True))
    recorded = session(*blocks)
    began = time.perf_counter()
    judged: Recall = recall(recorded, unmanaged(recorded.blocks))
    assert judged.needs > 2900
    assert time.perf_counter() - began < 5
