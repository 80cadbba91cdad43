"""What leaves once the window forces a cut, and what stays because it is used."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compaction.cache.economy import Rates
from compaction.context.blocks import Block, FileRef
from compaction.fold.fold import Arrival, State, advance, start
from compaction.policies.policy import Policy, Step
from compaction.proposals.plan import Means
from compaction.strategies.dedupe import Dedupe
from compaction.strategies.payback_settings import Payback
from compaction.strategies.window import Window
from compaction.summaries.extract import extractive
from tests.build import Talk, rough

NEVER = Payback(results=2, readings=500, done=500, inputs=500, patience=100.0, full=0.8)
"""Nothing but results of commands ripens."""

FILLER = "some line of a listing\n" * 150
ABOUT = "the tokenizer of src/parse_tree.py fails\n" * 84


def _folded(talk: Talk, parameters: Any, window: int) -> State:
    name = "payback" if isinstance(parameters, Payback) else "window"
    policy = parameters
    if not isinstance(policy, Policy):
        policy = Policy("p", steps=(Step(name, parameters),))
    state = start(policy, window, Means(rough, extractive, rates=Rates(known=True)))
    session = talk.session(window)
    for call in session.calls:
        blocks = tuple(b for b in session.blocks if b.born == call.step)
        advance(state, Arrival(call.step, blocks, call.step * 20_000, last=call.step * 20_000 - 1))
    return state


def _reads(about: int, count: int = 10) -> tuple[Talk, list[Block]]:
    """Readings of about 860 tokens each; one of them is about the task."""
    talk = Talk()
    talk.user("Repair the tokenizer in src/parse_tree.py")
    shown = []
    for number in range(count):
        talk.respond()
        path = f"f{number}.txt"
        use = talk.call("Read", {"file_path": path}, file=FileRef(path, "read"))
        shown.append(talk.result(use, ABOUT if number == about else FILLER))
    return talk, shown


def _gone(state: State, shown: list[Block]) -> list[int]:
    return [n for n, block in enumerate(shown) if state.standing[block.position] != block]


@pytest.mark.parametrize("about", [0, 3])
def test_a_full_window_takes_the_least_relevant_first(about: int) -> None:
    """8,000 of 10,000 tokens are full at the tenth reading; down to 5,000 five of them leave."""
    talk, shown = _reads(about)
    state = _folded(talk, replace(NEVER, relevant=0.5), 10_000)
    assert (
        _gone(state, shown) == [n for n in range(6) if n != about][:5][: len(_gone(state, shown))]
    )
    assert len(_gone(state, shown)) >= 4
    assert state.billed <= 5_000
    assert state.made[0].trigger == "window"


def test_off_only_what_is_ripe_leaves() -> None:
    talk, shown = _reads(0)
    assert not _folded(talk, NEVER, 10_000).made


def test_young_results_and_excluded_tools_stay() -> None:
    talk, shown = _reads(0)
    state = _folded(talk, replace(NEVER, relevant=0.01), 10_000)
    assert _gone(state, shown) == list(range(8)), "the newest steps stay"
    assert not _folded(talk, replace(NEVER, relevant=0.01, exclude=("Read",)), 10_000).made


def test_text_that_a_note_relies_on_stays() -> None:
    talk, shown = _reads(3, 9)
    talk.respond()
    use = talk.call("Read", {"file_path": "f0.txt"}, file=FileRef("f0.txt", "read"))
    talk.result(use, FILLER)
    talk.respond()
    talk.result(talk.call("Bash", {"command": "make"}), FILLER * 2)
    policy = Policy(
        "p", steps=(Step("dedupe", Dedupe()), Step("payback", replace(NEVER, relevant=0.01)))
    )
    state = _folded(talk, policy, 11_000)
    assert 0 not in _gone(state, shown)
    assert 1 in _gone(state, shown)


def test_nothing_leaves_if_it_frees_too_little() -> None:
    """About 4,200 tokens: more than a full window clears of what is ripe, less than a tenth."""
    talk, _ = _reads(0, 5)
    talk.user("please " * 30_000)
    talk.respond()
    state = _folded(talk, replace(NEVER, relevant=0.5), 60_000)
    assert not state.made


def test_the_window_keeps_what_is_relevant_verbatim_and_whole() -> None:
    talk, shown = _reads(4, 16)
    for share, stays in ((0.0, False), (0.4, True)):
        given = Window(primers=1, recents=2, trigger=0.75, target=0.5, relevant=share)
        state = _folded(talk, given, 16_000)
        assert state.made and not state.refusals
        assert (state.standing.get(shown[4].position) == shown[4]) is stays
        assert (shown[4].position - 1 in state.standing) is stays, "with its call"
        assert state.billed <= 12_000


def _looks(used: bool) -> tuple[Talk, Block]:
    """A listing of step 1; a name in it is used at step 4, two after the first that saw it."""
    talk = Talk()
    talk.user("go")
    talk.respond()
    shown = talk.result(talk.call("Bash", {"command": "make"}), f"wrote out_7.log\n{FILLER}")
    for number in range(4):
        talk.respond()
        name = "out_7.log" if used and number == 2 else "nothing"
        talk.result(talk.call("Bash", {"command": f"cat {name}"}), "ok")
    return talk, shown


@pytest.mark.parametrize(
    ("follow", "used", "stays"), [(0.0, True, 0), (0.9, True, 1), (0.9, False, 0)]
)
def test_what_was_used_stays_longer(follow: float, used: bool, stays: int) -> None:
    talk, shown = _looks(used)
    given = replace(NEVER, results=3, patience=0.0, follow=follow)
    state = _folded(talk, given, 200_000)
    assert (state.standing[shown.position] == shown) is bool(stays)


@pytest.mark.parametrize(("readings", "stays"), [(40, 20), (12, 11), (4, 8)])
def test_ages_follow_the_uses_within_bounds(readings: int, stays: int) -> None:
    """Nearly all names are used 11 steps after they were shown. Half the age and twice it are the
    bounds."""
    talk = Talk()
    talk.user("go")
    for number in range(40):
        talk.respond()
        given = {"command": f"cat out_{number - 12}.log"}
        talk.result(talk.call("Bash", given), f"wrote out_{number}.log")
    use = talk.call("Read", {"file_path": "notes"}, file=FileRef("notes", "read"))
    shown = talk.result(use, FILLER)
    for _ in range(30):
        talk.respond()
        talk.result(talk.call("Bash", {"command": "true"}), "ok")
    given_ages = replace(NEVER, readings=readings, patience=0.0, follow=0.9)
    state = _folded(talk, given_ages, 200_000)
    left = next(
        one.step for one in state.made if any(shown.id in edit.targets for edit in one.edits)
    )
    assert left - shown.born == stays
