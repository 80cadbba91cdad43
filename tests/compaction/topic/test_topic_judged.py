"""New topics judged from outside: when the judge is asked, and what comes of each answer."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.fold.fold import Arrival, advance, start
from compaction.proposals.plan import Means
from compaction.summaries.extract import extractive
from compaction.topic.topic import Topic
from tests.build import Talk, rough
from tests.compaction.fold.test_triggers import compact_policy, topics

FOLLOW_UP = "Also trim the user name there, please."


class Judge:
    """Gives prepared answers, and records the questions."""

    def __init__(self, answer: bool | None) -> None:
        self.answer = answer
        self.asked: list[Topic] = []

    def __call__(self, topic: Topic) -> bool | None:
        self.asked.append(topic)
        return self.answer


def run(talk: Talk, judge: Judge, late: int | None = None, **given: Any) -> list[tuple[str, int]]:
    """Triggers and steps of the revisions made; from step `late` on the judge says yes."""
    state = start(compact_policy(**given), 200_000, Means(rough, extractive, judge=judge))
    made: list[tuple[str, int]] = []
    for step in range(1, talk.session().calls[-1].step + 1):
        if step == late:
            judge.answer = True
        new = tuple(block for block in talk.blocks if block.born == step)
        _, revision = advance(state, Arrival(step, new))
        made += [(revision.trigger, step)] if revision is not None else []
    return made


def test_a_judge_is_asked_once_per_message_of_what_the_rule_would_not_find() -> None:
    judge = Judge(True)
    assert run(topics(40, said=FOLLOW_UP), judge) == [("new_topic", 42)]
    (topic,) = set(judge.asked)
    assert topic.message == FOLLOW_UP
    assert topic.rounds[-1].answered.startswith("The comparison")


def test_where_he_says_no_the_rule_has_no_say() -> None:
    judge = Judge(False)
    assert run(topics(40), judge) == []
    assert len(judge.asked) == 1


@pytest.mark.parametrize(
    ("steps", "given"),
    [(20, {}), (40, {"on_new_topic": False}), (40, {"least_warm": 60_000})],
)
def test_he_is_not_asked_where_the_rules_do_not_say_so(steps: int, given: dict[str, Any]) -> None:
    judge = Judge(True)
    assert run(topics(steps, said=FOLLOW_UP), judge, **given) == []
    assert judge.asked == []


def test_while_he_thinks_nothing_is_done_and_his_answer_is_used_within_the_turn() -> None:
    judge = Judge(None)
    assert run(topics(40, after=5), judge) == []
    assert len(set(judge.asked)) == 1
    judge = Judge(None)
    assert run(topics(40, after=5), judge, late=45) == [("new_topic", 45)]


def test_an_answer_after_the_turn_is_of_no_use() -> None:
    talk = topics(40, after=2)
    talk.user("go on")
    talk.respond()
    talk.say("yes")
    judge = Judge(None)
    state = start(compact_policy(least_warm=1_000), 200_000, Means(rough, extractive, judge=judge))
    for step in range(1, 45):
        new = tuple(block for block in talk.blocks if block.born == step)
        advance(state, Arrival(step, new))
    assert [topic.message for topic in dict.fromkeys(judge.asked)][-1] == "go on"


def test_a_first_message_asks_for_no_judgment() -> None:
    judge = Judge(True)
    talk = Talk()
    talk.user("Begin. " * 20_000)
    talk.respond()
    talk.say("ok")
    assert run(talk, judge) == []
    assert judge.asked == []
