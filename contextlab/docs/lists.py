"""Lists in docs/ of extension points, commands and operations, generated from their records.

`python -m contextlab.docs.lists` updates them in the current checkout; `--check` only reports
outdated ones, and exits with 1 if there are any.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import django

from compaction.cache.rule import CacheRule
from compaction.cache.rules import RULES
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
    return "\n".join(f"- `{one.name}`: {one.files}" for one in IMPORTERS.values())


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


LISTS = {
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
    more = {"docs/web/commands.md": commands, "docs/web/api.md": operations}
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
