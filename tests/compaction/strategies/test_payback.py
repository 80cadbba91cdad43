"""Payback: when ripe blocks leave and from where, and the revision's reason."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.cache.economy import Objective, Rates
from compaction.context.edits import Revision
from compaction.context.session import Session
from compaction.fold.fold import Arrival, State, advance, start
from compaction.fold.on_request import undo
from compaction.policies.policy import Policy, Step
from compaction.policies.presets import PRESETS
from compaction.proposals.plan import Means
from compaction.seen.ripening import Ages, Ripening
from compaction.simulation.simulate import simulate
from compaction.strategies.payback_settings import Payback
from compaction.summaries.extract import extractive
from tests.build import Talk, coding, rough
from tests.compaction.talks import talks
from tests.compaction.topic.test_topic import BRIEF, LOGIN

LONG = "some line of output\n" * 200
PLAIN = Payback(results=1, readings=4, done=1, inputs=50, patience=1.0, haste=0.1)


def _policy(parameters: Payback = PLAIN, **fields: Any) -> Policy:
    return Policy("p", steps=(Step("payback", parameters),), **fields)


LATE = replace(PLAIN, results=5)
"""By then much has come that would have to be written again."""

KNOWN = Rates(known=True)


def _begun(policy: Policy, rates: Rates = KNOWN, window: int = 200_000) -> State:
    return start(policy, window, Means(rough, extractive, rates=rates))


def _fold(state: State, session: Session, pause_at: int = 0) -> list[Revision]:
    """All steps, 20 s apart but for a pause of an hour and more before one of them."""
    made, at = [], 0
    for call in session.calls:
        last, at = at or None, at + (4_000_000 if call.step == pause_at else 20_000)
        blocks = tuple(b for b in session.blocks if b.born == call.step)
        _, revision = advance(state, Arrival(call.step, blocks, at, last=last))
        made += [revision] if revision is not None else []
    return made


def _bash(talk: Talk, count: int, text: str = LONG) -> None:
    for number in range(count):
        talk.respond()
        talk.result(talk.call("Bash", {"command": f"make part-{number}"}), text)


def _runs(count: int, text: str = LONG) -> Talk:
    talk = Talk()
    talk.user("go")
    _bash(talk, count, text)
    return talk


def test_an_edit_is_made_once_reading_has_cost_what_rewriting_does() -> None:
    """Ten results of 1,001 tokens, the first ripe from step 3 on: what stands behind is written
    again at 11.5 times what it costs to read."""
    state = _begun(_policy())
    made = _fold(state, _runs(30).session())
    assert made
    assert {revision.trigger for revision in made} == {"pays"}
    for revision in made:
        cleared = revision.tokens_before - revision.tokens_after
        rewritten = int(revision.reason.partition("against ")[2].split()[0])
        read = sum(
            (state.originals[state.known[edit.targets[0]]].tokens - edit.replacement.tokens)
            * (revision.step - int(edit.reason.rpartition(" ")[2]) + 1)
            for edit in revision.edits
            if edit.replacement is not None
        )
        assert f"{cleared} tokens" in revision.reason
        assert read * 10 >= rewritten * 115


def test_cheaper_reads_make_edits_pay_later() -> None:
    first = [
        _fold(_begun(_policy(LATE), Rates(read, 1_250, known=True)), _runs(90).session())[0].step
        for read in (100, 50, 25)
    ]
    assert first == sorted(set(first))


def test_a_cold_cache_makes_it_free() -> None:
    state = _begun(_policy(replace(PLAIN, patience=100.0)))
    made = _fold(state, _runs(12).session(), pause_at=8)
    assert [(r.step, r.trigger) for r in made] == [(8, "cold")]
    assert "nothing is rewritten" in made[0].reason
    assert len(made[0].edits) == 6, "the newest call stays, hot as it is"


def test_a_full_window_does_not_wait() -> None:
    state = _begun(_policy(replace(PLAIN, patience=100.0)), window=10_000)
    made = _fold(state, _runs(9).session())
    assert {r.trigger for r in made} == {"window"}
    assert state.used <= 10_000


def _full_of_hidden(hidden: int) -> list[tuple[int, int]]:
    """Steps of the revisions in a window of 100,000 tokens, and the tokens that each clears."""
    state = _begun(_policy(replace(PLAIN, patience=100.0)), window=100_000)
    state.hidden = hidden
    made = _fold(state, _runs(14).session())
    assert {r.trigger for r in made} == {"window"}
    return [(r.step, r.tokens_before - r.tokens_after) for r in made]


@pytest.mark.parametrize("hidden", [86_000, 120_000])
def test_a_window_that_stays_full_is_cleared_in_large_parts(hidden: int) -> None:
    cleared = _full_of_hidden(hidden)
    assert len(cleared) == 2
    assert all(tokens >= 5_000 for _, tokens in cleared)


def test_whatever_makes_the_prompt_fit_is_cleared() -> None:
    first, *_ = _full_of_hidden(97_000)
    assert first[0] == 4
    assert first[1] < 5_000


def test_a_new_topic_needs_no_waiting() -> None:
    talk = Talk()
    talk.user(LOGIN[0].said)
    _bash(talk, 9)
    talk.respond()
    talk.say(LOGIN[0].answered)
    talk.user(BRIEF)
    made = _fold(_begun(_policy(replace(PLAIN, patience=100.0))), talk.session())
    assert [r.trigger for r in made] == ["new_topic"]


def test_without_a_price_the_revision_says_so() -> None:
    made = _fold(_begun(_policy(), Rates()), _runs(30).session())
    assert "no known price" in made[0].reason


def test_lean_edits_sooner_than_cheap() -> None:
    lean, cheap = (
        _fold(_begun(_policy(LATE, objective=wanted)), _runs(30).session())
        for wanted in get_args(Objective)[::-1]
    )
    assert lean[0].step < cheap[0].step


THOUGHT = "Perhaps the parser drops the last line. " * 30


def test_thinking_leaves_once_its_turn_is_over_and_never_before() -> None:
    """A model wants the thinking of the turn that it is in back as it was."""
    talk = Talk()
    talk.user("go")
    for number in range(6):
        talk.respond()
        talk.think(THOUGHT)
        talk.result(talk.call("Bash", {"command": f"make part-{number}"}), "ok")
    thoughts = [block for block in talk.blocks if block.type == "thinking"]
    talk.respond()
    talk.say("done")
    talk.user("and now the other one")
    turn = talk.step + 1
    _bash(talk, 3, "ok")
    begun = _begun(_policy(replace(PLAIN, thought=1, patience=0.0)))
    made = _fold(begun, talk.session())
    assert [revision.step for revision in made] == [turn + 1]
    assert not any(block.position in begun.standing for block in thoughts)
    assert not any(edit.replacement for edit in made[0].edits if edit.targets[0] == thoughts[0].id)
    assert not _fold(_begun(_policy(replace(PLAIN, thought=0, patience=0.0))), talk.session())


@pytest.mark.parametrize("objective", get_args(Objective))
def test_what_an_agent_said_leaves_whatever_is_wanted(objective: Objective) -> None:
    talk = Talk()
    talk.user("go")
    talk.respond()
    said = talk.say("I looked at every file of the parser. " * 40)
    talk.result(talk.call("Bash", {"command": "make"}), "ok")
    _bash(talk, 12, "ok")
    for age, stays in ((3, False), (0, True)):
        state = _begun(_policy(replace(PLAIN, said=age), objective=objective))
        _fold(state, talk.session())
        assert (state.standing[said.position] == said) is stays


def test_a_stub_leaves_to_the_call_what_the_call_says() -> None:
    """It stands right before its result, its own long values cut."""
    talk = _runs(4)
    state = _begun(_policy(replace(PLAIN, patience=0.0)))
    _fold(state, talk.session())
    use, result = talk.blocks[1], talk.blocks[2]
    assert state.standing[use.position] == use
    answer = state.standing[result.position].text
    assert answer == f"[offloaded: 201 lines | ref b2@{result.sha[:8]}]"


def test_failures_stay_until_they_are_mended_and_excluded_tools_for_good() -> None:
    talk = Talk()
    talk.user("go")
    talk.respond()
    failed = talk.result(talk.call("Bash", {"command": "make all"}), LONG, error=True)
    talk.respond()
    kept = talk.result(talk.call("Recall", {"key": "a"}), LONG)
    _bash(talk, 20)
    talk.respond()
    talk.result(talk.call("Bash", {"command": "make all"}), "ok")
    _bash(talk, 20)
    state = _begun(_policy(replace(PLAIN, exclude=("Recall",))))
    gone = {
        edit.targets[0]: revision.step
        for revision in _fold(state, talk.session())
        for edit in revision.edits
    }
    assert gone[failed.id] > 23
    assert kept.id not in gone


def test_what_was_taken_back_stays() -> None:
    state = _begun(_policy())
    session = _runs(40).session()
    half = replace(session, calls=session.calls[:20])
    first = _fold(state, half)[0]
    undo(state, first.number)
    rest = replace(session, calls=session.calls[20:])
    again = {edit.targets[0] for one in _fold(state, rest) for edit in one.edits}
    assert again.isdisjoint(edit.targets[0] for edit in first.edits)


@given(talks(), st.integers(1, 40), st.sampled_from(get_args(Objective)))
@settings(max_examples=60)
def test_no_policy_reads_the_future(session: Session, steps: int, wanted: Objective) -> None:
    """The beginning of a session gives the beginning of its revisions, byte for byte."""
    policy = replace(PRESETS["balanced"], objective=wanted)
    eager = replace(policy, steps=(*policy.steps, Step("payback", PLAIN)))
    for one in (policy, eager):
        whole = simulate(session, one, rough)
        cut = replace(
            session,
            calls=session.calls[:steps],
            blocks=tuple(b for b in session.blocks if b.born <= steps),
        )
        begun = simulate(cut, one, rough)
        assert begun.revisions == tuple(r for r in whole.revisions if r.step <= steps)
        assert begun == simulate(cut, one, rough)


def test_work_grows_with_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times as long a session looks about four times as often at ripe blocks."""
    looks: list[int] = []
    ripe = Ripening.ripe

    def counted(
        self: Ripening, ages: Ages, step: int, noted: Container[str]
    ) -> tuple[list[int], dict[int, int]]:
        found = ripe(self, ages, step, noted)
        looks.append(len(found[0]))
        return found

    def work(messages: int) -> int:
        looks.clear()
        simulate(coding(messages), PRESETS["balanced"], rough)
        return sum(looks)

    monkeypatch.setattr(Ripening, "ripe", counted)
    assert work(2_000) < 4.6 * work(500)
