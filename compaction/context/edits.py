"""Edits and revisions: the only way a context changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from compaction.context.blocks import Block, Context, context_of

Trigger = Literal[
    "batch",
    "pays",
    "cold",
    "window",
    "budget",
    "new_topic",
    "task_done",
    "request",
    "manual",
    "undo",
    "auto",
    "clear",
    "rewind",
    "setup",
    "pin",
    "entry",
    "unknown",
]
"""Why a revision was made.

`pays`: the savings exceed the cache it breaks; `cold`: the cache had expired; `entry`: the edit
shortens a block that the model had not seen. `auto`, `manual` and `unknown` are compactions by the
agent itself; `clear` occurs in recorded contexts only."""


OWN_COMPACTIONS: frozenset[Trigger] = frozenset({"auto", "manual", "unknown"})
"""Triggers of compactions that an agent makes itself."""

BY_THE_AGENT: frozenset[Trigger] = OWN_COMPACTIONS | {"rewind", "setup"}
"""Triggers of the revisions of a managed context that follow changes by the agent."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace blocks by one block, or remove them.

    `targets` are block ids in context order. The `replacement` takes the position of the first
    target. `restores` are blocks that return to their own positions (undo, and a pin on an
    offloaded block); such an edit has no replacement.
    """

    strategy: str
    targets: tuple[str, ...]
    replacement: Block | None
    reason: str
    restores: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class Revision:
    """A numbered set of edits made at once; `step` is the first whose context shows them.

    Token counts are those of the whole context just before and after.
    """

    number: int
    step: int
    trigger: Trigger
    edits: tuple[Edit, ...]
    tokens_before: int
    tokens_after: int
    reason: str = ""


@dataclass(slots=True)
class Entry:
    """A block and the steps whose contexts hold it: [from_step, to_step), open-ended if None.

    `opened_by` and `closed_by` are revision numbers; `opened_by` is None for an original that
    arrived. An entry that a revision both opened and closed has an empty interval: no model saw it.
    """

    block: Block
    from_step: int
    to_step: int | None = None
    opened_by: int | None = None
    closed_by: int | None = None


@dataclass(frozen=True, slots=True)
class RefusedEdits:
    """Edits that a strategy proposed at a step and that would have broken the context."""

    step: int
    strategy: str
    reason: str


def amount(count: int, noun: str) -> str:
    """Return a number with its noun, for reasons: "1 block", "2 blocks"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def context_at(entries: Iterable[Entry], step: int) -> Context:
    """Return the context that the model sees at a step."""
    return context_of(
        entry.block
        for entry in entries
        if entry.from_step <= step and (entry.to_step is None or step < entry.to_step)
    )


class CannotUndo(ValueError):
    """A revision cannot be undone; the message says why."""


class CannotCompact(ValueError):
    """Nothing can be compacted on request; the message says why."""


class UnknownBlock(ValueError):
    """An edit names a block that is not in the context."""


def apply(context: Context, edits: Iterable[Edit]) -> Context:
    """Apply edits to a copy of a context.

    Raises UnknownBlock if a target is not in the context.
    """
    edited = dict(context)
    positions = {block.id: position for position, block in context.items()}
    for edit in edits:
        try:
            places = [positions.pop(target) for target in edit.targets]
        except KeyError as missing:
            raise UnknownBlock(f"{edit.strategy}: block {missing} is not in the context") from None
        if edit.replacement is None:
            for place in places:
                del edited[place]
            edited.update((block.position, block) for block in edit.restores)
            positions.update((block.id, block.position) for block in edit.restores)
            continue
        edited[places[0]] = edit.replacement
        positions[edit.replacement.id] = places[0]
        for place in places[1:]:
            del edited[place]
    return context_of(edited.values())
