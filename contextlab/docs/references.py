"""Commands and operations as lists for docs/, from the commands and the API themselves."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from contextlab.cli import available, loaded
from sessions.api.urls import api
from sessions.api.web.documents import document
from sessions.management.named import SESSION_HELP

COMMON = {
    "team slug (default: the local team)",
    "print JSON",
    "print one JSON object",
    SESSION_HELP,
}
"""What the page says once about options of many commands."""

ERASES = "A key needs the scope `erase`."


def commands() -> str:
    """Each command with its sentence and its options."""
    return "\n\n".join(_command(name) for name in available())


def _command(name: str) -> str:
    command = loaded(name)
    rows = list(_rows(command.create_parser("contextlab", name)))
    options = ["", *rows] if rows else []
    return "\n".join([f"## {name}", "", str(command.help), *options])


def _rows(parser: argparse.ArgumentParser, verb: str = "") -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {one.dest: one.help or "" for one in action._choices_actions}
            for of, verbs in action.choices.items():
                yield f"- `{of}`: {_line(helps.get(of, ''))}".removesuffix(": ")
                yield from _rows(verbs, f"{of} ")
        elif "--help" not in action.option_strings and action.help != argparse.SUPPRESS:
            said = _line((action.help or "") % {"default": action.default})
            said = "" if said in COMMON else said
            yield f"- `{verb}{_named(action)}`: {said}".removesuffix(": ")


def _named(action: argparse.Action) -> str:
    offered = tuple(action.choices or ())
    choices = "|".join(map(str, offered)) if len(offered) > 1 else ""
    if not action.option_strings:
        return str(action.metavar or choices or action.dest)
    value = "" if action.nargs == 0 else f" {action.metavar or choices or action.dest.upper()}"
    return ", ".join(action.option_strings) + value


def operations() -> str:
    """Each operation of the API by group: method, path, and the first sentence about it."""
    groups: dict[str, list[str]] = {}
    for path, by_method in document(api)["paths"].items():
        for method, operation in by_method.items():
            row = f"- `{method.upper()} {path.removeprefix('/api/v1')}`{_said(operation)}"
            groups.setdefault(operation["tags"][0], []).append(row)
    return "\n\n".join("\n".join([f"## {group}", "", *rows]) for group, rows in groups.items())


def _said(operation: dict[str, Any]) -> str:
    said = _line(operation.get("description", "").split("\n\n")[0])
    scope = " (`erase`)" if ERASES in said else ""
    return f"{scope}: {said.replace(ERASES, '').replace('  ', ' ').strip()}"


def _line(text: str) -> str:
    return " ".join(text.split()).replace("<", "&lt;")
