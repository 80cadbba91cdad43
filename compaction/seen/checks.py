"""Test, build and lint runs: which commands they are, and what their output reports."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

CheckKind = Literal["Tests", "Build", "Lint"]

LOOK_AT = 40_000
"""Code points read from the end of an output."""

MOST_FAILING = 6
"""Failing tests named, the first (our choice)."""

_STAGES = re.compile(r"&&|\|\||[;|\n]")

_WRAPPERS = frozenset(
    {"time", "sudo", "env", "uv", "poetry", "pipenv", "npx", "bunx", "pnpm", "yarn", "npm", "bun",
     "python", "python3", "-m", "run", "exec", "xvfb-run"}
)  # fmt: skip
"""Words before the program that is run."""

_PROGRAMS: dict[str, CheckKind] = {
    **dict.fromkeys(
        ("pytest", "py.test", "unittest", "jest", "vitest", "mocha", "ctest", "rspec", "phpunit",
         "tox", "playwright"), "Tests"),
    **dict.fromkeys(
        ("ruff", "eslint", "golangci-lint", "mypy", "prettier", "biome", "pyright", "flake8",
         "clippy"), "Lint"),
    **dict.fromkeys(("tsc", "webpack", "cmake", "ninja"), "Build"),
}  # fmt: skip

_RUNNERS = frozenset(
    {"make", "just", "mise", "task", "go", "cargo", "gradle", "gradlew", "mvn", "dotnet", "swift",
     "mix", "rake", "nx", "turbo", "deno", "bazel", "vite", "next", "hatch"}
)  # fmt: skip
"""Programs whose first arguments say what they do."""

_TARGETS: tuple[tuple[str, CheckKind], ...] = (
    ("test", "Tests"), ("spec", "Tests"), ("lint", "Lint"), ("vet", "Lint"), ("clippy", "Lint"),
    ("typecheck", "Lint"), ("check", "Lint"), ("build", "Build"), ("compile", "Build"),
)  # fmt: skip

_COUNTS = re.compile(
    r"\b\d+ (?:tests? |checks? )?(?:passed|failed|passing|failing|pass|fail|errors?|issues?)\b"
    r"|\btest result:|\bTests:? +\d|\bBUILD (?:SUCCESS|FAIL)|\bRan \d+ tests?\b",
    re.IGNORECASE,
)
_ISSUES = re.compile(r"\b\d+ issues?\b", re.IGNORECASE)
_FAILED = re.compile(
    r"^(?:FAIL|--- FAIL|FAILED)\b|\b[1-9]\d* (?:tests? )?(?:failed|failing|fail|errors?)\b"
    r"|\bBUILD FAIL|\btest result: FAILED|\berror: could not compile|\berror TS\d"
    r"|\bERROR task failed",
    re.MULTILINE,
)
_NAMES = re.compile(
    r"^(?:FAILED|ERROR) ([\w./\[\]:-]{4,200})|--- FAIL: ([^\s(]{2,200})"
    r"|^test ([\w:]{2,200}) \.\.\. FAILED|^[ \t]*(?:●|✗|✕|×|\(fail\)|not ok \d+ -) ([^\n]{3,160})",
    re.MULTILINE,
)


class CheckState(NamedTuple):
    """What a run reported: counts verbatim and the names of failing tests, both possibly empty."""

    failed: bool
    counts: str
    failing: tuple[str, ...]

    def __str__(self) -> str:
        parts = ["failed" if self.failed else "succeeded"]
        if self.counts:
            parts.append(self.counts)
        if self.failing:
            parts.append(f"failing: {', '.join(self.failing)}")
        return "; ".join(parts)


def check_kinds(command: str) -> list[CheckKind]:
    """Return the kinds of checks that a command line runs, in order, once each."""
    line = command[:2_000].partition("<<")[0]
    stages = (_kind(stage.split()[:8]) for stage in _STAGES.split(line))
    return list(dict.fromkeys(kind for kind in stages if kind is not None))


def _kind(words: list[str]) -> CheckKind | None:
    while words and ("=" in words[0] or words[0].rsplit("/", 1)[-1] in _WRAPPERS):
        if words[0] in ("npm", "pnpm", "yarn", "bun") and words[1:2] != ["exec"]:
            return _PROGRAMS.get("".join(words[1:2])) or _target(words[1:])
        words = words[1:]
    if not words:
        return None
    name = words[0].rsplit("/", 1)[-1]
    if name == "make" and not words[1:]:
        return "Build"
    return _PROGRAMS.get(name) or (_target(words[1:]) if name in _RUNNERS else None)


def _target(words: list[str]) -> CheckKind | None:
    targets = [word.lower() for word in words if not word.startswith("-") and word != "run"][:1]
    return next((kind for part, kind in _TARGETS for word in targets if part in word), None)


def state_of(output: str, error: bool, kind: CheckKind | None = None) -> CheckState:
    """Read the state of a run from its output; output shown by a pipe hides the exit status.

    Of a run of several kinds of checks, the counts are those of `kind`.
    """
    text = output[-LOOK_AT:]
    named = (next(filter(None, found)).strip() for found in _NAMES.findall(text))
    failing = tuple(dict.fromkeys(named))[:MOST_FAILING]
    failed = error or bool(failing) or _FAILED.search(text) is not None
    return CheckState(failed, _counts(text, kind), failing)


def _counts(text: str, kind: CheckKind | None) -> str:
    lines = [line.strip(" =\t") for line in text.splitlines()[-60:] if _COUNTS.search(line[:400])]
    lines = [line for line in lines if kind in (None, "Lint") or not _ISSUES.search(line[:400])]
    if lines:
        return "; ".join(" ".join(line.split())[:120] for line in lines[-2:])
    packages = [
        line.split(None, 1)[0]
        for line in text.splitlines()
        if line.startswith(("ok ", "ok\t", "FAIL\t"))
    ]
    good, bad = packages.count("ok"), packages.count("FAIL")
    return f"{good} packages ok, {bad} failed" if good else ""
