"""The recipes of docs/extending.md as files: their code blocks, renamed."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

PAGE = Path("docs/extending.md")

RECIPES = {
    "strategy": ("Add a strategy", "old_failures"),
    "importer": ("Add a log format", "chat_lines"),
    "cache rule": ("Add a cache rule", "acme"),
    "page": ("Add a page", "models_used"),
}
"""Heading of each recipe, and the name of its example."""

_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_FILE = re.compile(r"^`([\w./-]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class NotPossible(ValueError):
    """Why a file cannot be written, as a sentence."""


def files_of(root: Path, kind: str) -> dict[str, str]:
    """Paths and texts of a recipe's files. Raises NotPossible outside a checkout."""
    if not (root / PAGE).is_file():
        raise NotPossible(
            f"This is not a checkout of ContextLab: {root / PAGE} does not exist. Run it in one."
        )
    parts = _SECTION.split((root / PAGE).read_text(encoding="utf-8"))
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    return dict(_FILE.findall(sections[RECIPES[kind][0]]))


def write(root: Path, kind: str, name: str = "") -> list[Path]:
    """Write a recipe's files under a name, by default that of its example.

    Raises NotPossible before writing anything, if the name is invalid or a file exists.
    """
    example = RECIPES[kind][1]
    name = name or example
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise NotPossible(
            f"{name!r} is not a valid name. Use lowercase letters, digits and underscores."
        )
    files = {
        root / _renamed(path, example, name): _renamed(text, example, name)
        if name == example
        else _renamed(_without_sentences(text), example, name)
        for path, text in files_of(root, kind).items()
    }
    if existing := next((path for path in files if path.exists()), None):
        raise NotPossible(f"{existing} already exists. Choose another name.")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(files)


_SENTENCES = (
    (r'(?m)^"""([^\n:]+): [^\n]*"""$', r'"""\1: say in one line what it is."""'),
    (r'(?m)^( +)"""[^\n]*"""$', r'\1"""Say what it is or does."""'),
    (r'\bdoes="[^"]+"', 'does="Say in one sentence what it does."'),
    (r'\bwhen="[^"]+"', 'when="say when"'),
    (r'"help": "[^"]+"', '"help": "Say in one sentence what it sets."'),
)
"""What the example says of itself, and what a new file says there instead."""


def _without_sentences(text: str) -> str:
    for sentence, instead in _SENTENCES:
        text = re.sub(sentence, instead, text)
    return text


def _renamed(text: str, example: str, name: str) -> str:
    """Replace all forms of the example's name by those of another."""
    for form in (_snake, _dashed, _camel, _title, _words):
        text = text.replace(form(example), form(name))
    return text


def _snake(name: str) -> str:
    return name


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _words(name: str) -> str:
    return name.replace("_", " ")
