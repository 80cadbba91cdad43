"""Turns of a context, and the prefix of a context that the next one begins with, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from compaction.context.blocks import Block
from compaction.context.wire import WireBlock
from compaction.render.content import Notes, permitted


@dataclass(slots=True)
class ContentPart:
    """A piece of content ready to be sent, and its block (None for text that we insert)."""

    wire: WireBlock
    block: Block | None
    recited: bool = False


@dataclass(slots=True)
class Turn:
    """A message to build: its parts, and for the assistant the blocks of its tool calls.

    `begin` is the number of its first block in the speech, `message` the message once built. A
    user's turn may have `system` parts, which become a message after it. One that `clears` is shown
    to the model until the next user message.
    """

    role: Literal["user", "assistant", "system"]
    parts: list[ContentPart] = field(default_factory=list)
    calls: list[Block] = field(default_factory=list)
    begin: int = 0
    message: WireBlock | None = None
    system: list[ContentPart] = field(default_factory=list)
    clears: bool = False


class PrefixChanged(Exception):
    """Later blocks change the turns of a prefix: begin without it."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """Complete turns that a context begins with, and the blocks of speech in them.

    `ids` counts how often each id of a call was asked for. `asked` holds the ids of calls as
    recorded, and whether one of them has no result; `response` is the id of the last model
    response. Nothing in it is changed later.
    """

    blocks: list[Block] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    asked: dict[str, bool] = field(default_factory=dict)
    response: str | None = None
    notes: Notes = field(default_factory=Notes)

    def begins(self, speech: Sequence[Block]) -> bool:
        """Whether speech begins with these blocks and goes on."""
        return len(speech) > len(self.blocks) and speech[: len(self.blocks)] == self.blocks

    def extended(
        self,
        speech: list[Block],
        turns: list[Turn],
        answers: Mapping[int, Block],
        notes: Notes,
        limit: int,
    ) -> Prefix:
        """Return a longer prefix: `speech` begins with the blocks of this one, and `turns` follow.

        `answers` are results by the position of their call, `limit` the length of an id.
        """
        ids, asked, response = dict(self.ids), dict(self.asked), self.response
        new = speech[len(self.blocks) :]
        for block in new:
            if is_response(block):
                response = block.call
            if is_call(block):
                free_id(wanted_id(block), limit, ids)
                call = block.tool_call or ""
                asked[call] = asked.get(call, False) or block.position not in answers
        changes = notes.among(new)
        changes.extend(self.notes)
        return Prefix(speech, [*self.turns, *turns], ids, asked, response, changes)


def is_call(block: Block) -> bool:
    """Whether a block is a call of a tool by the model."""
    return block.type == "tool_use" and block.role == "assistant"


def is_response(block: Block) -> bool:
    """Whether a block is part of a model response."""
    return block.type != "tool_result" and block.role == "assistant" and block.kind != "summary"


def is_system(block: Block) -> bool:
    """Return whether a block is part of the system prompt, or a later message of the system."""
    said = block.role == "system" or block.kind == "system"
    return said and block.kind != "summary" and block.type != "tools"


def free_id(name: str, limit: int, taken: dict[str, int]) -> str:
    """Return an id for a call; a second call with the same id gets a stable new one.

    `taken` counts for each id how often it was asked for, so that thousands of equal ids stay
    cheap.
    """
    first = found = permitted(name, limit)
    while found in taken:
        taken[first] += 1
        found = permitted(f"{name}#{taken[first]}", limit)
    taken[found] = 1
    return found


def wanted_id(call: Block) -> str:
    """The id of a call as recorded, or one made of its block."""
    return call.tool_call or f"call_{call.id}"
