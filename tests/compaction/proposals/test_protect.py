"""Protected blocks, what belongs together, and what happens to edits that break it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from compaction.context.blocks import Block
from compaction.context.edits import Edit
from compaction.context.groups import Groups, failure_key
from compaction.context.stubs import stand_in
from compaction.fold.fold import Arrival, State, advance, start
from compaction.policies.policy import Policy, Step
from compaction.proposals.plan import Means, Proposal, View
from compaction.proposals.protect import Guard
from compaction.proposals.strategy import Strategy
from compaction.strategies import STRATEGIES
from compaction.summaries.extract import extractive
from tests.build import Talk, rough


def _groups(blocks: Iterable[Block]) -> Groups:
    groups = Groups()
    for block in blocks:
        groups.add(block)
    return groups


def _talk() -> Talk:
    talk = Talk()
    talk.system("s")
    talk.user("go")
    talk.respond()
    talk.say("first")
    one, two = talk.call("Read", {"path": "a"}), talk.call("Read", {"path": "b"})
    talk.result(one, "A")
    talk.result(two, "B")
    talk.respond()
    talk.result(talk.call("LS", {}), "files")
    return talk


def test_cuts_fall_between_responses_messages_and_pairs() -> None:
    talk = _talk()
    assert _groups(talk.blocks).cuts == [0, 1, 2, 7]
    talk.say("same response, sent in another message", message=99)
    assert _groups(talk.blocks).cuts == [0, 1, 2, 7]
    late = talk.result(talk.blocks[3], "again")
    assert _groups(talk.blocks).cuts == [0, 1, 2]
    assert _groups(talk.blocks).companions([late]) == {2, 3, 4, 5, 10}
    assert _groups(talk.blocks).cut_at(8) == 2


def test_the_hot_cache() -> None:
    talk = _talk()
    assert Guard(_groups(talk.blocks)).hot == 7
    asked = talk.user("and?")
    assert Guard(_groups(talk.blocks)).hot == 7
    asked = talk.user("hello?")
    assert Guard(_groups(talk.blocks)).hot == asked.position
    chat = Talk()
    chat.user("hi")
    chat.respond()
    chat.say("hi")
    assert Guard(_groups(chat.blocks)).hot == 0


def test_thinking_may_be_replaced_once_its_turn_is_over() -> None:
    talk = Talk()
    talk.user("go")
    talk.respond()
    thought = talk.think("hm")
    for _ in range(2):
        talk.result(talk.call("LS", {}), "files")
        talk.respond()
    assert not Guard(_groups(talk.blocks)).may_replace(thought)
    talk.user("and the other?")
    talk.respond()
    talk.result(talk.call("LS", {}), "files")
    assert Guard(_groups(talk.blocks)).may_replace(thought)


def test_what_may_be_replaced_or_removed() -> None:
    talk = Talk()
    talk.system("s")
    talk.user("go", pinned=True)
    talk.respond()
    use = talk.call("Read", {"path": "a"})
    talk.result(use, "A", pinned=True)
    talk.respond()
    talk.say("free")
    talk.result(talk.call("LS", {}), "files")
    talk.respond()
    talk.result(talk.call("LS", {}), "hot")
    guard = Guard(_groups(talk.blocks))
    assert [guard.may_replace(b) for b in talk.blocks] == [False] * 4 + [True] * 3 + [False] * 2
    assert [guard.may_remove(b) for b in talk.blocks] == [False] * 4 + [True] * 3 + [False] * 2


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ({"command": "make test -k a"}, {"command": "cd /x && make test"}, True),
        ({"command": "make test"}, {"command": "make lint"}, False),
        ({"command": "npm run test"}, {"command": "npm run lint"}, False),
        ({"command": "npm run test -v"}, {"command": "npm run test"}, True),
        ({"cmd": ["bash", "-lc", "make test"]}, {"cmd": ["bash", "-lc", "make test -v"]}, True),
        ({"query": "a"}, {"query": "a"}, True),
        ({"query": "a"}, {"query": "b"}, False),
        ([1], [1], True),
    ],
)
def test_what_counts_as_the_same_thing_tried_again(one: object, two: object, same: bool) -> None:
    talk = Talk()
    keys = [failure_key(talk.call("Bash", given)) for given in (one, two)]  # type: ignore[arg-type]
    assert (keys[0] == keys[1]) is same


def _named_rogue(propose: Callable[[View, object], Proposal]) -> Strategy:
    return Strategy(
        name="rogue",
        order=100,
        title="Rogue",
        does="What it likes.",
        event="offload",
        propose=propose,
        parameters=dict,
    )


def _rogue(monkeypatch: pytest.MonkeyPatch, edits: list[Edit]) -> tuple[State, Talk]:
    """A state to which a strategy has proposed these edits at every one of five steps."""

    def propose(view: View, _: object) -> Proposal:
        return Proposal(tuple(edits), {"asked": view.mark.get("asked", 0) + 1})

    monkeypatch.setitem(STRATEGIES, "rogue", _named_rogue(propose))
    talk = _talk()
    policy = Policy("r", steps=(Step("rogue", {}),))
    state = start(policy, 1_000, Means(rough, extractive))
    for step in range(3, 8):
        fresh = tuple(talk.blocks) if step == 3 else ()
        state, revision = advance(state, Arrival(step, fresh))
        assert revision is None
    return state, talk


def _edit(*targets: str, replacement: Block | None = None) -> Edit:
    return Edit("rogue", targets, replacement, "because")


@pytest.mark.parametrize(
    ("targets", "reason"),
    [
        (["missing"], "missing is not in the context"),
        (["b3"], "thinking: resp1"),
        (["b3", "b5"], "a response is split"),
        (["b5"], "pair: call1: call without result"),
        (["b7"], "pair: call3: result without its call before it"),
        (["b8", "b7"], "targets are not in context order"),
        ([], "targets are not in context order"),
    ],
)
def test_what_would_break_a_context_is_refused(
    monkeypatch: pytest.MonkeyPatch, targets: list[str], reason: str
) -> None:
    state, talk = _rogue(monkeypatch, [_edit(*targets)])
    assert list(state.standing.values()) == talk.blocks
    assert state.total == sum(b.tokens for b in talk.blocks)
    if reason.startswith("thinking"):
        reason = "a response is split"
    assert reason in state.refusals[0].reason
    # The breaker: three refusals, then the strategy is asked no more, and its mark never moved.
    assert [refusal.step for refusal in state.refusals] == [3, 4, 5]
    assert state.marks == [{}]
    assert all(entry.to_step is None for entry in state.entries)


def test_replacements_at_the_wrong_place_or_twice_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    talk = _talk()
    stub = stand_in(talk.blocks[5], "short", 1, "rogue")
    state, _ = _rogue(monkeypatch, [_edit("b6", replacement=stub)])
    assert "is not at the position of its first target" in state.refusals[0].reason
    twice = [_edit("b5", replacement=stub), _edit("b5", replacement=stub)]
    state, _ = _rogue(monkeypatch, twice)
    assert "b5 is not in the context" in state.refusals[0].reason


def test_a_replacement_may_be_replaced_in_the_same_revision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    talk = _talk()
    stub = stand_in(talk.blocks[5], "short", 1, "rogue")
    again = stand_in(stub, "shorter", 1, "rogue")

    def propose(view: View, _: object) -> Proposal:
        edits = [_edit("b5", replacement=stub), _edit("rogue:b5", replacement=again)]
        return Proposal(tuple(edits) if view.step == 3 else (), view.mark)

    monkeypatch.setitem(STRATEGIES, "rogue", _named_rogue(propose))
    policy = Policy("r", steps=(Step("rogue", {}),))
    state = start(policy, 1_000, Means(rough, extractive))
    state, revision = advance(state, Arrival(3, tuple(talk.blocks)))
    assert revision is not None
    assert state.standing[5] == again
    assert [(e.from_step, e.to_step) for e in state.entries if e.block.position == 5] == [
        (3, 3), (3, 3), (3, None)]  # fmt: skip
