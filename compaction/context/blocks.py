"""The content blocks of a context, in the order the model reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    """The part of a file that a block shows or changes.

    `start` and `end` are 1-based and inclusive; None means the whole file or unknown.
    """

    path: str
    action: FileAction
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """One content block of one message; immutable.

    `position` orders the blocks of a session and is never reused; a replacement takes the position
    of its first target. `born` is the first step whose context holds the block: the output of step
    k and the tool results that answer it are born at k + 1. `turn` counts human messages from 1.
    `tokens` are counted with the session's `Counting`, `chars` are code points. `sha` is the hash
    of the stored bytes. `call` is the model response the block belongs to (None for text by people
    and the system), `tool_call` pairs a tool_use with its tool_result.
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
    """For a replacement: the id of its first target, which leads back to the original."""
    refs: tuple[str, ...] = ()
    """For a replacement: ids of the originals that its text references."""


Context = dict[int, Block]
"""The blocks of a context by position, in order."""


def context_of(blocks: Iterable[Block]) -> Context:
    """Build a context from blocks in any order."""
    return {block.position: block for block in sorted(blocks, key=lambda b: b.position)}


def total(context: Context) -> int:
    """Return the tokens of a whole context."""
    return sum(block.tokens for block in context.values())


def composition(context: Context) -> dict[Kind, int]:
    """Return tokens by kind, in prompt order; kinds without tokens are left out."""
    sums: dict[Kind, int] = dict.fromkeys(KINDS, 0)
    for block in context.values():
        sums[block.kind] += block.tokens
    return {kind: tokens for kind, tokens in sums.items() if tokens}


@dataclass(frozen=True, slots=True)
class Ending:
    """What follows the last cache breakpoint of a context and is not part of the next context.

    `once` holds the positions, ascending, of results that are sent at this step only; no breakpoint
    comes after the first of them. `text` is recited at the end of the newest user message, or in a
    system message after it, which the model sees until the next user message; `aside` are words
    from elsewhere, which never become a system message. `tokens` is the size of both, counted line
    by line; empty and 0 without a recitation. `earlier` are the system messages of earlier
    contexts, by step: sent again unchanged, they cost nothing.
    """

    once: tuple[int, ...] = ()
    text: str = ""
    tokens: int = 0
    aside: str = ""
    earlier: Mapping[int, str] = field(default_factory=dict)

    @property
    def whole(self) -> str:
        """All that a user message ends with, for a model without such system messages."""
        return "\n".join(filter(None, (self.aside, self.text)))
