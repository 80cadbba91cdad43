"""Spans in parts: within the room, never through a group, nothing left out that fits."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.context.blocks import Block
from compaction.context.groups import Groups
from compaction.context.session import Session
from compaction.context.stubs import reference
from compaction.proposals.plan import Span
from compaction.summaries.parts import DEPTH, batches
from tests.build import Talk, coding, rough
from tests.compaction.talks import talks

LEFT_OUT = "characters are left out here"


def _span(blocks: tuple[Block, ...]) -> Span:
    return Span("nine", blocks, blocks, None, 1_000)


def _heads(blocks: tuple[Block, ...], parts: list[str]) -> list[int]:
    """Where the line before each block stands; -1 for one that is missing."""
    whole = "\n\n".join(parts)
    return [whole.find(f"ref {reference(block)}]") for block in blocks]


@given(talks(), st.integers(200, 3_000))
@settings(max_examples=60)
def test_parts_fit_and_hold_every_block_in_order(session: Session, room: int) -> None:
    span = _span(session.blocks)
    parts = batches(span, rough, room)
    assert 1 <= len(parts) <= 2**DEPTH
    places = _heads(session.blocks, parts)
    assert -1 not in places and places == sorted(places)
    for part in parts:
        # Lines before blocks, and the least of each, stay even where all parts are too small.
        assert rough(part) <= room + (40 * part.count(", ref ") if LEFT_OUT in part else 0)
    assert batches(span, rough, room) == parts


def test_no_part_ends_inside_a_group() -> None:
    """A response with several calls, and their results, stay in one part."""
    talk = Talk()
    for number in range(12):
        talk.respond()
        uses = [talk.call("Read", {"path": f"{number}-{n}.py"}) for n in range(3)]
        for use in uses:
            talk.result(use, f"text {number} " * 60)
    span = _span(tuple(talk.blocks))
    parts = batches(span, rough, 1_500)
    groups = Groups()
    for block in talk.blocks:
        groups.add(block)
    assert len(parts) > 2
    for part in parts:
        first = next(b for b in talk.blocks if reference(b) in part.split("\n", 1)[0])
        assert first.position in groups.cuts


def test_what_is_too_much_after_all_halvings_is_cut_in_every_block() -> None:
    blocks = coding(400, 500).blocks
    parts = batches(_span(blocks), rough, 800)
    assert len(parts) == 2**DEPTH
    assert all(LEFT_OUT in part for part in parts)
    assert all(rough(part) <= 3_000 for part in parts)
    assert -1 not in _heads(blocks, parts)


def test_a_cut_group_still_names_each_of_its_calls_and_results() -> None:
    """Nine small groups and seven large ones: halves are not of one depth, and one part is cut."""
    talk = Talk()
    for number in range(16):
        talk.respond()
        uses = [talk.call("Read", {"path": f"{number}-{n}.py"}) for n in range(3)]
        for use in uses:
            talk.result(use, f"text {number:02} " * (52 if number < 9 else 70))
    blocks = tuple(talk.blocks)
    parts = batches(_span(blocks), rough, 700)
    places = _heads(blocks, parts)
    assert len(parts) == 2**DEPTH - 1
    assert sum(LEFT_OUT in part for part in parts) == 1
    assert -1 not in places and places == sorted(places)


def test_halves_are_of_about_one_size() -> None:
    blocks = coding(60, 250).blocks
    whole = sum(rough(block.text) for block in blocks)
    parts = batches(_span(blocks), rough, whole * 3 // 4)
    assert len(parts) == 2
    assert abs(len(parts[0]) - len(parts[1])) < max(map(len, parts)) / 4
