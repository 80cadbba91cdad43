"""Mentions: what relates to the task, and when the agent used what it was shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.context.session import Session
from compaction.topic.mentions import LEAST_USES, WHOLE, Mentions
from tests.build import Talk
from tests.compaction.talks import talks


def _learned(talk: Talk | Session) -> Mentions:
    found = Mentions()
    found.learn([b.position for b in talk.blocks], {b.position: b for b in talk.blocks})
    return found


def _asked() -> tuple[Talk, list[int]]:
    """The positions of four results, between a task and a later request."""
    talk = Talk()
    talk.user("Please repair the tokenizer in src/parse_tree.py")
    places = []
    for text in (
        "src/parse_tree.py: the tokenizer fails",
        "the tokenizer again",
        "weather",
        "a colour palette, weather",
    ):
        talk.respond()
        places.append(talk.result(talk.call("Bash", {"command": "make"}), text).position)
    talk.user("Another one: the palette is too dark")
    return talk, places


def test_what_is_shared_with_the_task_and_the_newest_message_counts_by_rarity() -> None:
    talk, places = _asked()
    scores = _learned(talk).relevance([[place] for place in places])
    assert scores[0] > scores[1] > scores[2] == 0
    assert scores[1] == WHOLE // 2, "two of the groups mention the tokenizer"
    assert scores[3] == WHOLE


def test_later_messages_do_not_count_before_a_position() -> None:
    talk, places = _asked()
    mentions = _learned(talk)
    groups = [[place] for place in places]
    assert mentions.relevance(groups, before=places[-1])[3] == 0
    assert mentions.relevance(groups, before=0) == [0] * 4
    assert mentions.relevance([places])[0] > 0
    assert Mentions().relevance([]) == []


def _used(distances: list[int]) -> Mentions:
    """A session in which names are used so many steps after the first that saw them."""
    talk = Talk()
    talk.user("go")
    for number, distance in enumerate(distances):
        talk.respond()
        talk.result(talk.call("Bash", {"command": "make"}), f"wrote out_{number}.log")
        for _ in range(distance + 1):
            talk.respond()
        talk.call("Bash", {"command": f"cat out_{number}.log"})
    return _learned(talk)


@pytest.mark.parametrize(
    ("distances", "share", "reach"),
    [
        ([3] * (LEAST_USES - 1), 1.0, None),
        ([3] * LEAST_USES, 1.0, 4),
        ([1] * 15 + [30] * 5, 0.75, 1),
        ([1] * 15 + [30] * 5, 0.76, 32),
        ([300] * LEAST_USES, 0.5, 256),
    ],
)
def test_reach_covers_a_share_of_the_uses(
    distances: list[int], share: float, reach: int | None
) -> None:
    assert _used(distances).reach(share) == reach


def test_a_use_counts_for_the_newest_holder_unless_the_fact_is_common() -> None:
    talk = Talk()
    talk.user("go")
    shown = []
    for _ in range(2):
        talk.respond()
        shown.append(talk.result(talk.call("Bash", {"command": "make"}), "see port_8080").position)
    talk.respond()
    talk.respond()
    talk.call("Bash", {"command": "open port_8080"})
    assert _learned(talk).last == {shown[1]: talk.step}
    for _ in range(8):
        talk.respond()
        talk.result(talk.call("Bash", {"command": "make"}), "see port_8080")
    talk.respond()
    talk.respond()
    talk.call("Bash", {"command": "open port_8080"})
    assert _learned(talk).last == {shown[1]: 4}, "twelve originals hold it by now"


@given(talks(), st.integers(0, 60))
def test_to_learn_in_parts_is_the_same(session: Session, cut: int) -> None:
    originals = {block.position: block for block in session.blocks}
    parts = Mentions()
    parts.learn(list(originals)[:cut], originals)
    parts.learn(list(originals), originals)
    assert parts == _learned(session)
