"""Facts about a Python module: names, docstrings, and users."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Name:
    """A public function or class: docstring, first line, and number of lines."""

    name: str
    form: str
    says: str
    line: int
    lines: int
    fields: int = 0


@dataclass(frozen=True, slots=True)
class Module:
    """One module, with the lines of other modules that import it as (path, line)."""

    path: str
    says: str
    lines: int
    names: tuple[Name, ...]
    constants: tuple[str, ...]
    raises: tuple[str, ...]
    callers: tuple[tuple[str, int], ...]

    @property
    def dotted(self) -> str:
        """The import name."""
        return self.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    @property
    def page(self) -> str:
        """The path of its page."""
        return f"docs/modules/{self.dotted.replace('.', '-').replace('_', '-')}.md"

    @property
    def silent(self) -> list[str]:
        """Public names without a docstring."""
        return [name.name for name in self.names if not name.says]

    @property
    def longest(self) -> Name | None:
        """The longest function."""
        functions = [name for name in self.names if name.form == "function"]
        return max(functions, key=lambda name: name.lines, default=None)


def survey(path: str, files: Mapping[str, str]) -> Module:
    """Parse one of these files."""
    tree = ast.parse(files[path])
    constants = [
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and target.id.isupper() and not target.id.startswith("_")
    ]
    names = [_name(node) for node in tree.body if isinstance(node, _Function | ast.ClassDef)]
    return Module(
        path=path,
        says=_first_sentence(ast.get_docstring(tree)),
        lines=files[path].count("\n"),
        names=tuple(name for name in names if not name.name.startswith("_")),
        constants=tuple(constants),
        raises=tuple(sorted(_raised(tree))),
        callers=tuple(_callers(path, files)),
    )


def _name(node: _Function | ast.ClassDef) -> Name:
    fields = sum(isinstance(part, ast.AnnAssign) for part in node.body)
    return Name(
        node.name,
        "class" if isinstance(node, ast.ClassDef) else "function",
        _first_sentence(ast.get_docstring(node)),
        node.lineno,
        (node.end_lineno or node.lineno) - node.lineno + 1,
        fields,
    )


def _first_sentence(text: str | None) -> str:
    said = " ".join((text or "").split("\n\n")[0].split())
    return said.split(". ")[0].rstrip(".") + "." if said else ""


def _raised(tree: ast.Module) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            called = node.exc.func
            if isinstance(called, ast.Name):
                found.add(called.id)
    return found


def _callers(path: str, files: Mapping[str, str]) -> list[tuple[str, int]]:
    dotted = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    parent, _, last = dotted.rpartition(".")
    wanted = (f"from {dotted} import", f"import {dotted}")
    beside = f"from {parent} import"
    found = []
    for name in sorted(files):
        if name == path:
            continue
        for number, line in enumerate(files[name].splitlines(), 1):
            if line.startswith(wanted) or (line.startswith(beside) and last in _words(line)):
                found.append((name, number))
                break
    return found


def _words(line: str) -> set[str]:
    return set(line.replace(",", " ").replace("(", " ").split())
