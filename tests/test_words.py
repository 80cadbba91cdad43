"""The words of the product: none of its own making where the field has one, one name for one thing.

Read are documents, docstrings, the help of commands, and the text of templates and islands.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGES = ("compaction", "sessions", "contextlab")

BANNED = re.compile(
    r"\b("
    r"served|unserved|(hand(s|ed|ing)?|given) out|unmanaged|"
    r"what (stood|was handed out)|(needs?|recall) in place|"
    r"lifetimes?|ran out|dear(er|est)|cheaper by|re-writes?|written anew|anew|"
    r"told|predicted|thing named|placeholder that stands|stands? for|stood for|"
    r"(let|lets|letting) go|(give|gives|gave|giving) way|(hold|holds|held) back|"
    r"peak window use|anchors? (&|and|&amp;) memory|tending|"
    r"thereof|whereof|wherefrom|whoever|whomever|for whom|(is|are|was|were) to be|"
    r"somebody|nobody|the session in the middle|makes? it and join"
    r")\b",
    re.IGNORECASE,
)
"""Words that are ruled out wherever people read them."""

STILL_TO_COME: dict[str, int] = {
    "compaction/cache": 1,
    "frontend/src": 17,
    "templates/accounts": 11,
    "templates/jobs": 1,
    "templates/lab": 2,
    "templates/memory": 5,
    "templates/policies": 6,
    "templates/replay": 4,
    "templates/reviews": 4,
    "templates/tools": 3,
}
"""Hits that are left, by folder or file. An entry only shrinks, and one without a hit goes."""

MIRRORED = {
    *("Block", "Call", "Edit", "Entry", "Message", "Policy", "Revision", "Run", "Session"),
    "ToolGraph",
}
"""Names of a value in the engine that are also those of its row, its record in a log, or its
client."""


def _modules() -> Iterator[tuple[Path, ast.Module]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path, ast.parse(path.read_text())


def _docstrings(tree: ast.Module) -> Iterator[str]:
    """Yield docstrings, those of constants and fields included."""
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        for statement in node.body if isinstance(node, owners) else []:
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value.value


def _help(tree: ast.Module) -> Iterator[str]:
    """Yield what a command's `help` and `description` say."""
    for node in ast.walk(tree):
        pairs: list[tuple[str | None, ast.expr]] = []
        if isinstance(node, ast.Call):
            pairs = [(one.arg, one.value) for one in node.keywords]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            pairs = [(node.targets[0].id, node.value)]
        for name, value in pairs:
            if name in ("help", "description", "help_text", "epilog"):
                yield " ".join(
                    part.value
                    for part in ast.walk(value)
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                )


def _visible(markup: str) -> str:
    """Reduce a template or island to its text and to attributes that are read out."""
    markup = re.sub(r"(?s)<(script|style)\b.*?</\1>|<!--.*?-->|\{#.*?#\}", " ", markup)
    read_out = re.findall(r'\b(?:title|alt|placeholder|aria-label)="([^"]*)"', markup)
    text = re.sub(r"(?s)\{%.*?%\}|\{\{.*?\}\}|<[^>]*>", " ", markup)
    return " ".join([text, *read_out])


def _read(path: Path) -> str:
    return path.read_text()


def _texts() -> Iterator[tuple[Path, str]]:
    for path in [*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        if path.name != "decisions.md":  # what was said then
            yield path, _read(path)
    for path, tree in _modules():
        yield path, "\n".join((*_docstrings(tree), *_help(tree)))
    for path in (*ROOT.glob("templates/**/*.*"), *ROOT.glob("frontend/src/**/*.svelte")):
        if path.suffix in (".html", ".txt", ".svelte"):
            yield path, _visible(_read(path))


@cache
def _hits() -> dict[str, list[str]]:
    """Return the banned words of each file, by its path in the repository."""
    found: dict[str, list[str]] = {}
    for path, text in _texts():
        if words := [match[0] for match in BANNED.finditer(text)]:
            found[str(path.relative_to(ROOT))] = words
    return found


def _entry_of(name: str) -> str | None:
    """Return the longest entry of STILL_TO_COME that covers a file."""
    covering = [one for one in STILL_TO_COME if name == one or name.startswith(f"{one}/")]
    return max(covering, key=len, default=None)


def test_no_banned_word_is_read_anywhere_else() -> None:
    wrong = {name: words for name, words in _hits().items() if _entry_of(name) is None}
    assert wrong == {}


@pytest.mark.parametrize("entry", sorted(STILL_TO_COME))
def test_what_is_still_to_come_only_shrinks(entry: str) -> None:
    left = sum(len(words) for name, words in _hits().items() if _entry_of(name) == entry)
    assert left > 0, "nothing is left: remove the entry"
    assert left <= STILL_TO_COME[entry], f"{left} hits: {_hits_of(entry)}"


def _hits_of(entry: str) -> dict[str, Counter[str]]:
    return {name: Counter(words) for name, words in _hits().items() if _entry_of(name) == entry}


def test_no_docstring_begins_with_the_same() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {text.splitlines()[0]}"
        for path, tree in _modules()
        for text in _docstrings(tree)
        if text.lstrip().startswith("The same")
    ]
    assert wrong == []


def test_a_class_name_names_one_thing() -> None:
    """Each value of the engine may be mirrored once in each package, and in records of logs."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, tree in _modules():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name != "Command":
                places[node.name].append(str(path.relative_to(ROOT)))
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert twice.keys() == MIRRORED, {name: twice.get(name) for name in twice.keys() ^ MIRRORED}
    for found in twice.values():
        inside = Counter(path.split("/")[0] for path in found if "/importers/" not in path)
        assert max(inside.values()) == 1, found


@pytest.mark.parametrize(
    ("text", "hit"),
    [
        ("Contexts that were handed out.", "handed out"),
        ("A cache lifetime.", "lifetime"),
        ("What is to be sent.", "is to be"),
        ("Nobody chose it.", "Nobody"),
        ("The TTL of a managed context.", None),
        ("A reserved amount, preserved.", None),
    ],
)
def test_what_is_banned(text: str, hit: str | None) -> None:
    match = BANNED.search(text)
    assert (match[0] if match else None) == hit


def test_markup_is_reduced_to_what_is_read() -> None:
    shown = _visible('<p title="told">a {{ told }}<script>let told</script>{% if told %}b</p>')
    assert shown.split() == ["a", "b", "told"]
