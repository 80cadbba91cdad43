"""When a compaction is Good, Fair or Weak: by what it removed, and by what came after."""

from __future__ import annotations

from typing import Any

import pytest

from sessions.actions.web.verdicts import EventVerdict, Tone
from sessions.views.reviews.quality import with_targets


def measure(name: str, met: bool) -> dict[str, Any]:
    return {"name": name, "unit": "share", "value": 1, "of": 1, "met": met}


def needed(state: str, count: int) -> list[dict[str, Any]]:
    """Facts of a ledger that later calls named."""
    return [
        {"key": f"{state}{i}", "fact": "port_8417", "kind": "identifier", "state": state,
         "weight": 1.0, "block": 1, "needed": 9}
        for i in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("tone", "measures", "facts", "sentence"),
    [
        ("good", [measure("changed", True)], [], "Good: nothing was needed."),
        ("neutral", [measure("changed", True)], [], "Fair: nothing was needed."),
        ("bad", [measure("changed", True)], [], "Weak: nothing was needed."),
        ("good", [measure("gain", False)], [], "Fair: too little was removed; nothing was needed."),
        ("good", [measure("changed", False)], [],
         "Weak: too much was removed; nothing was needed."),
        ("good", [measure("changed", True)], needed("lost", 1) + needed("named", 10),
         "Good: nothing was needed."),
        ("good", [measure("changed", True)], needed("lost", 1) + needed("named", 9),
         "Weak: too much was removed; nothing was needed."),
        ("good", [], [], "Nothing was needed."),
    ],
)  # fmt: skip
def test_a_verdict_joins_what_was_removed_and_what_came_after(
    tone: Tone, measures: list[dict[str, Any]], facts: list[dict[str, Any]], sentence: str
):
    found = with_targets(EventVerdict(tone, "Nothing was needed."), measures, facts)
    assert found.sentence == sentence


def test_a_verdict_names_the_targets_that_are_missed_and_no_other() -> None:
    verdict = EventVerdict("neutral", "Nothing was needed.")
    names = [measure("identifiers", False), measure("changed", True), measure("errors", None)]
    found = with_targets(verdict, names, [])
    assert found.detail == "1 of 2 targets for a good compaction met; missed: names kept."
    found = with_targets(verdict, [measure("changed", True)], [])
    assert found.detail == "1 of 1 targets for a good compaction met."
    missed = ("identifiers", "numbers", "errors", "gain", "target")
    found = with_targets(verdict, [measure(one, False) for one in missed], [])
    assert found.detail.endswith(
        "missed: names kept, numbers and links kept, errors covered, 2 more."
    )
