"""Runs the fault campaign and prints it as a table: `pytest -p tests.faults.campaign.table`."""

from __future__ import annotations

import datetime
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.faults.campaign.faults import FAULTS, GROUPS

FOLDER = Path(__file__).parents[1]
WORST = ("failed", "passed", "skipped")
"""The result of several: one failure fails a row, one pass is more than skips."""


class Result(NamedTuple):
    """How a test ended, and why if it was skipped."""

    outcome: str
    why: str


class Campaign:
    """Results of the tests of each fault."""

    def __init__(self) -> None:
        self.results: dict[str, dict[str, list[Result]]] = defaultdict(lambda: defaultdict(list))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a result, by the function without its parameters."""
        if report.passed and report.when != "call":
            return
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        function = report.nodeid.partition("[")[0]
        for name, fault in report.user_properties:
            if name == "fault":
                result = Result(report.outcome, why.removeprefix("Skipped: "))
                self.results[str(fault)][function].append(result)

    def rows(self) -> list[tuple[str, str, str]]:
        """Fault, tests and result of every row."""
        return [(name, *self._row(name)) for name in FAULTS]

    def _row(self, name: str) -> tuple[str, str]:
        if FAULTS[name].untested:
            return "", f"not tested: {FAULTS[name].untested}"
        tests = self.results.get(name)
        if not tests:
            return "", "not run"
        results = [one for several in tests.values() for one in several]
        worst = next(one for one in WORST if any(result.outcome == one for result in results))
        many = sum(result.outcome == worst for result in results)
        said = {result.why for result in results if result.why} if worst == "skipped" else set()
        shown = [worst if worst != "passed" else f"passed ({many})", *sorted(said)]
        return ", ".join(tests), ": ".join(shown)

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        """Print the table, and write it where that is asked for."""
        rows = self.rows()
        terminalreporter.section("faults")
        for name, tests, result in rows:
            terminalreporter.write_line(f"{name:4} {result:12} {FAULTS[name].what}")
            for test in filter(None, tests.split(", ")):
                terminalreporter.write_line(f"{'':18}{test}")
        if place := config.getoption("--faults-table"):
            Path(place).write_text(markdown(rows))


def markdown(rows: list[tuple[str, str, str]]) -> str:
    """The faults as a page of the docs."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=FOLDER
    ).stdout.strip()
    passed = sum(result.startswith("passed") for _, _, result in rows)
    lines = [
        "# Fault campaign",
        "",
        f"`make faults` at commit {commit} on {datetime.date.today()}: {passed} of {len(rows)}"
        " faults passed; a row says so if its own did not. After the semicolon: what holds; after"
        " *here*: what the tests do less of."
        " `grep -rn '\"A1\"' tests` finds the tests of A1.",
    ]
    for name, _, result in rows:
        if name[1:] == "1":
            lines += ["", f"## {GROUPS[name[0]]}", ""]
        fault = FAULTS[name]
        what = f"{fault.what} (*here*: {fault.part})" if fault.part else fault.what
        what += "" if result.startswith("passed") else f": {result}"
        lines.append(f"- **{name}** {what}")
    return "\n".join(lines) + "\n"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The place of the written table."""
    parser.addoption("--faults-table", metavar="FILE", help="write the table of faults as Markdown")


def pytest_configure(config: pytest.Config) -> None:
    """Listen to the results."""
    config.pluginmanager.register(Campaign(), "campaign")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep tests that play a fault, and all of this folder."""
    others = []
    for item in list(items):
        faults = [name for mark in item.iter_markers("fault") for name in mark.args]
        item.user_properties += [("fault", name) for name in dict.fromkeys(faults)]
        if not faults and FOLDER not in item.path.parents:
            others.append(item)
            items.remove(item)
    config.hook.pytest_deselected(items=others)
