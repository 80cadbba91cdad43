"""Figures of benchmarks: written into the page with their commit, and read from it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import figures
from benchmarks.figures import BEGIN, END, Figure


def test_a_written_table_is_what_a_later_run_is_checked_against(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "speed.md"
    head = "| figure | measured | goal | commit, date |\n| --- | --- | --- | --- |\n"
    page.write_text(f"# Speed\n\n{BEGIN}{head}{END}\nrest\n")
    monkeypatch.setattr(figures, "PAGE", page)
    monkeypatch.setattr(figures, "commit_and_date", lambda: "abc1234, 2026-01-02")
    assert figures.check([Figure("a page: CPU, ms", 1_300, 2_000)]) == []
    figures.write([Figure("a page: CPU, ms", 1_300, 2_000), Figure("missed: s", 3, 2)])
    figures.write([Figure("rate", 10, 5, more=True)])
    written = page.read_text()
    assert written.startswith(
        f"# Speed\n\n{BEGIN}{head}| a page: CPU, ms | 1,300 | ≤ 2,000 | abc1234, 2026-01-02 |"
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


@pytest.mark.parametrize(("value", "worse"), [(-2.6, []), (-1.5, []), (-1.3, ["slope"])])
def test_a_figure_below_zero_is_checked_too(
    value: float, worse: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "speed.md"
    page.write_text(f"{BEGIN}| slope | -2 | ≤ 5 | abc1234 |\n{END}")
    monkeypatch.setattr(figures, "PAGE", page)
    assert figures.check([Figure("slope", value, 5)]) == worse
