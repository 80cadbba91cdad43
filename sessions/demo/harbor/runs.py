"""Outputs of the harbor's commands: test runs, type checks and deployments."""

from __future__ import annotations

import random
from collections.abc import Sequence

from sessions.demo.harbor.code import AREAS, Area


def passed(chance: random.Random, areas: Sequence[Area]) -> str:
    """A verbose test run of these areas in which everything passes."""
    lines = _head(sum(2 * len(area.fields) for area in areas))
    lines += _lines(chance, areas, "")
    many = sum(2 * len(area.fields) for area in areas)
    return "\n".join([*lines, "", f"==== {many} passed in {chance.uniform(1.8, 6):.2f}s ===="])


def failed(chance: random.Random, area: Area, field: str, value: int) -> str:
    """A verbose test run in which `value` should be over the limit and is not."""
    name = f"test_{area.thing}_{field}_over_the_limit"
    many = 2 * len(area.fields)
    trace = f"""
=================================== FAILURES ===================================
{name:_^80}

    def {name}():
        found = check_{area.thing}_{field}({value})
>       assert [one.code for one in found] == ["over the limit"]
E       AssertionError: assert [] == ['over the limit']
E         Right contains one more item: 'over the limit'

{area.test}:{chance.randint(12, 60)}: AssertionError
---------------------------- Captured stderr call ------------------------------
{_events(chance, area, 14)}
=========================== short test summary info ============================
FAILED {area.test}::{name} - AssertionError: assert [] == [...]
==== 1 failed, {many - 1} passed in {chance.uniform(1.2, 3):.2f}s ===="""
    return "\n".join([*_head(many), *_lines(chance, [area], name)]) + trace


def checked(chance: random.Random) -> str:
    """A type check and a lint run without findings, as chatty as they are in practice."""
    lines = [
        f"  checked harbor/{area.package}/{part}.py in {chance.randint(12, 240)} ms"
        for area in AREAS
        for part in ("rules", "store")
    ]
    return "\n".join(["mypy: 84 source files", *lines, "Success: no issues found", "ruff: clean"])


def applied(chance: random.Random, area: Area, size: int = 60) -> str:
    """A deployment of one service: pulled layers, replicas, and its first log lines."""
    layers = [
        f"{chance.getrandbits(48):012x}: pulled {chance.randint(1, 90)}.{chance.randint(0, 9)} MB "
        f"in {chance.randint(120, 4000)} ms"
        for _ in range(12)
    ]
    return "\n".join(
        [
            f"apply harbor-{area.package} on skarvik-2",
            *layers,
            _events(chance, area, size),
            f"replica 1 of harbor-{area.package}: up after {chance.randint(3, 9)} s",
            f"replica 2 of harbor-{area.package}: up after {chance.randint(3, 9)} s",
            f"harbor-{area.package}: applied",
        ]
    )


def committed(sha: str, subject: str, files: int) -> str:
    """What `git commit` prints."""
    return f"[main {sha}] {subject}\n {files} files changed, 5 insertions(+), 5 deletions(-)"


def _head(many: int) -> list[str]:
    return [
        "============================= test session starts ==============================",
        "platform linux -- Python 3.13.1, pytest-9.0.1, pluggy-1.6.0",
        "rootdir: /home/mara/harbor, configfile: pyproject.toml",
        f"collected {many} items",
        "",
    ]


def _lines(chance: random.Random, areas: Sequence[Area], failing: str) -> list[str]:
    found = []
    for area in areas:
        for field in area.fields:
            for what in ("at", "over"):
                name = f"test_{area.thing}_{field}_{what}_the_limit"
                state = "FAILED" if name == failing else "PASSED"
                found.append(f"{area.test}::{name} {state} [{chance.randint(1, 99):>3}%]")
    return found


def _events(chance: random.Random, area: Area, many: int) -> str:
    lines, at = [], chance.randint(0, 40_000)
    for _ in range(many):
        at += chance.randint(3, 900)
        field = chance.choice(area.fields)
        lines.append(
            f"{at // 1000 % 60:02}.{at % 1000:03} {area.package} worker={chance.randint(1, 4)} "
            f"read {area.thing}={chance.getrandbits(24):06x} {field}={chance.randint(10, 900)} "
            f"took={chance.randint(1, 90)}ms"
        )
    return "\n".join(lines)
