"""Commands and operations as lists for docs/, from the commands and the API themselves."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import Any

from contextlab.cli import available, loaded
from sessions.api.urls import api
from sessions.api.web.documents import document

COMMON = ("--team", "--json")
"""What the page says once about options of many commands."""

ERASES = "A key needs the scope `erase`."
PEOPLE = "For people only"

DETAILS = (
    "with|newest|oldest|which|at most|whole|each|by|once|in|if|as|regardless|over|open|counted|from"
    "|immediately|the 2,000|one with|or only|or replace|so"
)
"""How a clause begins that the list leaves to the API's own page."""


def commands() -> str:
    """Each command with its first sentence, and its arguments and options, a line for each verb."""
    return "\n".join(row for name in available() for row in _command(name))


def _command(name: str) -> Iterator[str]:
    command = loaded(name)
    first, *verbs = _rows(command.create_parser("contextlab", name))
    said, _, _ = str(command.help).partition(". ")
    yield f"- `{f'{name} {first}'.strip()}`: {said.removesuffix('.')}."
    yield from (f"    - `{verb}`" for verb in verbs)


def _rows(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Arguments and options of a command, then of each verb."""
    named, verbs = [], {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            verbs = action.choices
        elif "--help" not in action.option_strings and action.help != argparse.SUPPRESS:
            named += [] if set(COMMON) & set(action.option_strings) else [_named(action)]
    yield " ".join(named)
    for verb, of in verbs.items():
        yield " ".join([verb, *filter(None, _rows(of))])


def _named(action: argparse.Action) -> str:
    offered = tuple(action.choices or ())
    choices = "|".join(map(str, offered)) if len(offered) > 1 else ""
    if not action.option_strings:
        return str(action.metavar or choices or action.dest)
    value = "" if action.nargs == 0 else f"={action.metavar or choices}".removesuffix("=None")
    return action.option_strings[-1] + value


def operations() -> str:
    """Each operation of the API by group: method, path, and the first clause about it."""
    groups: dict[str, list[str]] = {}
    for path, by_method in document(api)["paths"].items():
        for method, operation in by_method.items():
            row = f"- `{method.upper()} {path.removeprefix('/api/v1')}`{_said(method, operation)}"
            groups.setdefault(operation["tags"][0], []).append(row)
    return "\n\n".join("\n".join([f"## {group}", "", *rows]) for group, rows in groups.items())


def _said(method: str, operation: dict[str, Any]) -> str:
    """What a key needs, and the first clause, for GET without its verb."""
    description = operation.get("description", "")
    marks = {ERASES: "erase", PEOPLE: "people"}
    needs = "".join(f" ({mark})" for text, mark in marks.items() if text in _line(description))
    said = re.sub(r" \([^()]*\)", "", _line(description.split("\n\n")[0]))
    clause = re.split(rf"[.:;](?: |$)|, (?=(?:{DETAILS})\b)", said)[0]
    return f"{needs}: " + (re.sub("^(Get|List) ", "", clause) if method == "get" else clause)


def _line(text: str) -> str:
    return " ".join(text.split()).replace("<", "&lt;")
