"""`make run` says what it does before each thing that takes seconds."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_line_comes_before_each_command_that_takes_seconds() -> None:
    recipe = re.search(r"^run: .*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    assert recipe is not None
    lines = recipe[1].splitlines()
    for command in ("contextlab migrate", "contextlab demo"):
        (at,) = (number for number, line in enumerate(lines) if command in line)
        assert lines[at - 1].startswith("\t@echo "), command
