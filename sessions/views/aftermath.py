"""What an agent did after a part of its context was taken out: signs of what it missed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from compaction import wire
from sessions.models import Block, Entry, Revision, Session
from sessions.models.values import contents

STEPS = 10
"""Steps after a revision that are looked at."""

SHOWN = 50


@dataclass(frozen=True, slots=True)
class Sign:
    """A tool call after the revision that brings back what the revision took out."""

    block: Block
    step: int
    earlier: Block


@dataclass(frozen=True, slots=True)
class Aftermath:
    """Files read again, and calls made again with the same input; both counted per call."""

    first_step: int
    last_step: int
    rereads: list[Sign]
    repeats: list[Sign]


def aftermath(session: Session, revision: Revision) -> Aftermath:
    """Calls made in the ten steps from the revision on, against what it took out.

    A file counts as read again only where no earlier reading of it was left standing.
    """
    step = revision.step
    # What the model says at a step stands in the context from the next one on.
    after = (
        session.blocks.filter(type="tool_use", born__gt=step, born__lte=step + STEPS)
        .select_related("message")
        .order_by("position")
    )
    removed = _removed(session, revision)
    gone = _gone(session, revision)
    last = min(step + STEPS - 1, session.step_count)
    return Aftermath(step, last, _rereads(after, removed, gone), _repeats(session, after, removed))


def _removed(session: Session, revision: Revision) -> dict[str, Block]:
    """Tool calls whose result, or the call itself, this revision closed; by the call's id."""
    closed = Entry.objects.filter(closed_by__revision=revision).exclude(block=None)
    ids = set(closed.exclude(block__tool_call="").values_list("block__tool_call", flat=True))
    calls = session.blocks.filter(type="tool_use", born__lte=revision.step)
    return {
        block.tool_call: block
        for block in calls.select_related("message").order_by("position")
        if block.tool_call in ids
    }


def _gone(session: Session, revision: Revision) -> set[str]:
    """Paths of which no reading stands in the context that follows the revision."""
    readings = session.blocks.filter(
        type="tool_result", file_action="read", born__lte=revision.step
    ).exclude(file_path="")
    closed = Entry.objects.filter(run=revision.run, to_step__lte=revision.step).exclude(block=None)
    standing = readings.exclude(pk__in=closed.values("block_id"))
    return set(readings.values_list("file_path", flat=True)) - set(
        standing.values_list("file_path", flat=True)
    )


def _rereads(after: QuerySet[Block], removed: dict[str, Block], gone: set[str]) -> list[Sign]:
    earlier = {
        block.file_path: block
        for block in removed.values()
        if block.file_action == "read" and block.file_path in gone
    }
    return [
        Sign(block, block.born - 1, earlier[block.file_path])
        for block in after
        if block.file_action == "read" and block.file_path in earlier
    ]


def _repeats(session: Session, after: QuerySet[Block], removed: dict[str, Block]) -> list[Sign]:
    """Compared by preview first, since inputs lie in blobs; then by the input itself."""
    earlier: dict[tuple[str, str, int], list[Block]] = {}
    for block in removed.values():
        earlier.setdefault((block.tool, block.preview, block.chars), []).append(block)
    alike = [
        (block, before)
        for block in after
        for before in earlier.get((block.tool, block.preview, block.chars), [])[-1:]
    ]
    data = contents(session, [block.sha for pair in alike for block in pair])
    return [
        Sign(block, block.born - 1, before)
        for block, before in alike
        if _input(data[block.sha]) == _input(data[before.sha])
    ]


def _input(data: bytes) -> Any:
    return wire.decode(data).get("input")
