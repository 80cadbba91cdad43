"""The life of a text: when it was seen, when it left, when it was needed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.context.blocks import Block
from compaction.context.edits import Entry
from compaction.facts.paths import normal
from compaction.losses.ledger import CompactedContext, ledger_of
from compaction.losses.life import Life, Shown, life_of, place_of, shows
from compaction.losses.needed import needed_again
from compaction.policies.presets import PRESETS
from compaction.simulation.simulate import simulate
from tests.build import Talk, coding, rough

PORT = "8417"


def _lived(
    born: list[int], gone: dict[int, int], own: tuple[int, ...] = (), steps: int = 9
) -> Life:
    """Blocks that hold the port, born at these steps; some leave, some are the agent's."""
    talk = Talk()
    for _ in born:
        talk.user(f"port {PORT}")
    holders = [
        replace(block, born=step, role="assistant" if step in own else "tool", type="text")
        for block, step in zip(talk.blocks, born, strict=True)
    ]
    entries = [
        Entry(block, block.born, gone.get(block.born), closed_by=gone.get(block.born))
        for block in holders
    ]
    return life_of(PORT, holders, entries, steps)


@pytest.mark.parametrize(
    ("born", "gone", "own", "stays", "left", "needed"),
    [
        ([], {}, (), [(1, 10, "unseen")], None, None),
        ([1], {}, (), [(1, 10, "in_context")], None, None),
        ([3], {}, (5,), [(1, 3, "unseen"), (3, 10, "in_context")], None, None),
        ([3], {6: 6, 3: 6}, (), [(1, 3, "unseen"), (3, 6, "in_context"), (6, 10, "lost")], 6, None),
        (
            [3, 9],
            {3: 6},
            (9,),
            [(1, 3, "unseen"), (3, 6, "in_context"), (6, 9, "lost"), (9, 10, "in_context")],
            6,
            8,
        ),
        (
            [1, 7],
            {1: 4, 7: 9},
            (),
            [(1, 4, "in_context"), (4, 7, "lost"), (7, 9, "in_context"), (9, 10, "lost")],
            4,
            6,
        ),
        ([1, 3], {1: 5}, (), [(1, 10, "in_context")], None, None),
        ([3], {3: 3}, (), [(1, 3, "unseen"), (3, 10, "lost")], 3, None),
        (
            [3, 7],
            {3: 3},
            (),
            [(1, 3, "unseen"), (3, 7, "lost"), (7, 10, "in_context")],
            3,
            6,
        ),
        (
            [3, 5, 7],
            {3: 3, 5: 6},
            (),
            [
                (1, 3, "unseen"),
                (3, 5, "lost"),
                (5, 6, "in_context"),
                (6, 7, "lost"),
                (7, 10, "in_context"),
            ],
            3,
            4,
        ),
    ],
)
def test_stays_what_removed_it_and_what_needed_it(
    born: list[int],
    gone: dict[int, int],
    own: tuple[int, ...],
    stays: list[tuple[int, int, Shown]],
    left: int | None,
    needed: int | None,
) -> None:
    life = _lived(born, gone, own)
    assert [(one.since, one.until, one.state) for one in life.stays] == stays
    assert (life.left.until if life.left else None) == left
    assert (life.needed.call if life.needed else None) == needed
    if life.left is not None:
        assert life.left.revisions == (left,)


def test_what_is_said_beside_the_call_that_first_shows_it_does_not_miss_it() -> None:
    life = _lived([4, 4], {}, steps=5)
    beside = replace(life.seen[1].block, role="assistant")
    life = life_of(PORT, [life.seen[0].block, beside], [Entry(life.seen[0].block, 4)], 5)
    assert [one.at for one in life.used] == [3]
    assert (life.missed, life.needed) == ((), None)


def test_a_call_that_used_it_was_not_made_because_its_result_shows_it() -> None:
    first = _lived([3], {}).seen[0].block
    use = replace(first, born=7, role="assistant", type="tool_use", text=f'{{"port": "{PORT}"}}')
    shown = replace(first, born=7, type="tool_result")
    entries = [Entry(first, 3, 5, closed_by=1), Entry(use, 7), Entry(shown, 7)]
    life = life_of(PORT, [first, use, shown], entries, 9)
    for asked in (None, 6, 8):
        needed = replace(life, asked=asked).needed
        assert needed is not None
        assert needed.block is use


def test_what_stands_in_its_place_says_how_it_can_be_found() -> None:
    talk = Talk()
    talk.user(f"port {PORT}")
    (block,) = talk.blocks
    gone = Entry(block, 1, 4, closed_by=1)
    naming = replace(block, id="a", text=f"stub {PORT}", replaces=block.id)
    referring = replace(block, id="b", text="stub", replaces=block.id, refs=(block.id,))
    entries = [gone, Entry(naming, 4, 6), Entry(referring, 6, 8)]
    life = life_of(PORT, [block], entries, 9)
    assert [one.state for one in life.stays] == ["in_context", "named", "retrievable", "lost"]
    assert [life.at(step) for step in (3, 4, 7, 8)] == [
        "in_context", "named", "retrievable", "lost",
    ]  # fmt: skip


