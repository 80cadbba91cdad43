"""Edits and revisions: the only way a context changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from compaction.context import Block, Context, context_of

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
"""Why a revision was made; `pays`: by the prices of the cache; `cold`: nothing was cached any more;
`auto`, `clear`, `rewind` and `setup` (another system prompt or list of
tools) occur in recorded runs only. At `entry`: what is shortened had not been seen by the model."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace these blocks by this one, or by nothing.

    `targets` are ids of standing blocks in context order. A `replacement` stands at the position
    of the first target. `restores` are blocks that stand again at their own positions (undo, and a
    pin on what had left); then there is no replacement.
    """

    strategy: str
    targets: tuple[str, ...]
    replacement: Block | None
    reason: str
    restores: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class Revision:
    """A numbered set of edits made at once, seen first by the model at `step`.

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
    """When a block stood: in the contexts of steps [from_step, to_step), open where that is None.

    `opened_by` and `closed_by` are revision numbers; an original that arrived was opened by none.
    An entry that one revision opened and closed again has an empty interval: no model saw it.
    """

    block: Block
    from_step: int
    to_step: int | None = None
    opened_by: int | None = None
    closed_by: int | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Edits that one strategy proposed at a step and that would have broken a context."""

    step: int
    strategy: str
    reason: str


def context_at(entries: Iterable[Entry], step: int) -> Context:
    """The context that the model sees at a step, read from the intervals."""
    return context_of(
        entry.block
        for entry in entries
        if entry.from_step <= step and (entry.to_step is None or step < entry.to_step)
    )


class CannotUndo(ValueError):
    """Why a revision cannot be taken back, as a sentence."""


class CannotCompact(ValueError):
    """Why nothing can be compacted by request, as a sentence."""


class UnknownBlock(ValueError):
    """An edit names a block that does not stand in the context."""


def apply(context: Context, edits: Iterable[Edit]) -> Context:
    """Fold edits into a copy of a context.

    Raises UnknownBlock when a target does not stand there; the context given is left as it was.
    """
    edited = dict(context)
    positions = {block.id: position for position, block in context.items()}
    for edit in edits:
        try:
            places = [positions.pop(target) for target in edit.targets]
        except KeyError as missing:
            raise UnknownBlock(f"{edit.strategy}: no block {missing} stands here") from None
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
