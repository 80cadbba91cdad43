"""The recipes of docs/extending.md: the files of docs/recipes, renamed."""

from __future__ import annotations

import keyword
import re
from collections.abc import Container
from itertools import count
from pathlib import Path
from string import ascii_lowercase, digits
from typing import NamedTuple

FOLDER = Path("docs/recipes")

RECIPES = {
    "strategy": "old_failures",
    "importer": "chat_lines",
    "cache-rule": "acme",
    "page": "models_used",
}
"""Folder of each recipe, and the name of its example."""

SUBJECT = "record"
"""The subject of the example page."""


class NotPossible(ValueError):
    """Why a file cannot be written, as a sentence."""


def files_of(root: Path, kind: str) -> dict[str, str]:
    """Paths and texts of a recipe's files. Raises NotPossible outside a checkout."""
    recipe = root / FOLDER / kind
    if not recipe.is_dir():
        raise NotPossible(
            f"This is not a checkout of ContextLab: {recipe} does not exist. Run it in one."
        )
    files = (path for path in sorted(recipe.rglob("*")) if path.is_file())
    return {str(path.relative_to(recipe)): path.read_text(encoding="utf-8") for path in files}


class InUse(NamedTuple):
    """What existing records have and a new one must not: orders, and letters of shortcuts."""

    orders: Container[int] = ()
    letters: Container[str] = ()


FREE = InUse()


def write(
    root: Path, kind: str, name: str = "", subject: str = SUBJECT, used: InUse = FREE
) -> list[Path]:
    """Write a recipe's files under a name, by default that of its example.

    `subject` is the folder of a page. Raises NotPossible before writing anything, if a name is
    invalid or a file exists.
    """
    example = RECIPES[kind]
    name = name or example
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise NotPossible(
            f"{name!r} is not a valid name. Use lowercase letters, digits and underscores."
        )
    subjects = _subjects(root)
    if kind == "page" and subject not in subjects:
        raise NotPossible(f"There is no subject {subject!r}. Use one of: {', '.join(subjects)}.")
    files = {}
    for place, text in files_of(root, kind).items():
        if name != example:
            text = _placed(_without_sentences(text), name, used)
        if kind == "page":
            place, text = (part.replace(f"{SUBJECT}/", f"{subject}/") for part in (place, text))
        files[root / _renamed(place, example, name)] = _renamed(text, example, name)
    if existing := next((path for path in files if path.exists()), None):
        raise NotPossible(f"{existing} already exists. Choose another name.")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(files)


def _subjects(root: Path) -> list[str]:
    views = root / "sessions" / "views"
    return sorted(path.parent.name for path in views.glob("*/__init__.py"))


def _placed(text: str, name: str, used: InUse) -> str:
    """Give a record an order and a shortcut that no other one has."""

    def order(found: re.Match[str]) -> str:
        return found[1] + str(next(n for n in count(int(found[2])) if n not in used.orders))

    letters = (one for one in name + ascii_lowercase + digits if one not in used.letters)
    text = re.sub(r"(\border=|\bLink\()(\d+)", order, text)
    return re.sub(r'keys="g \w"', f'keys="g {next(letters)}"', text)


_SENTENCES = (
    (r'(?m)^"""([^\n:]+): [^\n]*"""$', r'"""\1: say in one line what it is."""'),
    (r'(?m)^( +)"""[^\n]*"""$', r'\1"""Say what it is or does."""'),
    (r'\bdoes="[^"]+"', 'does="Say in one sentence what it does."'),
    (r'"help": "[^"]+"', '"help": "Say in one sentence what it sets."'),
    (r"<p>[^<{]+</p>", "<p>Say in one sentence what the page shows.</p>"),
    (r'recognised_by="[^"]+"', 'recognised_by="say what its lines have"'),
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
