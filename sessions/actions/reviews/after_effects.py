"""Signs, after a compaction, that the agent missed something that was removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from django.db.models import QuerySet

from compaction.context import wire
from compaction.losses.corrections import is_correction
from compaction.tools.failures import alike, signature
from sessions.models import Block, Entry, Revision, Session
from sessions.models.record.values import contents, entry_name

STEPS = 10
"""Steps after a revision to look at."""

STORED = 50
"""Most signs stored with a ledger; all are counted."""

MOST_ERRORS = 200
"""Most failed calls among removed blocks to compare with, newest first."""

Kind = Literal["reread", "repeat", "error", "correction"]


@dataclass(frozen=True, slots=True)
class Sign:
    """A possible consequence of a revision: a file read again, a call repeated with equal input, a
    call failing like an earlier one, or a correction by a person.

    `earlier` is the removed block; None for a correction, which is estimated from its wording.
    """

    kind: Kind
    block: Block
    step: int
    earlier: Block | None = None


@dataclass(frozen=True, slots=True)
class AfterEffects:
    """Signs in the steps after a revision, in order; each call is counted once."""

    first_step: int
    last_step: int
    signs: tuple[Sign, ...]

    @property
    def counts(self) -> dict[Kind, int]:
        """The number of signs by kind."""
        found = Counter(sign.kind for sign in self.signs)
        kinds: tuple[Kind, ...] = ("reread", "repeat", "error", "correction")
        return {kind: found[kind] for kind in kinds}

    def stored(self) -> dict[str, Any]:
        """The signs as stored with a ledger: counts, and the first ones by entry name."""
        return {
            "first_step": self.first_step,
            "last_step": self.last_step,
            **{str(kind): count for kind, count in self.counts.items()},
            "signs": [
                {
                    "what": sign.kind,
                    "step": sign.step,
                    "entry": entry_name(sign.block),
                    "earlier": entry_name(sign.earlier) if sign.earlier else None,
                    "preview": sign.block.preview,
                }
                for sign in self.signs[:STORED]
            ],
        }


def after_effects(session: Session, revision: Revision) -> AfterEffects:
    """Find signs in the ten steps from the revision on, compared with what it removed.

    A file counts as read again only if no earlier read of it is left in context.
    """
    step = revision.step
    # The model's output at a step is in the context from the next step on.
    came = session.blocks.filter(born__gt=step, born__lte=step + STEPS)
    came = came.select_related("message").order_by("position")
    calls = came.filter(type="tool_use")
    removed = _removed(session, revision)
    found = {sign.block.pk: sign for sign in _repeats(session, calls, removed)}
    found |= {sign.block.pk: sign for sign in _rereads(calls, removed, _gone(session, revision))}
    again = {sign.block.tool_call for sign in found.values()}
    failed = came.filter(type="tool_result", error=True).exclude(tool_call__in=again)
    others = _errors(session, revision, failed)
    others += _corrections(came.filter(message__human=True, type="text", message__role="user"))
    signs = sorted([*found.values(), *others], key=lambda sign: sign.block.position)
    return AfterEffects(step, min(step + STEPS - 1, session.step_count), tuple(signs))


def _removed(session: Session, revision: Revision) -> dict[str, Block]:
    """Tool calls whose result or use this revision closed, by call id."""
    closed = Entry.objects.filter(closed_by__revision=revision).exclude(block=None)
    ids = set(closed.exclude(block__tool_call="").values_list("block__tool_call", flat=True))
    calls = session.blocks.filter(type="tool_use", born__lte=revision.step)
    return {
        block.tool_call: block
        for block in calls.select_related("message").order_by("position")
        if block.tool_call in ids
    }


def _gone(session: Session, revision: Revision) -> set[str]:
    """Paths without any read left in the context after the revision."""
    readings = session.blocks.filter(
        type="tool_result", file_action="read", born__lte=revision.step
    ).exclude(file_path="")
    closed = Entry.objects.filter(run=revision.run, to_step__lte=revision.step).exclude(block=None)
    standing = readings.exclude(pk__in=closed.values("block_id"))
    return set(readings.values_list("file_path", flat=True)) - set(
        standing.values_list("file_path", flat=True)
    )


def _rereads(calls: QuerySet[Block], removed: dict[str, Block], gone: set[str]) -> list[Sign]:
    earlier = {
        block.file_path: block
        for block in removed.values()
        if block.file_action == "read" and block.file_path in gone
    }
    return [
        Sign("reread", block, block.born - 1, earlier[block.file_path])
        for block in calls
        if block.file_action == "read" and block.file_path in earlier
    ]


def _repeats(session: Session, calls: QuerySet[Block], removed: dict[str, Block]) -> list[Sign]:
    """Compare by preview first, because inputs are in blobs; then by the inputs."""
    earlier: dict[tuple[str, str, int], list[Block]] = {}
    for block in removed.values():
        earlier.setdefault((block.tool, block.preview, block.chars), []).append(block)
    same = [
        (block, before)
        for block in calls
        for before in earlier.get((block.tool, block.preview, block.chars), [])[-1:]
    ]
    data = contents(session, [block.sha for pair in same for block in pair])
    return [
        Sign("repeat", block, block.born - 1, before)
        for block, before in same
        if _input(data[block.sha]) == _input(data[before.sha])
    ]


def _input(data: bytes) -> Any:
    return wire.decode(data).get("input")


def _errors(session: Session, revision: Revision, failed: QuerySet[Block]) -> list[Sign]:
    """Failed results with the same error line as a removed one."""
    later = list(failed)
    if not later:
        return []
    closed = Entry.objects.filter(
        closed_by__revision=revision, block__error=True, block__type="tool_result"
    )
    rows = closed.select_related("block__message").order_by("-position")[:MOST_ERRORS]
    before = [entry.block for entry in rows if entry.block is not None]
    lines = _signatures(session, [*later, *before])
    known = {lines[block.pk]: block for block in reversed(before) if lines[block.pk]}
    return [
        Sign("error", block, block.born - 1, known[lines[block.pk]])
        for block in later
        if lines[block.pk] in known
    ]


def _signatures(session: Session, blocks: Iterable[Block]) -> dict[int, str]:
    rows = list(blocks)
    data = contents(session, [block.sha for block in rows])
    return {row.pk: alike(signature(wire.text_of(wire.decode(data[row.sha])))) for row in rows}


def _corrections(said: QuerySet[Block]) -> list[Sign]:
    return [Sign("correction", block, block.born) for block in said if is_correction(block.preview)]
