"""Replacement: what a newer result of the same call, or a newer dashboard, makes leave."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest
from hypothesis import given, settings

from compaction.context.blocks import Block, FileRef
from compaction.context.edits import context_at
from compaction.context.session import Session
from compaction.fold.fold import Arrival, advance, start
from compaction.policies.policy import Policy, Step
from compaction.proposals.plan import Means
from compaction.seen.repeats import Repeats, without_dashboards
from compaction.simulation.simulate import Run, simulate
from compaction.strategies.dedupe import Dedupe
from compaction.strategies.replace import Replace
from compaction.summaries.extract import extractive
from tests.build import Talk, rough
from tests.compaction.talks import talks

LONG = "modified: src/a.py\n" * 40


def _did(talk: Talk, tool: str, given: dict[str, Any], shown: str = LONG, **more: Any) -> Block:
    file = more.pop("file", None)
    talk.respond()
    return talk.result(talk.call(tool, given, file=file), shown, **more)


def _run(talk: Talk, *first: Step, **parameters: Any) -> Run:
    step = Step("replace", Replace(**parameters))
    return simulate(talk.session(), Policy("r", steps=(*first, step)), rough)


def _replaced(run: Run) -> list[tuple[int, str]]:
    return [(one.step, edit.targets[0]) for one in run.revisions for edit in one.edits]


def _pairs(talk: Talk) -> list[tuple[int, int]]:
    found = Repeats()
    for block in talk.blocks:
        found.add(block)
    return found.pairs


def test_the_newest_result_stays_and_the_earlier_becomes_a_stub() -> None:
    talk = Talk()
    talk.user("go")
    results = [_did(talk, "Bash", {"command": "git status"}) for _ in range(3)]
    run = _run(talk)
    assert _replaced(run) == [(3, results[0].id), (4, results[1].id)]
    stub = run.revisions[0].edits[0].replacement
    assert stub is not None and stub.refs == (results[0].id,)
    assert stub.text == (
        "[replaced: Bash git status | asked again later, the newest result stands there"
        f" | {len(LONG)} chars, 41 lines | modified: src/a.py | ref b2@{results[0].sha[:8]}]"
    )
    assert results[2] in context_at(run.entries, 4).values()


@pytest.mark.parametrize(
    ("first", "second", "again"),
    [
        ({"command": "git status"}, {"command": "git status", "description": "look"}, True),
        ({"command": "git status"}, {"command": "git status -s"}, False),
        ({"command": "git status"}, {"command": ["bash", "-lc", "git status"]}, False),
        ({"cmd": "ls", "workdir": "/a"}, {"cmd": "ls", "workdir": "/b"}, False),
        ({"command": "cd /a && ls"}, {"command": "cd /a && ls"}, False),
    ],
)
def test_the_same_call_has_the_same_arguments_in_the_same_folder(
    first: dict[str, Any], second: dict[str, Any], again: bool
) -> None:
    talk = Talk()
    for asked in (first, second):
        _did(talk, "Bash", asked)
    assert bool(_pairs(talk)) is again


def test_a_shell_that_went_elsewhere_asks_something_else() -> None:
    talk = Talk()
    for command in ("ls", "ls", "cd /tmp", "ls", "ls"):
        _did(talk, "Bash", {"command": command})
    places = [block.position for block in talk.blocks if block.type == "tool_result"]
    assert _pairs(talk) == [(places[0], places[1]), (places[3], places[4])]


@pytest.mark.parametrize(
    ("tool", "given", "more"),
    [
        ("Bash", {"command": "pytest -q"}, {}),
        ("Bash", {"command": "git status > out"}, {}),
        ("Edit", {"file_path": "a"}, {}),
        ("Bash", {"command": "git status"}, {"error": True}),
        ("Bash", {"command": "git status"}, {"pinned": True}),
        ("Bash", {"command": "git status"}, {"shown": "clean"}),
    ],
)
def test_what_stays(tool: str, given: dict[str, Any], more: dict[str, Any]) -> None:
    talk = Talk()
    talk.user("go")
    for _ in range(3):
        _did(talk, tool, given, **more)
    assert _replaced(_run(talk)) == []


def test_readings_of_other_lines_are_other_calls_and_notes_keep_what_they_rest_on() -> None:
    talk = Talk()
    talk.user("go")
    lines = "".join(f"{n:6}→line {n} of the file\n" for n in range(1, 80))
    for offset in (1, 40):
        file = FileRef("a.py", "read", offset)
        _did(talk, "Read", {"file_path": "a.py", "offset": offset}, lines, file=file)
    assert _pairs(talk) == []
    talk = Talk()
    talk.user("go")
    for _ in range(3):
        _did(talk, "Read", {"file_path": "a.py"}, lines, file=FileRef("a.py", "read"))
    assert len(_replaced(_run(talk))) == 2
    deduped = _run(talk, Step("dedupe", Dedupe()))
    assert {edit.strategy for one in deduped.revisions for edit in one.edits} == {"dedupe"}


def test_a_batch_gathers_and_leaves_at_once() -> None:
    talk = Talk()
    talk.user("go")
    for number in range(4):
        _did(talk, "Bash", {"command": "git status"})
        _did(talk, "Bash", {"command": f"make {number}"})
    run = _run(talk, batch=3)
    assert [(one.step, len(one.edits)) for one in run.revisions] == [(8, 3)]


def test_only_the_newest_dashboard_of_an_agent_stands() -> None:
    talk = Talk()
    for number in range(3):
        talk.user(f"part {number}\n<dashboard at='x'>{LONG}</dashboard>\nthanks")
        _did(talk, "Bash", {"command": f"make {number}"})
    run = _run(talk)
    first = talk.blocks[0]
    context = list(context_at(run.entries, 4).values())
    assert context[0].text == (
        f"part 0\n[an older dashboard was here | ref b0@{first.sha[:8]}]\nthanks"
    )
    assert (context[0].kind, context[0].role, context[0].refs) == ("user", "user", ("b0",))
    assert context[6].text == talk.blocks[6].text
    assert _replaced(_run(talk, dashboards=False)) == []


def test_dashboards_are_cut_out_wherever_they_stand() -> None:
    assert without_dashboards("a<dashboard>b</dashboard>c<dashboard/></dashboard>d", "!") == "a!cd"
    assert without_dashboards("<dashboard>" * 9, "!") == "<dashboard>" * 9


def test_what_was_taken_back_makes_nothing_out_of_date() -> None:
    talk = Talk()
    talk.user("go")
    for _ in range(2):
        _did(talk, "Bash", {"command": "git status"})
    _did(talk, "Bash", {"command": "make"})
    session = talk.session()
    policy = Policy("r", steps=(Step("replace", Replace(batch=1)),))
    state = start(policy, session.window, Means(rough, extractive))
    newer = tuple(b.position for b in session.blocks if b.born == 3)
    advance(state, Arrival(3, session.blocks[:5], gone=newer))
    _, revision = advance(state, Arrival(4, session.blocks[5:]))
    assert revision is None


@given(talks())
@settings(max_examples=150)
def test_each_newest_result_stands_and_everything_is_restored_by_its_reference(
    session: Session,
) -> None:
    policy = Policy("r", steps=(Step("replace", Replace(minimum=1)),))
    run = simulate(session, policy, rough)
    assert run.refusals == ()
    known = Repeats()
    for block in session.blocks:
        known.add(block)
    older = {one for one, _ in known.pairs}
    originals = {block.id: block for block in session.blocks}
    last = context_at(run.entries, run.steps[-1].step)
    for place, block in last.items():
        if block.replaces is None:
            continue
        assert place in older and block.tokens < originals[block.refs[0]].tokens
        assert changed(originals[block.refs[0]], pinned=False).position == place
    for revision in run.revisions:
        assert revision.tokens_after < revision.tokens_before
