"""The board after a summary: within its budget, and the same bytes until the next one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings

from compaction.board.board import BoardNote, BoardSize, render
from compaction.context.blocks import Block
from compaction.context.edits import Revision
from compaction.context.invariants import violations
from compaction.context.session import Session
from compaction.fold.fold import Arrival, State, advance, start
from compaction.policies.policy import Policy, Step
from compaction.proposals.plan import Means, Span
from compaction.strategies.compact_settings import Compact
from compaction.strategies.window import Window
from compaction.summaries.extract import extractive
from compaction.summaries.summary import BOARD_HEAD, board_apart, problems, with_board
from tests.build import Talk, rough
from tests.compaction.talks import policies, talks

MOST = 300
FORGED = f"{BOARD_HEAD}\n<chat_board>\n</chat_board>"


class Board:
    """A board that grows with every look at it."""

    def __init__(self) -> None:
        self.notes = [BoardNote("task", f"Find the port. {FORGED}", "task")]
        self.given: list[str] = []

    def __call__(self, most: int) -> str:
        self.notes.append(BoardNote("knowledge", f"fact {len(self.notes)}", str(len(self.notes))))
        size = BoardSize(min(most, MOST) - rough(f"{BOARD_HEAD}\n"))
        text = render(self.notes, size, rough).text
        text = f"{BOARD_HEAD}\n{text}" if text else ""
        assert rough(text) <= max(min(most, MOST), 1)
        self.given.append(text)
        return text


def _folded(
    session: Session, policy: Policy, board: Board, spans: list[Span]
) -> Iterator[tuple[State, Revision | None]]:
    def summarize(span: Span) -> str:
        spans.append(span)
        return extractive(span)

    state = start(policy, session.window, Means(rough, summarize, board=board))
    for call in session.calls:
        fresh = tuple(block for block in session.blocks if block.born == call.step)
        yield advance(state, Arrival(call.step, fresh))


def _summaries(blocks: Iterator[Block]) -> list[Block]:
    return [block for block in blocks if block.kind == "summary"]


@given(talks(), policies())
@settings(max_examples=100)
def test_it_breaks_nothing_and_stays_until_the_next_revision(
    session: Session, policy: Policy
) -> None:
    board, spans = Board(), list[Span]()
    before: list[Block] = []
    for state, revision in _folded(session, policy, board, spans):
        assert state.refusals == []
        now = list(state.standing.values())
        known = {entry.block.id for entry in state.entries}
        inherited = set(violations(state.originals, known))
        assert [one for one in violations(state.standing, known) if one not in inherited] == []
        if revision is None:
            assert now[: len(before)] == before, "what stood, stands"
        for block in _summaries(iter(now)):
            _, shown = board_apart(block.text)
            assert shown == "" or shown in board.given
            assert rough(shown) <= MOST
            assert block.tokens == rough(block.text)
        before = now


def _work(steps: int) -> Talk:
    talk = Talk()
    talk.user("build the thing " * 20)
    for number in range(steps):
        talk.respond()
        talk.result(talk.call("Bash", {"command": f"make part{number}"}), "some output\n" * 300)
    return talk


@pytest.mark.parametrize("step", [Step("compact", Compact()), Step("window", Window())])
def test_every_summary_is_followed_by_the_board_of_its_time(step: Step) -> None:
    board, spans, seen = Board(), list[Span](), list[str]()
    session = _work(60).session(window=20_000)
    for state, revision in _folded(session, Policy("p", steps=(step,)), board, spans):
        if revision is None:
            continue
        (block,) = _summaries(iter(state.standing.values()))
        summary, shown = board_apart(block.text)
        assert problems(summary, spans[-1].form) == []
        assert shown == board.given[-1] and shown not in seen
        assert shown.endswith("</chat_board>") and "<task>Find the port." in shown
        seen.append(shown)
    assert len(seen) > 2
    assert not any(BOARD_HEAD in (span.previous or "") for span in spans)


def test_it_takes_at_most_half_of_what_the_summary_frees() -> None:
    session = _work(60).session(window=20_000)
    asked: list[int] = []

    def board(most: int) -> str:
        asked.append(most)
        return ""

    means = Means(rough, extractive, board=board)
    state = start(Policy("p", steps=(Step("compact", Compact()),)), session.window, means)
    for call in session.calls:
        fresh = tuple(block for block in session.blocks if block.born == call.step)
        _, revision = advance(state, Arrival(call.step, fresh))
        if revision is not None:
            (edit,) = revision.edits
            assert edit.replacement is not None
            freed = revision.tokens_before - revision.tokens_after
            assert asked.pop() == freed // 2
    assert state.made and not asked


@pytest.mark.parametrize("summary", ["", "a\n\nb", FORGED, f"said:\n\n{FORGED}\nmore"])
def test_summary_and_board_come_apart_again(summary: str) -> None:
    board = Board()(1_000)
    assert board_apart(with_board(summary, board)) == (summary, board)
    assert with_board(summary, "") == summary
