"""Drift: steps that name nothing of the task, judged as they come."""

from __future__ import annotations

from hypothesis import given

from compaction.context.blocks import FileRef
from compaction.context.session import Session
from compaction.tools.drift import Drift
from tests.build import Talk
from tests.compaction.talks import talks


def judged(talk: Talk) -> tuple[int, int]:
    found = Drift()
    for block in talk.blocks:
        found.add(block)
    found.close()
    return found.judged, found.adrift


def step(talk: Talk, path: str) -> None:
    talk.respond()
    use = talk.call("Read", {"file_path": path}, file=FileRef(path, "read"))
    talk.result(use, "text of other_names")


def test_a_step_is_with_the_task_where_it_names_a_part_of_it() -> None:
    talk = Talk()
    talk.user("mend src/parser/lexer.py")
    step(talk, "/home/me/repo/src/parser/lexer.py")
    step(talk, "/etc/something_else.conf")
    assert judged(talk) == (2, 1)


def test_nothing_is_judged_without_a_task_that_names_something() -> None:
    talk = Talk()
    talk.user("please go on")
    step(talk, "src/a_file.py")
    assert judged(talk) == (0, 0)
    assert Drift().share is None


def test_an_open_todo_is_a_task_and_a_done_one_is_none() -> None:
    talk = Talk()
    talk.user("begin with src/first.py")
    talk.respond()
    todos = [
        {"content": "look at lib/second.py", "status": "pending"},
        {"content": "look at lib/third.py", "status": "completed"},
    ]
    use = talk.call("TodoWrite", {"todos": todos})
    talk.result(use, "ok")
    step(talk, "lib/second.py")
    step(talk, "lib/third.py")
    # The step that writes the list comes before it holds.
    assert judged(talk) == (3, 2)


def test_a_step_without_a_fact_is_not_judged() -> None:
    talk = Talk()
    talk.user("mend src/parser.py")
    talk.respond()
    talk.say("I think about it.")
    assert judged(talk) == (0, 0)


@given(talks())
def test_all_talks_are_judged_within_their_steps(session: Session) -> None:
    found = Drift()
    for block in session.blocks:
        found.add(block)
    found.close()
    assert 0 <= found.adrift <= found.judged <= len(session.calls)
