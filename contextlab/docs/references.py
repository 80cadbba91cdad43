"""Commands and operations as lists for docs/, from the commands and the API themselves."""

from __future__ import annotations

import argparse

from contextlab.cli import available, loaded
from sessions.api.urls import api
from sessions.api.web.documents import document


def commands() -> str:
    """Each command with its verbs and its first sentence."""
    return "\n".join(_command(name) for name in available())


def _command(name: str) -> str:
    command = loaded(name)
    actions = command.create_parser("contextlab", name)._actions
    verbs = next((a.choices for a in actions if isinstance(a, argparse._SubParsersAction)), ())
    shown = " ".join([name, *filter(None, ["|".join(verbs)])])
    said, _, _ = str(command.help).partition(". ")
    return f"- `{shown}`: {said.removesuffix('.')}."


def operations() -> str:
    """The paths of the API by group; those of a session begin with an ellipsis."""
    groups: dict[str, dict[str, None]] = {}
    for path, by_method in document(api)["paths"].items():
        short = path.removeprefix("/api/v1").replace("/sessions/{session_id}/", "…/")
        for operation in by_method.values():
            groups.setdefault(operation["tags"][0], {})[f"`{short}`"] = None
    return "\n".join(f"- **{group}**: {', '.join(paths)}" for group, paths in groups.items())
