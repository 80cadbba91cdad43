"""By which line a failed call is known again."""

from __future__ import annotations

import pytest

from compaction.tools.failures import WIDTH, alike, signature


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Traceback (most recent call last):\n  File x\nKeyError: 'a'\n", "KeyError: 'a'"),
        ("Exit code 1\nbad things\nmake: *** [all] Error 2", "make: *** [all] Error 2"),
        ("ok\nerror[E0308]: mismatched types\n  --> src/a.rs:3", "error[E0308]: mismatched types"),
        ("TypeError: x\nthe command failed", "TypeError: x"),
        ("<tool_use_error>String not found</tool_use_error>", "String not found"),
        ("Exit code 2\n-----\nusage: x [-h]", "usage: x [-h]"),
        ("Chunk ID: a1\nWall time: 0 s\nProcess exited with code 1\nOutput:\n", ""),
        ("Exit code: 2\nWall time: 0 seconds\nOutput:\nno lamp\nno horn", "no lamp"),
        ("FAIL   a\t b", "FAIL a b"),
        ("The user doesn't want to proceed with this tool use. The tool use was", ""),
        ("\n \n-\n", ""),
        ("", ""),
    ],
)
def test_the_telling_line(text: str, line: str) -> None:
    assert signature(text) == line


def test_it_is_short_and_of_the_end() -> None:
    assert signature("KeyError: early\n" + "x" * 50_000) == "x" * WIDTH


def test_runs_differ_in_numbers_only() -> None:
    assert alike("Error at 0x7fa3, line 12") == alike("error at 0x1, line 340")
    assert alike("KeyError: a") != alike("KeyError: b")
