"""Ripening: which blocks are ripe, and since when."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from compaction.context.blocks import Block, FileRef
from compaction.seen.ripening import Ages, Ripening
from tests.build import Talk

LONG = "some line of output\n" * 200
AGES = Ages(results=2, readings=6, done=1, settled=4, inputs=9, said=0, thought=0, least=70)


def _reading(talk: Talk, path: str, start: int | None = None, end: int | None = None) -> Block:
    talk.respond()
    use = talk.call("Read", {"path": path}, file=FileRef(path, "read", start, end))
    return talk.result(use, LONG)


def _since(talk: Talk, step: int, noted: Sequence[str] = ()) -> dict[str, int]:
    """Ripe blocks at a step, by id: since when."""
    index, uses = Ripening(), {b.tool_call: b for b in talk.blocks if b.type == "tool_use"}
    for block in talk.blocks:
        index.add(block, uses.get(block.tool_call))
    order, since = index.ripe(AGES, step, set(noted))
    assert order == sorted(since)
    return {talk.blocks[place].id: since[place] for place in order}


def test_each_kind_of_block_has_its_age() -> None:
    talk = Talk()
    talk.user("go")
    talk.respond()
    talk.result(talk.call("Bash", {"command": "make"}), LONG)
    read = _reading(talk, "a.py")
    talk.respond()
    write = talk.call("Write", {"path": "b.py", "content": LONG}, file=FileRef("b.py", "write"))
    talk.result(write, "ok")
    result = talk.blocks[2]
    assert (result.born, read.born, write.born) == (2, 3, 4)
    assert _since(talk, 3) == {}
    assert _since(talk, 4) == {result.id: 4}
    assert _since(talk, 9) == {result.id: 4, read.id: 9}
    assert _since(talk, 13) == {result.id: 4, read.id: 9, write.id: 13}


@pytest.mark.parametrize("end", ["a person", "a commit", "a failed commit"])
def test_a_reading_is_ripe_sooner_once_its_task_is_over(end: str) -> None:
    talk = Talk()
    talk.user("go")
    read = _reading(talk, "a.py")
    talk.respond()
    if end == "a person":
        talk.user("now the other one")
    else:
        use = talk.call("Bash", {"command": "git add -A && git commit -qm 'Done'"})
        talk.result(use, "[main 1ab2c3d] Done", error=end == "a failed commit")
    early = {read.id: 6} if end != "a failed commit" else {}
    assert (read.born, _since(talk, 5)) == (2, {})
    assert {**_since(talk, 6)} == early
    assert _since(talk, 8)[read.id] == (6 if early else 8)
    later = _reading(talk, "b.py")
    assert later.id not in _since(talk, later.born + 5)


@pytest.mark.parametrize(
    ("first", "second", "done"),
    [
        ((None, None), (None, None), True),
        ((10, 20), (None, None), True),
        ((10, 20), (5, 25), True),
        ((10, 20), (10, None), True),
        ((10, 20), (15, 25), False),
        ((10, None), (10, 20), False),
        ((None, None), (10, 20), False),
    ],
)
def test_a_reading_is_done_with_where_the_same_lines_are_read_again(
    first: tuple[int | None, int | None], second: tuple[int | None, int | None], done: bool
) -> None:
    talk = Talk()
    talk.user("go")
    one = _reading(talk, "a.py", *first)
    other = _reading(talk, "a.py", *second)
    assert _since(talk, 4) == ({one.id: 3} if done else {})
    assert _since(talk, 4, [f"dedupe:{other.id}"]) == {}, "a note shows nothing"


@pytest.mark.parametrize(("error", "done"), [(False, True), (True, False)])
def test_a_reading_is_done_with_where_its_file_was_changed(error: bool, done: bool) -> None:
    talk = Talk()
    talk.user("go")
    read = _reading(talk, "a.py")
    talk.respond()
    use = talk.call("Edit", {"path": "a.py", "new": "x"}, file=FileRef("a.py", "edit"))
    talk.result(use, "done", error=error)
    assert (read.id in _since(talk, 3)) is done


def test_what_a_note_rests_on_is_in_use_again() -> None:
    talk = Talk()
    talk.user("go")
    read = _reading(talk, "a.py")
    index = Ripening()
    for block in talk.blocks:
        index.add(block, talk.blocks[1])
    assert index.ripe(AGES, 8, {})[0] == [read.position]
    index.lend(read.position, 8)
    assert index.ripe(AGES, 13, {})[0] == []
    assert index.ripe(AGES, 14, {}) == ([read.position], {read.position: 14})
