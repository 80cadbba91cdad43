"""Summaries that come later than the compaction that asked for them."""

from __future__ import annotations

from compaction.fold.fold import start
from compaction.proposals.plan import Means
from compaction.summaries.extract import extractive
from tests.build import rough
from tests.compaction.fold.test_triggers import compact_policy, step_to, topics


def test_a_summary_that_comes_later_is_still_used_within_the_turn() -> None:
    talk, ready = topics(40, after=4), False
    state = start(
        compact_policy(), 200_000, Means(rough, lambda span: extractive(span) if ready else None)
    )
    for step in range(1, 44):
        assert step_to(state, talk, step) is None
    assert state.wanted
    ready = True
    revision = step_to(state, talk, 44)
    assert revision is not None
    assert revision.trigger == "new_topic"
    assert state.waiting == [None]
    assert step_to(state, talk, 45) is None


def test_a_summary_that_comes_after_the_turn_is_not_asked_for_again() -> None:
    talk = topics(40, after=2)
    talk.user("go on")
    talk.respond()
    talk.say("yes")
    state = start(compact_policy(), 200_000, Means(rough, lambda _: None))
    for step in range(1, 45):
        assert step_to(state, talk, step) is None
    assert state.wanted == []
    assert state.marks[0]["due"] == 0


def test_marks_of_an_older_release_are_read() -> None:
    state = start(compact_policy(), 200_000, Means(rough, extractive))
    state.marks = [{"rearm": 0}]
    talk = topics(40)
    found = [step_to(state, talk, step) for step in range(1, 43)]
    assert [one.trigger for one in found if one] == ["new_topic"]
