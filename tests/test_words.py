"""The words of the product: none of its own making where the field has one, one name for one thing.

It reads documents, docstrings, comments, what commands, pages and answers say, the text of
templates, and islands with all their code.
"""

from __future__ import annotations

import ast
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from io import StringIO
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGES = ("compaction", "sessions", "contextlab")
SCRIPTS = ("frontend", "clients/typescript")
"""Folders of TypeScript, each with its README."""

BANNED = re.compile(
    r"\b("
    r"served|unserved|(hand(s|ed|ing)?|given) out|unmanaged|"
    r"what (stood|was handed out)|(needs?|recall) in place|"
    r"lifetimes?|ran out|dear(er|est)|cheaper by|re-writes?|written anew|anew|"
    r"told|predicted|thing named|placeholder that stands|stands? for|stood for|"
    r"(let|lets|letting) go|(give|gives|gave|giving) way|(hold|holds|held) back|"
    r"peak window use|anchors? (&|and|&amp;) memory|tending|"
    r"thereof|whereof|wherefrom|whoever|whomever|for whom|(is|are|was|were) to be|"
    r"somebody|nobody|of which|the same with|the session in the middle|makes? it and join"
    r")\b",
    re.IGNORECASE,
)
"""Words that are ruled out wherever people read them."""

RECORDS = ("CHANGELOG.md", "decisions.md")

MIRRORED = {
    *("Block", "Call", "Edit", "Entry", "Message", "Policy", "Revision", "Run", "Session"),
    "ToolGraph",
}
"""Names of a value in the engine that are also those of its row, its record in a log, or its
client."""


def _modules() -> Iterator[tuple[Path, ast.Module]]:
    """Yield trees one at a time: kept, they would be walked by every garbage collection."""
    for path in _sources(*PACKAGES):
        yield path, ast.parse(path.read_text())


def _sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "migrations" not in path.parts and path != Path(__file__):
                yield path


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


def _sentences(tree: ast.Module) -> Iterator[str]:
    """Yield string constants of more than one word: what pages, answers and commands say."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.value


def _comments(source: str) -> str:
    """Return the comments of a Python file."""
    tokens = tokenize.generate_tokens(StringIO(source).readline)
    return "\n".join(token.string for token in tokens if token.type == tokenize.COMMENT)


def _frontend_comments(source: str) -> str:
    return "\n".join(re.findall(r"(?s)/\*.*?\*/|<!--.*?-->|(?<!:)//[^\n]*", source))


def _visible(markup: str) -> str:
    """Reduce a template or island to its text and to attributes that are read out."""
    markup = re.sub(r"(?s)<(script|style)\b.*?</\1>|<!--.*?-->|\{#.*?#\}", " ", markup)
    read_out = re.findall(r'\b(?:title|alt|placeholder|aria-label)="([^"]*)"', markup)
    text = re.sub(r"(?s)\{%.*?%\}|\{\{.*?\}\}|<[^>]*>", " ", markup)
    return " ".join([text, *read_out])


def _documents() -> Iterator[Path]:
    yield from ROOT.glob("docs/**/*.md")
    yield from ROOT.glob("benchmarks/**/*.md")
    yield from (
        ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile")
    )
    yield from (ROOT / name / "README.md" for name in (*SCRIPTS, "clients/python"))


def _texts() -> Iterator[tuple[Path, str]]:
    for path in _documents():
        text = path.read_text()
        # A changelog names what was renamed, and decisions what was said then, as code.
        yield path, re.sub(r"`[^`]*`", "", text) if path.name in RECORDS else text
    for path in _sources(*PACKAGES, "tests", "benchmarks", "tools"):
        source = path.read_text()
        tree = ast.parse(source)
        # To find comments takes most of the time, and most files have no such word at all.
        comments = _comments(source) if BANNED.search(source) else ""
        speaks = path.relative_to(ROOT).parts[0] in ("sessions", "contextlab")
        said = _sentences(tree) if speaks else ()
        yield path, "\n".join((*_docstrings(tree), *_help(tree), *said, comments))
    for path in (*ROOT.glob("templates/**/*.*"), *ROOT.glob("frontend/src/**/*.svelte")):
        if path.suffix in (".html", ".txt", ".svelte"):
            yield path, _visible(path.read_text())
    for path in (path for name in SCRIPTS for path in (ROOT / name / "src").rglob("*.*")):
        # What is made from the API is what the API's own sources say.
        if path.suffix in (".ts", ".svelte", ".css") and path.name != "api.ts":
            yield path, path.read_text()
    for path in (path for name in SCRIPTS for path in (ROOT / name / "tests").rglob("*.ts")):
        yield path, _frontend_comments(path.read_text())


@cache
def _hits() -> dict[str, list[str]]:
    """Return the banned words of each file, by its path in the repository."""
    found: dict[str, list[str]] = {}
    for path, text in _texts():
        if words := [match[0] for match in BANNED.finditer(text)]:
            found.setdefault(str(path.relative_to(ROOT)), []).extend(words)
    return found


def test_no_banned_word_is_read_anywhere() -> None:
    assert _hits() == {}


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
        ("Two rows, of which one is open.", "of which"),
        ("As before, the same with a warm cache.", "the same with"),
        ("The TTL of a managed context.", None),
        ("A reserved amount, preserved.", None),
    ],
)
def test_what_is_banned(text: str, hit: str | None) -> None:
    match = BANNED.search(text)
    assert (match[0] if match else None) == hit


def test_comments_are_read() -> None:
    assert _comments('x = "#a"  # b\n# c\n') == "# b\n# c"
    assert _frontend_comments("a('https://b'); // c\n/* d */") == "// c\n/* d */"


def test_markup_is_reduced_to_what_is_read() -> None:
    shown = _visible('<p title="told">a {{ told }}<script>let told</script>{% if told %}b</p>')
    assert shown.split() == ["a", "b", "told"]
