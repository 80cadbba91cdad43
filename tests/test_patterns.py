"""Every pattern that meets stored content takes time linear in it, whatever the content is."""

import ast
import importlib.util
import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import compaction
import contextlab
import sessions
from compaction.cache.rules import RULES
from compaction.losses import life
from compaction.policies import yaml
from sessions.models.search import search_words
from tests.hostile import METHODS, Case

HOSTILE = Path(__file__).with_name("hostile.py")
AT_ONCE = 40
"""Patterns per process."""

NEVER_STORED = {
    "contextlab.docs.lists": "reads the docs of this checkout",
    "contextlab.docs.recipes": "reads the docs of this checkout",
    "compaction.records": "reads the sources of this package",
    "sessions.demo.workspace": "searches the demo's own files",
    "sessions.demo.player": "reads the demo's own scripts",
}
"""Modules whose patterns see no stored content, and why."""

BOUNDED = {
    "compaction.topic.topic._ANNOUNCED": 400,
    "compaction.topic.topic._GOES_ON": 400,
    "compaction.topic.topic._CODE": 200,
    r"(?i)(?:sha\d{1,3}[-:]|base64,|[#@&%]|://[^\s]*|\\)$": 12,
}
"""Patterns that their callers apply to a slice of so many characters."""

SEARCHED = ("load_all", "a (b)* 8417 ..", "x" * 60)
FROM_RECORDS = {
    "rule.models": [rule.models for rule in RULES],
    # Words that people search for, escaped.
    "re.escape(text)": [re.escape(text) for text in SEARCHED],
    "_pattern(piece.text)": [search_words._pattern(text) for text in SEARCHED],
    "'|'.join(map(_marked, parts))": ["|".join(map(search_words._marked, SEARCHED))],
    "before + re.escape(text) + after": [life._pattern_of(text).pattern for text in SEARCHED],
    "_alone(text)": [search_words._alone(text) for text in SEARCHED],
    "pattern": [
        found.pattern for tags in yaml._Loader.yaml_implicit_resolvers.values() for _, found in tags
    ],
}
"""Patterns that records name as text, by the expression that applies them."""


def modules() -> Iterator[ModuleType]:
    for package in (compaction, sessions, contextlab):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            spec = importlib.util.find_spec(found.name)
            # Only those: importing all would start the server's event loop, among other things.
            if found.name not in NEVER_STORED and re.search(
                r"^import re$", source(spec.origin), re.M
            ):
                yield importlib.import_module(found.name)


def source(path: str | None) -> str:
    assert path is not None
    return Path(path).read_text()


def compiled(value: Any, depth: int = 3) -> Iterator[re.Pattern[Any]]:
    """Yield the patterns in a value, inside containers and records too."""
    if isinstance(value, re.Pattern):
        yield value
    elif depth and isinstance(value, (tuple, list, set, frozenset)):
        for one in islice(value, 1000):
            yield from compiled(one, depth - 1)
    elif depth and isinstance(value, dict):
        yield from compiled([*islice(value, 1000), *islice(value.values(), 1000)], depth - 1)
    elif depth and hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        fields = [getattr(value, name, None) for name in value.__dataclass_fields__]
        yield from compiled(fields, depth - 1)


class Patterns(dict[re.Pattern[Any], set[str]]):
    """The patterns of the code base, and the methods that each is used with."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[re.Pattern[Any], str] = {}
        self.unknown: list[str] = []
        for module in modules():
            for name, value in vars(module).items():
                for pattern in compiled(value):
                    self.names.setdefault(pattern, f"{module.__name__}.{name}")
                    self.setdefault(pattern, set())
            self._read(module)

    def _read(self, module: ModuleType) -> None:
        tree = ast.parse(source(module.__file__))
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                held = getattr(module, node.value.id, None)
                if isinstance(held, re.Pattern) and node.attr in METHODS:
                    self[held].add(node.attr)
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re."):
                self._inline(module, node)

    def _inline(self, module: ModuleType, call: ast.Call) -> None:
        name = ast.unparse(call.func).removeprefix("re.")
        if name not in {*METHODS, "compile"} or not call.args:
            return
        where = f"{module.__name__}:{call.lineno}"
        text = ast.unparse(call.args[0])
        try:
            # What a module names has been found; evaluated, it may be made of parts.
            texts = FROM_RECORDS.get(text) or [eval(text, vars(module))]
        except NameError:
            return self.unknown.append(f"{where}: {text}")
        for one in texts:
            flags = (
                eval(ast.unparse(call.args[1]), vars(module))
                if name == "compile" and call.args[1:]
                else 0
            )
            pattern = re.compile(one, flags)
            self.names.setdefault(pattern, where)
            self.setdefault(pattern, set()).update({name} - {"compile"})

    def cases(self) -> dict[str, Case]:
        """One case for each pattern, by its name."""
        return {self.names[pattern]: self.case(pattern) for pattern in self}

    def case(self, pattern: re.Pattern[Any]) -> Case:
        text = pattern.pattern
        latin = isinstance(text, bytes)
        text = text.decode("latin-1") if latin else text
        longest = BOUNDED.get(self.names[pattern]) or BOUNDED.get(text) or 0
        return Case(text, pattern.flags, latin, sorted(self[pattern] or {"search"}), longest)


def judged(cases: list[Case], seconds: float = 20) -> list[list[str]]:
    """The faults of each case, found in processes that end when a case takes too long."""
    found: list[list[str]] = []
    while len(found) < len(cases):
        lines = [json.dumps(case) for case in cases[len(found) :][:AT_ONCE]]
        done = subprocess.run(
            [sys.executable, "-S", str(HOSTILE), str(seconds)],
            input="\n".join(lines), capture_output=True, text=True,
        )  # fmt: skip
        found += map(json.loads, done.stdout.splitlines())
        if done.returncode:
            found.append([f"it took too long: {done.stderr[-300:] or done.returncode}"])
    return found


@pytest.mark.fault("F11")
def test_every_pattern_is_linear_in_hostile_content():
    patterns = Patterns()
    assert not patterns.unknown, "name these in FROM_RECORDS, or make them constants of a module"
    cases = patterns.cases()
    assert len(cases) > 130
    assert {*BOUNDED} <= {*cases, *(case.pattern for case in cases.values())}
    found = dict(zip(cases, judged(list(cases.values())), strict=True))
    assert {name: faults for name, faults in found.items() if faults} == {}


def test_what_is_not_linear_is_found():
    """Patterns that froze the server, and textbook ones; none of them hangs the test."""
    slow = [r"^\s*(?:error|fail)", r"(a+)+$", r"<title[^>]*>x", r"“[^”]+”"]
    quick = [r"^[^\S\n]*(?:error|fail)", r"a+", r"<title[^<>]*>x", r"“[^“”]+”"]
    cases = [Case(one, int(re.M), False, ["findall"], 0) for one in (*slow, *quick)]
    found = judged(cases, seconds=2)
    assert [bool(faults) for faults in found] == [True] * len(slow) + [False] * len(quick)
