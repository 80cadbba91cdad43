"""Lost facts that were needed again: used while nothing in the context showed them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compaction.context.blocks import Block
from compaction.context.edits import Entry
from compaction.losses.needed import Dropped, needed_again, positions_of
from compaction.losses.repairs import repairs
from tests.build import Talk

LOST = "src/lost_for_ever.py"


def later(*words: str) -> tuple[Talk, Block | None]:
    """Steps after a removal, by what happens at each: the agent `uses` the fact or `says` it, a
    person `asks` with it, or a result `shows` it, which is returned."""
    talk, shown = Talk(), None
    for word in words:
        if word == "asks":
            talk.user(f"What of {LOST}?")
            continue
        talk.respond()
        if word == "uses":
            talk.result(talk.call("Read", {"file_path": LOST}), "text")
        elif word == "says":
            talk.say(f"I remember {LOST}.")
        else:
            shown = talk.result(talk.call("Bash", {"command": "ls"}), LOST)
    return talk, shown


@pytest.mark.parametrize(
    ("words", "step"),
    [
        (("uses",), 1),
        (("uses", "uses"), 1),
        (("says",), None),
        (("asks", "uses"), None),
        (("shows", "uses"), None),
        (("says", "uses"), None),
        (("uses", "asks", "uses"), 1),
    ],
)
def test_a_fact_that_stands_in_the_context_when_used_was_not_needed(
    words: tuple[str, ...], step: int | None
) -> None:
    talk, _ = later(*words)
    assert needed_again(talk.blocks).get(LOST) == step


def test_the_call_of_a_step_saw_nothing_that_the_step_wrote() -> None:
    talk = Talk()
    talk.respond()
    talk.say(f"Next {LOST}.")
    talk.call("Read", {"file_path": LOST})
    assert needed_again(talk.blocks) == {LOST: 1}


def test_what_came_back_because_it_was_missing_was_needed() -> None:
    talk, shown = later("shows", "uses")
    assert shown is not None
    assert needed_again(talk.blocks, {shown.position}) == {LOST: 1}, "not when it was back"
    assert needed_again(talk.blocks, {shown.position}, until=3) == {LOST: 1}
    assert needed_again(talk.blocks, {shown.position}, until=2) == {}, "removed once more"
    talk, shown = later("asks", "shows", "uses")
    assert shown is not None
    assert needed_again(talk.blocks, {shown.position}) == {}, "it stood there before"
    talk, _ = later("shows", "asks", "uses")
    corrected = talk.blocks[-3]
    assert corrected.role == "user"
    talk.blocks[:] = talk.blocks[-3:]
    assert needed_again(talk.blocks, {corrected.position}) == {LOST: corrected.born}


def test_of_a_removal_without_a_summary_the_facts_that_no_stub_leads_to() -> None:
    talk = Talk()
    talk.user("Go.")
    talk.respond()
    listed = talk.result(talk.call("Bash", {"command": "ls"}), f"{LOST}\nsrc/never_again.py")
    talk.respond()
    talk.say("Read.")
    talk.respond()
    talk.result(talk.call("Read", {"file_path": LOST}), "text")
    entries = [Entry(block, block.born) for block in talk.blocks]
    gone = next(one for one in entries if one.block is listed)
    gone.to_step, gone.closed_by = 3, 1
    found = repairs(entries, {1: 3})
    assert [(one.fact, one.needed) for one in Dropped(entries, found).facts(1, 3)] == [(LOST, 3)]
    assert Dropped(entries, found).facts(2, 3) == (), "another revision"
    assert Dropped(entries, found).facts(1, 4) == (), "used before it"
    stub = replace(listed, id="stub", text="[offloaded]", replaces=listed.id, refs=(listed.id,))
    assert Dropped([*entries, Entry(stub, 3)], found).facts(1, 3) == (), "retrievable"
    named = replace(stub, refs=(), text=f"[offloaded: {LOST}]")
    assert Dropped([*entries, Entry(named, 3)], found).facts(1, 3) == (), "named"


def test_a_repair_brings_a_result() -> None:
    talk = Talk()
    talk.user("Go.")
    for _ in range(2):
        talk.respond()
        result = talk.result(talk.call("Bash", {"command": "ls"}), LOST)
    first = talk.blocks[2]
    entries = [Entry(block, block.born) for block in talk.blocks]
    entries[2] = Entry(first, first.born, 2, closed_by=1)
    (found,) = repairs(entries, {1: 2})
    assert positions_of([found], talk.blocks) == {found.block.position, result.position}
