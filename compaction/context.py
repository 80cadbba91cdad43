"""What the model is about to read: blocks in order, and what each of them is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, get_args

Role = Literal["system", "user", "assistant", "tool"]
"""Who speaks, as the agent sent it."""

BlockType = Literal[
    "text", "thinking", "tool_use", "tool_result", "image", "document", "tools", "other"
]
"""The form of a content block on the wire; `tools` is the list of tool definitions."""

Kind = Literal[
    "tools",
    "system",
    "memory",
    "file",
    "summary",
    "user",
    "assistant",
    "thinking",
    "result",
    "other",
]
"""What a block counts as in the composition of a context, in prompt order."""

KINDS: tuple[Kind, ...] = get_args(Kind)

FileAction = Literal["read", "write", "edit", "delete", "list"]


@dataclass(frozen=True, slots=True)
class FileRef:
    """Which part of which file a block shows or changes.

    `start` and `end` are 1-based and inclusive; None means the whole file or unknown.
    """

    path: str
    action: FileAction
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """One content block of one message; never changed once made.

    `position` orders the blocks of a session and is never reused; a replacement stands at the
    position of its first target. `born` is the first step whose context holds the block: the
    output of step k and the tool results that answer it are born at k + 1. `turn` counts human
    messages from 1. `tokens` are those of the session's counting, `chars` are code points.
    `sha` names the stored bytes. `call` is the model response the block belongs to (None for
    what people and the system wrote), `tool_call` pairs a tool_use with its tool_result.
    """

    id: str
    position: int
    message: int
    born: int
    turn: int
    role: Role
    type: BlockType
    kind: Kind
    tokens: int
    chars: int
    sha: str
    text: str = field(repr=False)
    call: str | None = None
    tool_call: str | None = None
    tool: str | None = None
    file: FileRef | None = None
    error: bool = False
    pinned: bool = False
    replaces: str | None = None
    """For a replacement: the id of its first target, by which the original is found again."""
    refs: tuple[str, ...] = ()
    """For a replacement: ids of the originals that its text gives a reference to."""


Context = dict[int, Block]
"""Standing blocks by position, in order."""


def context_of(blocks: Iterable[Block]) -> Context:
    """Lay blocks out by position."""
    return {block.position: block for block in sorted(blocks, key=lambda b: b.position)}


def total(context: Context) -> int:
    """Tokens of a whole context."""
    return sum(block.tokens for block in context.values())


def composition(context: Context) -> dict[Kind, int]:
    """Tokens by kind, kinds in prompt order, absent kinds left out."""
    sums: dict[Kind, int] = dict.fromkeys(KINDS, 0)
    for block in context.values():
        sums[block.kind] += block.tokens
    return {kind: tokens for kind, tokens in sums.items() if tokens}


@dataclass(frozen=True, slots=True)
class Ending:
    """What lies after the last cache breakpoint of a context, and is no part of the next one.

    `once` are positions of results that stand for this step only, ascending: no breakpoint lies
    behind the first. `text` is recited at the end of the newest user message, `tokens` are its
    size, counted line by line; empty and 0 without one.
    """

    once: tuple[int, ...] = ()
    text: str = ""
    tokens: int = 0
