"""ActionMatch of actions: tools, arguments, and stubs that a model writes itself."""

from __future__ import annotations

import pytest

from compaction.losses.next_action import Action, ActionMatch, actions, match, spaced
from tests.build import Talk

READ = ("Read", {"path": "a.py", "limit": 10})


@pytest.mark.parametrize(
    ("recorded", "answered", "found"),
    [
        ((), (), ActionMatch(True, 1.0)),
        ((READ,), (), ActionMatch(False, 0.0)),
        ((), (READ,), ActionMatch(False, 0.0)),
        ((READ,), (READ,), ActionMatch(True, 1.0)),
        ((READ,), (("Read", {"path": "a.py"}),), ActionMatch(True, 0.5)),
        ((READ,), (("Bash", READ[1]),), ActionMatch(False, 0.0)),
        ((("Stop", {}),), (("Stop", {}),), ActionMatch(True, 1.0)),
        ((("Bash", {}), READ), (READ, ("Grep", {})), ActionMatch(True, 1.0)),
        ((("Bash", {"c": "ls  -l\n"}),), (("Bash", {"c": "ls -l"}),), ActionMatch(True, 1.0)),
        (
            (("T", {"o": {"a": 1, "b": 2}}),),
            (("T", {"o": {"b": 2, "a": 1}}),),
            ActionMatch(True, 1.0),
        ),
    ],
)
def test_a_match(recorded, answered, found) -> None:
    assert match(Action(recorded), Action(answered)) == found


def test_a_stub_of_its_own_is_an_imitation() -> None:
    assert Action(text="see [offloaded: 3 lines | ref m1.0@12345678]").imitates
    assert Action((("Write", {"content": "[offloaded: a]"}),)).imitates
    assert not Action((READ,), "offloaded work").imitates


def test_the_action_of_a_step_is_what_its_response_did() -> None:
    talk = Talk()
    talk.user("go")
    talk.respond()
    talk.say("I read it.")
    use = talk.call("Read", {"path": "a.py"})
    talk.result(use, "text")
    talk.respond()
    blocks = talk.session().blocks
    assert actions(blocks) == {1: Action((("Read", {"path": "a.py"}),), "I read it.")}


@pytest.mark.parametrize(
    ("steps", "most", "found"),
    [([], 3, []), ([4, 9], 3, [4, 9]), (list(range(1, 11)), 2, [3, 8]), ([1, 2, 3], 1, [2])],
)
def test_steps_are_spaced_evenly(steps, most, found) -> None:
    assert spaced(steps, most) == found
