"""The tool definition with which a model reads back offloaded content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Any, Literal

from compaction.context.blocks import Block
from compaction.context.excerpt import BadSelection, Selection, selection_of

NAME = "read_back"

DESCRIPTION = """\
Returns content moved out of this conversation, unchanged: pass the ref of a stub such as \
"[offloaded: … ref m12.0@ab12cd34]" or of a summary. Prefer it to running the command or reading \
the file again. A long text comes in parts."""
"""Short, because each prompt of a session has it: what a part's end says is not repeated here."""

FILES = """
A ref that is a path is a file on this machine with the same content: you can open or search it \
with your other tools, or pass its path here."""
"""What the description adds if contexts name files."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "ref": {"type": "string"},
        "lines": {"type": "string", "description": "10-40"},
        "grep": {"type": "string", "description": "RE2"},
        "offset": {"type": "integer"},
    },
    "required": ["ref"],
}
"""The arguments that models need; `context`, `head` and `tail` are understood, too."""


LARGE_SETUP = 6_000
"""Tokens of system prompt and tools from which the tool is listed at the first step (our choice).

A tool that joins later breaks the whole cached prefix once: with a large setup that costs more than
the definition in every prompt, with a small one most sessions end before anything is offloaded.
"""


def is_listed(
    context: Iterable[Block], *, edited: bool, hidden: int = 0, binds: bool = False
) -> bool:
    """Whether a context of an editing policy lists the tool: once it was `edited`, or from the
    first step if its setup is large or its model `binds` thinking to the tools before it.
    `hidden` are tokens of the setup that no block has."""
    if edited or binds:
        return True
    setup = takewhile(lambda block: block.role == "system" or block.type == "tools", context)
    return hidden + sum(block.tokens for block in setup) >= LARGE_SETUP


def definition(form: Literal["anthropic", "openai"], *, files: bool = False) -> dict[str, Any]:
    """Return the tool definition for the Messages API or for chat completions.

    `files` says that references may be paths of files.
    """
    description = DESCRIPTION + FILES if files else DESCRIPTION
    if form == "anthropic":
        return {"name": NAME, "description": description, "input_schema": SCHEMA}
    function = {"name": NAME, "description": description, "parameters": SCHEMA}
    return {"type": "function", "function": function}


def is_ours(tool: Any) -> bool:
    """Whether a tool of an agent's list is this one, in the form of either provider."""
    inner = tool.get("function") if isinstance(tool, dict) else None
    given = inner if isinstance(inner, dict) else tool
    if not isinstance(given, dict):
        return False
    return given.get("name") == NAME and given.get("description") in (
        DESCRIPTION,
        DESCRIPTION + FILES,
    )


def asked(given: Mapping[str, Any]) -> tuple[str, Selection]:
    """Parse the reference and the selection from a model's input. Raises BadSelection."""
    ref = given.get("ref")
    if isinstance(ref, int) and not isinstance(ref, bool):
        ref = str(ref)
    if not isinstance(ref, str) or not ref.strip():
        raise BadSelection(
            'ref is missing: pass the reference in the stub, such as "m12.0@ab12cd34".'
        )
    return ref.strip(), selection_of(given)
