"""Error lines: those that distinguish a failure."""

from __future__ import annotations

import pytest

from compaction.seen.errors import error_lines, never_ran


@pytest.mark.parametrize(
    ("output", "lines"),
    [
        ("Exit code 1\n# example.io/cli/list\nlist/tree.go:42:24: cannot use x as string",
         ["list/tree.go:42:24: cannot use x as string"]),
        ("Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\n"
         "KeyError: 'name'\n", ['File "a.py", line 3, in f', "KeyError: 'name'"]),
        ("E       assert 1 == 2\nE       KeyError: 'x'\nFAILED\n=== 1 failed ===",
         ["E       assert 1 == 2", "E       KeyError: 'x'"]),
        ("make: *** [all] Error 2\nnpm ERR! code 1\nerror: script \"t\" exited with code 1\n"
         "[lint] ERROR task failed", []),
        ("<tool_use_error>File does not exist.</tool_use_error>", ["File does not exist."]),
        ("all is well", []),
        ("", []),
    ],
)  # fmt: skip
def test_lines(output: str, lines: list[str]) -> None:
    assert error_lines(output, 2) == lines


def test_known_lines_are_left_out_and_a_place_counts() -> None:
    output = "error: first\nerror: second\na.py:3: error: third"
    assert error_lines(output, 1) == ["a.py:3: error: third"]
    assert error_lines(output, 2) == ["error: first", "a.py:3: error: third"]
    assert error_lines(output, 2, {"error: first"}) == ["error: second", "a.py:3: error: third"]


def test_both_ends_of_a_long_output_are_read() -> None:
    middle = "nothing here\n" * 20_000
    assert error_lines(f"error: at first\n{middle}error: in the end", 2) == [
        "error: at first", "error: in the end",
    ]  # fmt: skip


def test_a_merge_conflict_says_more_than_a_merge() -> None:
    output = "Auto-merging a.py\nCONFLICT (content): Merge conflict in a.py\nAutomatic merge failed"
    assert error_lines(output, 1) == ["CONFLICT (content): Merge conflict in a.py"]


def test_cancelled_calls_never_ran() -> None:
    assert never_ran("<tool_use_error>Sibling tool call errored</tool_use_error>")
    assert never_ran("Cancelled: parallel tool call Bash(ls) errored")
    assert not never_ran("Error: Sibling tool call errored")
