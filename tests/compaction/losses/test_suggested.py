"""What measures suggest for each rating."""

from __future__ import annotations

from compaction.losses.quality import Measure
from compaction.losses.suggested import RatingSuggestion, suggested


def test_each_rating_has_its_measure() -> None:
    found = [
        Measure("messages", "share", 16, 20, False),
        Measure("todos", "share", None, 0),
        Measure("changed", "share", 8, 9, False),
        Measure("open_errors", "share", 0, 2, False),
        Measure("sections", "share", 9, 9, True),
        Measure("unsupported", "count", 1, None, False),
    ]
    assert suggested(found, "over") == {
        "constraints": RatingSuggestion(4, "16 of 20 replaced user messages covered"),
        "goal": RatingSuggestion(None, "9 of 9 sections present"),
        "state": RatingSuggestion(1, "8 of 9 changed files named, 0 of 2 open errors covered"),
        "invention": RatingSuggestion(False, "1 unsupported fact"),
        "verdict": RatingSuggestion("fix", "too much was removed"),
    }
    assert suggested([], "right") == {}
    assert suggested(found, "right")["verdict"].value == "pass"