def test_what_was_shown_again_and_removed_as_it_arrived_had_left_before() -> None:
    life = _lived([1, 5], {1: 3, 5: 5})
    first, again = (sight.block for sight in life.seen)
    naming = replace(first, id="a", text=f"stub {PORT}", replaces=first.id)
    entries = [Entry(first, 1, 3, closed_by=3), Entry(again, 5, 5, closed_by=5), Entry(naming, 5)]
    life = life_of(PORT, [first, again], entries, 9)
    assert [stay.state for stay in life.stays] == ["in_context", "lost", "named"]
    assert life.left is not None and life.left.until == 3, "what it was needed after"


def test_a_stay_says_its_steps() -> None:
    assert [one.where for one in _lived([2], {2: 3}).stays] == ["step 1", "step 2", "steps 3–9"]


@pytest.mark.parametrize(
    ("given", "text", "found"),
    [
        ({"path": 'a "b".py'}, 'a "b".py', True),
        ({"port": 8417}, "8417", True),
        ({"path": "x"}, "path", False),
        ({"code": "GetRewindPoints(50)"}, "RewindPoint", False),
        ({"code": "RewindPoint_2"}, "RewindPoint", False),
        ({"code": "[]RewindPoint{}"}, "rewindpoint", True),
        ({"code": r"type\nRewindPoint"}, "RewindPoint", True),
        ({"code": "GetRewindPoints(50)"}, "(50", True),
    ],
)
def test_a_tool_input_holds_its_values(given: dict[str, object], text: str, found: bool) -> None:
    talk = Talk()
    assert shows(talk.call("Write", given), text) is found


@given(st.sampled_from(sorted(PRESETS)), st.integers(0, 40))
def test_stays_cover_every_step_once_under_every_preset(preset: str, number: int) -> None:
    session = coding(60)
    text = f"function_{number}"
    run = simulate(session, PRESETS[preset], rough)
    holders: list[Block] = [block for block in session.blocks if shows(block, text)]
    life = life_of(text, holders, run.entries, len(run.steps))
    assert [one.since for one in life.stays] == [1, *(one.until for one in life.stays[:-1])]
    assert life.stays[-1].until == len(run.steps) + 1
    assert all(a.state != b.state for a, b in zip(life.stays, life.stays[1:], strict=False))


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [
        ("/srv/harbor/site", "read /srv/harbor/site/pages/home.py", True),
        ("/srv/harbor/site", "read /srv/harbor/site", True),
        ("srv/harbor/site", "read /home/me/srv/harbor/site/pages/home.py", True),
        ("/srv/harbor/site/v1.2", "ls /srv/harbor/site/v1.2/notes", True),
        ("site/pages/home.py", "/srv/harbor/site/pages/home.py:12:def home", True),
        ("/srv/harbor/site/pages/home.py", "edited pages/Home.py:3", True),
        ("/srv/harbor/site/pages/home.py", "it is `pages/home.py`.", True),
        ("/srv/harbor/site/pages", "see site/pages/home.py", True),
        ("site/pages/home", "in HEAD:site/pages/home/door.py", True),
        ("https://docs.example/limits", "GET https://docs.example/limits/rows", True),
        ("/srv/harbor/.site/pages/home.py", "see .site/pages/home.py", True),
        ("site/pages/home.py", "see /srv/harbor/.site/pages/home.py", True),
        ("/srv/harbor/site", "read /srv/harbor/site.py", False),
        ("/srv/harbor/site", "read /srv/harbor/site-old/home.py", False),
        ("/srv/harbor/site", "read /srv/harbor/sites/home.py", False),
        ("/srv/harbor/site", "read /srv/homework/site_map", False),
        ("/srv/harbor/site/pages", "see /other/site/pages/home.py", False),
        ("/srv/harbor/site/pages/home.py", "see /other/pages/home.py", False),
        ("/srv/harbor/site/pages/home.py", "/srv/harbor/site/pages", False),
        ("site/pages/home.py", "my-site/pages/home.py", False),
        ("https://docs.example/limits", "https://docs.example/limits-of-rows", False),
    ],
)
def test_a_path_is_told_of_by_one_rule_for_the_fact_ledger_and_for_why(
    path: str, text: str, told: bool
) -> None:
    talk, later = Talk(), Talk()
    talk.user(f"look at {path} first")
    (block,), other = talk.blocks, later.user(text)
    (fact,) = ledger_of([block], "", CompactedContext([other])).facts
    assert (fact.fact, fact.state) == (path, "kept" if told else "lost")
    assert shows(other, path) is told
    if told:
        start, end = place_of(path, text) or (0, 0)
        assert path.rpartition("/")[2] in text[start:end].lower()
    # What calls needed again, and where Why says it was in context before.
    talk.respond()
    shown = replace(other, position=1, born=3, role="tool", type="tool_result")
    used = replace(talk.call("Read", {"path": path}), position=2, born=6)
    assert needed_again([shown, used]) == ({} if told else {normal(path): 5})
    holders = [one for one in (block, shown, used) if shows(one, path)]
    entries = [Entry(block, 1, 2), *([Entry(shown, 3)] if told else [])]
    life = life_of(path, holders, entries, 6)
    assert [one.at for one in life.missed] == ([] if told else [5])
