"""Marks: one table, in which no two are alike, and none that pages use comes from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from compaction.strategies import STRATEGIES
from sessions.marks import MARKS
from sessions.models.dashboard.matching import FLAGS
from tests.conftest import ROOT

WHERE = (
    *("frontend/src/replay", "frontend/src/record", "templates/replay", "templates/record"),
    *("frontend/src/reviews", "templates/reviews", "frontend/src/jobs", "templates/jobs"),
    *("sessions/views/replay", "sessions/views/record", "sessions/models", "compaction/strategies"),
)
PLAIN = "?•"
"""Symbols that texts use as well."""
SYMBOLS = "".join(mark.symbol for mark in MARKS.values() if mark.symbol not in PLAIN)


def _sources() -> Iterator[Path]:
    for folder in WHERE:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".ts", ".svelte", ".html"):
                yield path


def test_no_two_marks_share_a_symbol_a_name_or_a_meaning():
    marks = list(MARKS.values())
    for field in ("symbol", "name", "plural", "means"):
        assert len({getattr(mark, field) for mark in marks}) == len(marks)


def test_pages_take_their_marks_from_the_table():
    found = {
        str(path.relative_to(ROOT)): marks
        for path in _sources()
        if (marks := re.findall(f"[{SYMBOLS}]", path.read_text()))
    }
    assert found == {}


def test_the_table_has_what_happens_and_what_lists_filter_by():
    # The literals of the server's marks; those of revisions are their triggers.
    written = (ROOT / "sessions/actions/record/events.py").read_text()
    kinds = set(re.findall(r'mark\([^,()]+(?:\[[^]]+\])?, "(\w+)"', written))
    assert kinds >= {"unlogged", "break", "model", "clear", "error", "retry", "subagent"}
    assert kinds | {one.event for one in STRATEGIES.values()} <= MARKS.keys()
    assert {kind for kind, *_ in FLAGS.values()} <= MARKS.keys()


@pytest.mark.parametrize("page", ["replay/replay.md", "tour.md", "questions.md"])
def test_documents_give_marks_their_names(page: str):
    text = (ROOT / "docs" / page).read_text()
    for symbol, words in re.findall(f"([{SYMBOLS}]) ([a-z][a-z -]*)", text):
        (mark,) = (one for one in MARKS.values() if one.symbol == symbol)
        known = (mark.name.lower(), mark.plural, "on the timeline")
        assert words.strip().startswith(known), (page, symbol, words)


def test_a_mark_says_the_same_with_and_without_a_count():
    mark = MARKS["retry"]
    assert mark.said() == f"Retry: {mark.means}"
    assert [mark.said(count) for count in (1, 2_000)] == [
        f"1 retry: {mark.means}",
        f"2,000 retries: {mark.means}",
    ]
