"""Which lines of a reading its stub keeps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.context.blocks import Block, FileRef
from compaction.facts.quoted import LONGEST_LINE, quoted
from tests.build import Talk


def _reading(text: str, start: int | None = None) -> Block:
    talk = Talk()
    talk.user(text)
    return replace(talk.blocks[0], file=FileRef("app.py", "read", start))


@pytest.mark.parametrize(
    ("text", "start", "wanted", "kept"),
    [
        ("one\n  load_all()\ntwo", None, {"load_all"}, "2: load_all()"),
        ("one\n  load_all()", 41, {"load_all"}, "42: load_all()"),
        ("    7\tload_all()", None, {"load_all"}, "7\tload_all()"),
        ("  12→load_all()", 12, {"load_all"}, "12→load_all()"),
        ("load_all\nload_all again", None, {"load_all"}, "1: load_all"),
        ("save_all\nload_all", None, {"load_all", "save_all"}, "1: save_all\n2: load_all"),
        ("load_all " + "x" * LONGEST_LINE, None, {"load_all"}, ""),
        ("nothing here", None, {"load_all"}, ""),
        ("", None, {"load_all"}, ""),
    ],
)
def test_the_shortest_line_of_each_wanted_fact_is_kept_with_its_number(
    text: str, start: int | None, wanted: set[str], kept: str
) -> None:
    lines, held = quoted(_reading(text, start), wanted, 1_000)
    assert lines == kept
    assert held == {fact for fact in wanted if fact in lines}


@given(st.lists(st.text("ab_1 \t→:", max_size=30), max_size=12), st.integers(0, 200))
def test_lines_are_of_the_text_in_order_and_fit(texts: list[str], room: int) -> None:
    block = _reading("\n".join(texts))
    wanted = {run for line in texts for run in line.split()}
    kept, held = quoted(block, wanted, room)
    assert len(kept) <= room
    assert held <= wanted
    left = iter(texts)
    for line in kept.split("\n") if kept else ():
        assert any(line.endswith(one.strip()) for one in left)
