"""Checks: which commands test, build and lint, and what their output reports."""

from __future__ import annotations

import pytest

from compaction.seen.checks import MOST_FAILING, check_kinds, state_of


@pytest.mark.parametrize(
    ("command", "kinds"),
    [
        ("pytest -q", ["Tests"]),
        ("cd /x && FOO=1 uv run pytest -q tests", ["Tests"]),
        (".venv/bin/python -m pytest", ["Tests"]),
        ("npx vitest run", ["Tests"]),
        ("npm test", ["Tests"]),
        ("yarn jest", ["Tests"]),
        ("go test ./... 2>&1 | tail -5", ["Tests"]),
        ("mise run test:ci", ["Tests"]),
        ("cargo clippy", ["Lint"]),
        ("go build ./... && go vet ./...", ["Build", "Lint"]),
        ("npm run build:prod", ["Build"]),
        ("npx tsc --noEmit", ["Build"]),
        ("make", ["Build"]),
        ("make -j4 check", ["Lint"]),
        ("mise run lint && mise run test && mise run test", ["Lint", "Tests"]),
        ("git commit -m 'fix test'", []),
        ("git commit -F - <<EOF\nfix\nmake test\nEOF", []),
        ("cat tests/test_a.py", []),
        ("echo build", []),
        ("go mod tidy", []),
        ("", []),
    ],
)
def test_kinds(command: str, kinds: list[str]) -> None:
    assert check_kinds(command) == kinds


@pytest.mark.parametrize(
    ("output", "error", "state"),
    [
        ("FAILED tests/a.py::test_b - x\n=== 1 failed, 3 passed in 1.2s ===", False,
         "failed; 1 failed, 3 passed in 1.2s; failing: tests/a.py::test_b"),
        ("===== 4 passed in 0.1s =====", False, "succeeded; 4 passed in 0.1s"),
        ("--- FAIL: TestA (0.1s)\nFAIL\nFAIL\tx/y\t1s\nok  \tz\t2s", False,
         "failed; 1 packages ok, 1 failed; failing: TestA"),
        ("ok  \ta\t2s\nok  \tb\t(cached)", False, "succeeded; 2 packages ok, 0 failed"),
        ("test a::b ... FAILED\ntest result: FAILED. 1 passed; 1 failed", True,
         "failed; test result: FAILED. 1 passed; 1 failed; failing: a::b"),
        ("Tests:       1 failed, 5 passed, 6 total\n  ● adds › two", True,
         "failed; Tests: 1 failed, 5 passed, 6 total; failing: adds › two"),
        (" 12 pass\n 0 fail", False, "succeeded; 12 pass; 0 fail"),
        ("0 issues.", False, "succeeded; 0 issues."),
        ("a.ts(1,2): error TS2304: Cannot find name", False, "failed"),
        ("", False, "succeeded"),
        ("", True, "failed"),
    ],
)  # fmt: skip
def test_states(output: str, error: bool, state: str) -> None:
    assert str(state_of(output, error)) == state


def test_issues_are_counts_of_a_linter_only() -> None:
    output = "0 issues.\n3 passed in 1s"
    assert state_of(output, False, "Lint").counts == "0 issues.; 3 passed in 1s"
    assert state_of(output, False, "Tests").counts == "3 passed in 1s"
    assert state_of("0 issues.\nok \ta\t1s", False, "Tests").counts == "1 packages ok, 0 failed"


def test_only_the_first_failing_tests_are_named() -> None:
    output = "\n".join(f"--- FAIL: Test{number}" for number in range(20))
    assert state_of(output, False).failing == tuple(f"Test{n}" for n in range(MOST_FAILING))
