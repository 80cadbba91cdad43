"""Turn blocks in recorded order into a request that a provider accepts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from compaction.context.blocks import Block, Ending
from compaction.render.content import Dialect, Notes, WireOf, parts_of, text_part
from compaction.render.prefix import ContentPart, Prefix, PrefixChanged, Turn
from compaction.render.turns import turns_of


@dataclass(slots=True)
class Normalised:
    """A context in request order: newest tools, system text, turns starting with the user.

    `prefix` is what a later context may begin with.
    """

    tools: Block | None
    system: list[ContentPart]
    turns: list[Turn]
    prefix: Prefix

    def recite(self, ending: Ending) -> None:
        """Append the recitation to the end of the newest user message, if there is one."""
        users = (at for at, one in enumerate(reversed(self.turns), 1) if one.role == "user")
        if ending.text and (at := next(users, None)) is not None:
            recited = ContentPart(text_part(ending.text), None, recited=True)
            turn = self.turns[-at]
            # A copy: the turn may be part of a prefix.
            self.turns[-at] = replace(turn, parts=[*turn.parts, recited], message=None)


def normalise(
    blocks: Iterable[Block],
    wire_of: WireOf,
    dialect: Dialect,
    notes: Notes,
    prefix: Prefix | None = None,
) -> Normalised:
    """Bring a context into the order and form that a provider accepts.

    System text comes first, and neighboring messages of one role are merged. Of several tool lists
    the newest counts. The blocks of one model response stay together, even if results of its
    earlier calls were recorded between them. Every tool call is answered once, at the start of the
    next user turn: by its result wherever that was recorded, or by a default text. A result without
    its call becomes text. Changes are listed in `notes`. A `prefix` of an earlier context in the
    same dialect saves work where this one begins alike, and changes nothing.
    """
    listed = list(blocks)
    setup = [block for block in listed if block.type == "tools"]
    if len(setup) > 1:
        notes.add("Older tool lists were left out", setup[0])
    system: list[ContentPart] = []
    speech: list[Block] = []
    for block in listed:
        if block.type == "tools":
            continue
        if block.kind != "summary" and (block.role == "system" or block.kind == "system"):
            parts = parts_of(block, wire_of(block), "system", dialect, notes)
            system.extend(ContentPart(part, block) for part in parts)
        else:
            speech.append(block)
    before = prefix if prefix is not None and prefix.begins(speech) else Prefix()
    try:
        turns, kept = turns_of(speech, wire_of, dialect, notes, before)
    except PrefixChanged:
        turns, kept = turns_of(speech, wire_of, dialect, notes, Prefix())
    return Normalised(setup[-1] if setup else None, system, turns, kept)
