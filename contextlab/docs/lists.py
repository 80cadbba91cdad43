"""Lists in docs/ of extension points, commands and operations, generated from their records.

`python -m contextlab.docs.lists` updates them in the current checkout; `--check` only reports
outdated ones, and exits with 1 if there are any.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterable, Iterator
from inspect import getsource
from pathlib import Path

import django

from compaction.cache.rule import CacheRule
from compaction.cache.rules import RULES
from compaction.proposals.plan import View
from compaction.proposals.protect import Guard
from compaction.strategies import STRATEGIES
from sessions.importers import IMPORTERS

ROOT = Path(__file__).parent.parent.parent


def _table(*rows: Iterable[str]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], re.sub(r"[^|]+", " --- ", lines[0]), *lines[1:]])


def strategies() -> str:
    """The strategies in order."""
    found = (
        (f"[`{one.name}`](#{one.docs})" if one.docs else f"`{one.name}`", one.does)
        for one in STRATEGIES.values()
    )
    return _table(("name in a policy", "what it does"), *found)


def importers() -> str:
    """The log formats in order of detection."""
    found = ((f"`{one.name}`", one.files) for one in IMPORTERS.values())
    return _table(("format", "files"), *found)


def cache_rules() -> str:
    """The cache rules in order of lookup."""
    head = ("models", "minimum", "reads come in", "kept for", "writing", "source")
    return _table(head, *(_rule(rule) for rule in RULES))


def _rule(rule: CacheRule) -> tuple[str, ...]:
    if rule.kept is None:
        asked = ("by model", "prefixes up to a breakpoint", "as asked", "as listed")
        return rule.title, *asked, rule.source
    kept = rule.kept
    steps = f"steps of {kept.step:,}"
    steps += f", less {kept.lag:,}" if kept.lag else ""
    steps += f", each once {kept.behind:,} tokens follow it" if kept.behind else ""
    steps += ", the response included" if kept.answers else ""
    minutes = kept.ttl // 60_000
    span = f"{minutes} minutes" if minutes < 60 else f"{minutes // 60} h"
    writing = "all that is not read" if kept.writes else "no price"
    return rule.title, f"{kept.minimum:,}", steps, span, writing, rule.source


def offers() -> str:
    """What `View` and `Guard` offer a strategy, from their docstrings."""
    found = (*_offered(View, "view"), *_offered(Guard, "view.guard"))
    return _table(("name", "what it is"), *found)


def _offered(offering: type, name: str) -> Iterator[tuple[str, str]]:
    """Public fields, properties and methods of a class with the first line of what is said of
    them."""
    (body,) = ast.parse(getsource(offering)).body
    assert isinstance(body, ast.ClassDef)
    for one, after in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            of, said = one.target.id, _text(after)
        elif isinstance(one, ast.FunctionDef) and not one.name.startswith("_"):
            given = [argument.arg for argument in one.args.args[1:]]
            of = one.name + (f"({', '.join(given)})" if not one.decorator_list else "")
            said = ast.get_docstring(one) or ""
        else:
            continue
        if said:
            yield f"`{name}.{of}`", " ".join(said.split("\n\n")[0].split())


def _text(statement: ast.stmt | None) -> str:
    constant = statement.value if isinstance(statement, ast.Expr) else None
    return str(constant.value) if isinstance(constant, ast.Constant) else ""


LISTS = {
    "docs/extending.md": offers,
    "docs/policies/strategies.md": strategies,
    "docs/imports/importing.md": importers,
    "docs/record/cache.md": cache_rules,
}


def main(arguments: list[str]) -> int:
    """Write or check the lists; return an exit code."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextlab.settings")
    django.setup()
    from contextlab.docs.references import commands, operations

    stale = []
    more = {"docs/web/commands.md": commands, "docs/web/operations.md": operations}
    for name, made in (LISTS | more).items():
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        mark = rf"(<!-- {made.__name__}: written by `make lists` -->\n)(?s:.*?)(\n<!-- end -->)"
        found = re.search(mark, text)
        assert found is not None, f"{name} has no list of {made.__name__}"
        new = text[: found.end(1)] + made() + text[found.start(2) :]
        if new != text:
            stale.append(name)
            if "--check" not in arguments:
                path.write_text(new, encoding="utf-8")
    if stale and "--check" in arguments:
        sys.stderr.write(f"Out of date, run `make lists`: {', '.join(stale)}.\n")
        return 1
    for name in stale:
        sys.stdout.write(f"{name}: updated\n")
    if not stale:
        sys.stdout.write("The lists in docs are up to date.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
