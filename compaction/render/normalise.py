"""Turn blocks in recorded order into a request that a provider accepts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from compaction.context.blocks import Block, Ending
from compaction.render.content import Dialect, Notes, WireOf, parts_of, text_part
from compaction.render.prefix import ContentPart, Prefix, PrefixChanged, Turn, is_system
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

    def recite(self, ending: Ending, *, as_system: bool = False) -> None:
        """Append the recitation to the end of the newest user message, if there is one.

        With `as_system`, it is a system message after that, and left out where the assistant spoke
        last: nothing may follow its words, and nothing before its thinking may change.
        """
        if not as_system:
            self._end_user_with(ending.whole)
        elif self.turns and self.turns[-1].role != "assistant":
            self._end_user_with(ending.aside)
            if ending.text:
                recited = ContentPart(text_part(ending.text), None, recited=True)
                self.turns.append(Turn("system", [recited], clears=True))

    def _end_user_with(self, text: str) -> None:
        users = (at for at, one in enumerate(reversed(self.turns), 1) if one.role == "user")
        if text and (at := next(users, None)) is not None:
            turn = self.turns[-at]
            recited = ContentPart(text_part(text), None, recited=True)
            # A copy: the turn may be part of a prefix.
            self.turns[-at] = replace(turn, parts=[*turn.parts, recited], message=None)


def normalise(
    blocks: Iterable[Block],
    wire_of: WireOf,
    dialect: Dialect,
    notes: Notes,
    prefix: Prefix | None = None,
    earlier: Mapping[int, str] | None = None,
) -> Normalised:
    """Bring a context into the order and form that a provider accepts.

    System text comes first, and neighboring messages of one role are merged. For a model that takes
    system messages, `earlier` are those to send again (see `turns_of`); then only the first system
    message comes first, and later ones stay where they are, after the user's message. Of several
    tool lists the newest counts. The blocks of one model response stay together, even if results of
    its earlier calls were recorded between them. Every tool call is answered once, at the start of
    the next user turn: by its result wherever that was recorded, or by a default text. A result
    without its call becomes text. Changes are listed in `notes`. A `prefix` of an earlier context
    in the same dialect saves work where this one begins alike, and changes nothing.
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
        first = system[0].block if system and earlier is not None else None
        if is_system(block) and (first is None or not speech or first.message == block.message):
            parts = parts_of(block, wire_of(block), "system", dialect, notes)
            system.extend(ContentPart(part, block) for part in parts)
        else:
            speech.append(block)
    before = prefix if prefix is not None and prefix.begins(speech) else Prefix()
    try:
        turns, kept = turns_of(speech, wire_of, dialect, notes, before, earlier or {})
    except PrefixChanged:
        turns, kept = turns_of(speech, wire_of, dialect, notes, Prefix(), earlier or {})
    return Normalised(setup[-1] if setup else None, system, turns, kept)
