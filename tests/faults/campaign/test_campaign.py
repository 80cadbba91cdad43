"""Every fault of the campaign has a test or a reason, and every marker names one."""

from __future__ import annotations

import re
from pathlib import Path

from tests.faults.campaign.faults import FAULTS, GROUPS
from tests.faults.campaign.table import Campaign, Result, markdown

TESTS = Path(__file__).parents[2]
ID = re.compile(r"\w+")
MARKS = re.compile(r"pytest\.mark\.fault\(([^)]*)\)")


def marked() -> set[str]:
    """Faults that tests play."""
    texts = (file.read_text() for file in TESTS.rglob("test_*.py"))
    return {
        name for text in texts for ids in MARKS.findall(text) for name in re.findall(r"\w+", ids)
    }


def test_every_fault_is_played_or_says_why_not() -> None:
    plays = marked()
    assert plays <= set(FAULTS), f"no such fault: {sorted(plays - set(FAULTS))}"
    silent = [name for name, fault in FAULTS.items() if name not in plays and not fault.untested]
    assert not silent, f"neither a test nor a reason: {silent}"
    both = [name for name in plays if FAULTS[name].untested]
    assert not both, f"a test and a reason: {both}"


def test_the_campaign_is_whole() -> None:
    many = dict(zip("ABCDEFGHIJKMR", (10, 12, 10, 8, 13, 17, 10, 10, 5, 6, 10, 7, 5), strict=True))
    assert list(GROUPS) == list(many)
    assert list(FAULTS) == [f"{group}{n}" for group in GROUPS for n in range(1, many[group] + 1)]


def test_a_row_shows_its_worst_test() -> None:
    campaign = Campaign()
    for outcome, why in (("passed", ""), ("skipped", "no Redis"), ("failed", "")):
        campaign.results["A1"]["tests/x.py::test_a"].append(Result(outcome, why))
    rows = {name: rest for name, *rest in campaign.rows()}
    assert rows["A1"] == ["tests/x.py::test_a", "failed"]
    assert campaign._row("A2") == ("", "not run")
    skipped = campaign.results["A2"]["tests/x.py::test_b"]
    skipped.append(Result("skipped", "no Redis"))
    assert campaign._row("A2")[1] == "skipped: no Redis"
    skipped.append(Result("passed", ""))
    assert campaign._row("A2")[1] == "passed (1)"
    assert "\n- **A2** " in markdown(campaign.rows())
