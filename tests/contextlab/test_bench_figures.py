"""Figures of benchmarks: kept with their commit, summed up on the page, and checked later."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import figures
from benchmarks.figures import BEGIN, END, Figure, kept, table

HEAD = "| figure | measured | goal | commit, date |\n| --- | --- | --- | --- |\n"


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty page and no kept figures."""
    page, kept = tmp_path / "speed.md", tmp_path / "figures.json"
    page.write_text(f"# Speed\n\n{BEGIN}{HEAD}{END}\nrest\n")
    kept.write_text("{}")
    monkeypatch.setattr(figures, "PAGE", page)
    monkeypatch.setattr(figures, "KEPT", kept)
    monkeypatch.setattr(figures, "commit_and_date", lambda: "abc1234, 2026-01-02")
    return page


def test_what_is_written_is_what_a_later_run_is_checked_against(page: Path) -> None:
    assert figures.check([Figure("a page: CPU, ms", 1_300, 2_000)]) == []
    figures.write([Figure("a page: CPU, ms", 1_300, 2_000), Figure("missed: s", 3, 2)])
    figures.write([Figure("rate", 10, 5, more=True)])
    written = page.read_text()
    assert written.startswith(
        f"# Speed\n\n{BEGIN}{HEAD}| a page: CPU, ms | 1,300 | ≤ 2,000 | abc1234, 2026-01-02 |"
    )
    assert "| missed: s | 3 | ≤ 2 (missed) | abc1234, 2026-01-02 |" in written
    assert "| rate | 10 | ≥ 5 | abc1234, 2026-01-02 |" in written
    assert written.endswith(f"{END}\nrest\n")
    assert figures.check([Figure("a page: CPU, ms", 1_691, 2_000)]) == ["a page: CPU, ms"]
    assert (
        figures.check([Figure("a page: CPU, ms", 1_689, 2_000), Figure("rate", 8, 5, more=True)])
        == []
    )
    assert figures.check([Figure("rate", 7, 5, more=True), Figure("new", 1, 2)]) == ["rate"]
    figures.write([Figure("rate", 7, 5, more=True)])
    assert figures.check([Figure("rate", 7, 5, more=True)]) == []


def test_pages_and_answers_are_a_row_and_what_misses_its_goal_is_named() -> None:
    found = [
        Figure(f"page {name}: LCP, ms", value, 1_200) for name, value in (("a", 160), ("b", 500))
    ]
    found += [Figure("page c: LCP, ms", 1_300, 1_200)]
    found += [
        Figure(f"replay-page {name}: LCP, ms", value, 1_500)
        for name, value in (("d", 344), ("i", 1_300))
    ]
    found += [Figure(f"{name}, 200,000 sessions: CPU, ms", 50, 100) for name in "ef"]
    found += [Figure("h 1 to 9: s", 1, 3), Figure("h 10 to 99: s", 4, 3)]
    found += [Figure(f"g, {of}, 200,000 sessions: CPU, ms", 101, 100) for of in ("all", "x=")]
    assert table(dict.fromkeys(found, "x")).splitlines()[2:] == [
        "| g, 200,000 sessions: CPU, ms | 101 | ≤ 100 (missed) | x |",
        "| h: s | 1 to 4 | ≤ 3 (missed) | x |",
        "| other answers, 200,000 sessions: CPU, ms | 50 | ≤ 100 | x |",
        "| other pages: LCP, ms | 160 to 500 | ≤ 1,200 | x |",
        "| page c: LCP, ms | 1,300 | ≤ 1,200 (missed) | x |",
        "| replay pages: LCP, ms | 344 to 1,300 | ≤ 1,500 | x |",
    ]


@pytest.mark.parametrize(("value", "worse"), [(-2.6, []), (-1.5, []), (-1.3, ["slope"])])
def test_a_figure_below_zero_is_checked_too(value: float, worse: list[str], page: Path) -> None:
    figures.write([Figure("slope", -2, 5)])
    assert figures.check([Figure("slope", value, 5)]) == worse


def test_the_page_shows_what_is_kept() -> None:
    assert table(kept()) in figures.PAGE.read_text()


def test_no_two_rows_of_the_page_have_one_name() -> None:
    rows = [line.split(" | ")[0] for line in table(kept()).splitlines()[2:]]
    assert len(rows) == len(set(rows)) > 15
