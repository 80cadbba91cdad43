"""Needed-later recall: the four states, and what must hold for any session and any run."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.context.blocks import Block
from compaction.context.edits import Entry
from compaction.context.session import Call, Session
from compaction.facts.facts import FactIndex
from compaction.facts.recall import Recall, needed, recall


@dataclass
class Run:
    entries: list[Entry]


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
        replaces=target.id,
        refs=target.refs or (target.id,),
    )


def session(*blocks: Block) -> Session:
    steps = max((b.born for b in blocks), default=0)
    return Session(blocks, tuple(Call(step) for step in range(1, steps + 1)), "m", 1000)


def as_recorded(blocks: tuple[Block, ...]) -> Run:
    return Run([Entry(b, b.born) for b in blocks])


READ = block(0, 2, "see src/deep_file.py there")
LATER = block(1, 5, '{"path": "src/deep_file.py"}', tool=True)
SEEN = session(READ, LATER)
PLAIN = stub(1, READ, "[result: 12 tokens, ref r1]")
NAMING = stub(2, READ, "[result: names src/deep_file.py]")


def state(*entries: Entry) -> str:
    judged = recall(SEEN, Run(list(entries)))
    assert judged.needs == 1
    return "in_context" if judged.in_context else judged.worst[0].state


def test_a_need_is_of_the_step_that_wrote_the_input() -> None:
    assert [(step, fact) for step, fact, _ in needed(SEEN, FactIndex(SEEN.blocks))] == [
        (4, "src/deep_file.py")
    ]


def test_an_original_that_stands_is_in_place() -> None:
    assert state(Entry(READ, 2), Entry(LATER, 5)) == "in_context"
    assert state(Entry(READ, 2, 5), Entry(PLAIN, 5)) == "in_context"


def test_a_replacement_that_says_it_names() -> None:
    assert state(Entry(READ, 2, 4), Entry(NAMING, 4)) == "named"


def test_a_replacement_with_a_reference_makes_retrievable() -> None:
    assert state(Entry(READ, 2, 4), Entry(PLAIN, 4)) == "retrievable"


def test_a_reference_may_be_handed_on() -> None:
    summary = stub(3, PLAIN, "what happened so far, see r1")
    assert state(Entry(READ, 2, 3), Entry(PLAIN, 3, 4), Entry(summary, 4)) == "retrievable"


def test_what_left_without_a_reference_is_lost() -> None:
    assert state(Entry(READ, 2, 4)) == "lost"
    assert state(Entry(READ, 2, 3), Entry(PLAIN, 3, 4)) == "lost"
    silent = replace(stub(3, PLAIN, "what happened so far"), refs=())
    assert state(Entry(READ, 2, 3), Entry(PLAIN, 3, 4), Entry(silent, 4)) == "lost"


def test_what_an_encrypted_summary_may_hold_is_unknown() -> None:
    sealed = replace(block(2, 4, "{}"), type="other", kind="summary")
    judged = recall(SEEN, Run([Entry(READ, 2, 4), Entry(sealed, 4)]))
    assert (judged.needs, judged.unknown, judged.worst) == (0, 1, ())
    assert recall(SEEN, Run([Entry(READ, 2, 4), Entry(sealed, 4, 4)])).lost == 1


def test_what_came_back_is_in_place_again() -> None:
    assert state(Entry(READ, 2, 3), Entry(PLAIN, 3, 4), Entry(READ, 4)) == "in_context"


def test_what_comes_after_the_step_does_not_count() -> None:
    assert state(Entry(READ, 2, 3), Entry(PLAIN, 5)) == "lost"


def test_the_worst_needs_come_first() -> None:
    seen = block(3, 3, "other/deep_file.py")
    later = block(4, 5, '{"a": "other/deep_file.py", "b": "src/deep_file.py"}', tool=True)
    entries = [Entry(READ, 2, 3), Entry(PLAIN, 3), Entry(seen, 3, 4)]
    judged = recall(session(READ, seen, later), Run(entries))
    assert [(n.fact, n.state, n.block, n.step) for n in judged.worst] == [
        ("other/deep_file.py", "lost", "b3", 4),
        ("src/deep_file.py", "retrievable", "b0", 4),
    ]
    assert (judged.in_context, judged.named, judged.retrievable, judged.lost) == (0, 0, 0.5, 0.5)


def test_what_is_read_back_stands_for_some_steps() -> None:
    def use(number: int, born: int, *names: str) -> Block:
        return block(number, born, " ".join(names), tool=True)

    gone = [Entry(READ, 2, 3), Entry(PLAIN, 3)]

    def read_back(*later: Block) -> int:
        return recall(session(READ, *later), Run(gone)).read_back

    name = "src/deep_file.py"
    assert read_back() == 0
    assert read_back(use(1, 5, name)) == READ.tokens
    # Needed at S4, S8 and S9: the reading of S4 stands until S8.
    assert read_back(use(1, 5, name), use(2, 9, name)) == READ.tokens
    assert read_back(use(1, 5, name), use(2, 9, name), use(3, 10, name)) == 2 * READ.tokens


@pytest.mark.parametrize("kept", [PLAIN, NAMING, None])
def test_what_is_not_in_context_is_read_at_its_step(kept: Block | None) -> None:
    read = replace(READ, text="src/deep_file.py load_rows save_rows", tokens=40)
    entries = [Entry(read, 2, 3), *([Entry(kept, 3)] if kept is not None else [])]
    needs = [(5, "src/deep_file.py"), (8, "load_rows"), (10, "save_rows")]
    later = [block(at, born, name, tool=True) for at, (born, name) in enumerate(needs, 1)]
    found = recall(session(read, *later), Run(entries))
    assert (found.needs, found.in_context) == (3, 0)
    assert found.readings == ((4, 40), (9, 40)), "the reading of S4 stands until S8"


def test_of_what_holds_a_fact_the_newest_that_is_referred_to_is_read_back() -> None:
    longer = replace(block(3, 2, "src/deep_file.py and more"), tokens=99)
    entries = [Entry(READ, 2, 3), Entry(PLAIN, 3), Entry(longer, 2, 3)]
    later = block(4, 5, "src/deep_file.py", tool=True)
    judged = recall(session(READ, longer, later), Run(entries))
    assert (judged.retrievable, judged.read_back) == (1.0, READ.tokens)
    named = recall(session(READ, later), Run([Entry(READ, 2, 3), Entry(NAMING, 3)]))
    assert (named.named, named.read_back) == (1.0, 0)


def test_nothing_needed_is_nothing_lost() -> None:
    judged = recall(session(READ), Run([]))
    assert (judged.needs, judged.in_context, judged.lost, judged.worst) == (0, 1.0, 0.0, ())


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
def test_a_recorded_run_hides_nothing(recorded: Session) -> None:
    assert recall(recorded, as_recorded(recorded.blocks)).in_context == 1.0


@given(sessions(), st.data())
def test_shares_sum_to_one(recorded: Session, data: st.DataObject) -> None:
    entries = []
    for number, original in enumerate(recorded.blocks):
        kept = data.draw(st.none() | st.integers(0, 4))
        entries.append(Entry(original, original.born, kept and original.born + kept))
        if kept:
            by = stub(number, original, data.draw(WORDS)) if data.draw(st.booleans()) else None
            if by:
                entries.append(Entry(by, original.born + kept))
    judged = recall(recorded, Run(entries))
    total = judged.in_context + judged.named + judged.retrievable + judged.lost
    assert total == pytest.approx(1)
    assert judged.needs == recall(recorded, as_recorded(recorded.blocks)).needs


@given(sessions(), st.integers(0, 14))
def test_recall_of_the_beginning_does_not_change_with_the_rest(recorded: Session, cut: int) -> None:
    """What a step needed is settled when it happens: only noise (common facts) is added later."""
    index = FactIndex(recorded.blocks)
    whole = {(s, f) for s, f, _ in needed(recorded, index)}
    first = replace(recorded, blocks=tuple(b for b in recorded.blocks if b.born <= cut))
    part = {(s, f) for s, f, _ in needed(first, FactIndex(first.blocks))}
    assert {n for n in whole if n[0] < cut} <= part


def test_a_long_session_keeps_every_need_in_context_as_recorded() -> None:
    blocks = []
    for i in range(3000):
        blocks.append(block(2 * i, i + 1, f"dir/file_{i}.py " * 20 + "words " * 200))
        blocks.append(block(2 * i + 1, i + 1, f'{{"p":"dir/file_{i - 5}.py"}}', tool=True))
    recorded = session(*blocks)
    judged: Recall = recall(recorded, as_recorded(recorded.blocks))
    assert judged.needs > 2900
    assert judged.in_context == 1.0
