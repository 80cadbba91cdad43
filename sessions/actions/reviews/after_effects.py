"""Signs, after a compaction, that the agent missed something that was removed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from compaction.context.edits import Entry as EntryValue
from compaction.losses.loss_cost import LossCost
from compaction.losses.repairs import KINDS, WINDOW, Kind, Repair, repairs
from compaction.tools.read_tool import NAME as READ_BACK
from sessions.actions.reviews.losses import cost_of, is_seen
from sessions.models import Block, Revision, Session
from sessions.models.record.replaced import lifespans
from sessions.models.record.values import blocks_at, blocks_of, entry_name

STORED = 50
"""Most signs stored with a ledger; all are counted."""


@dataclass(frozen=True, slots=True)
class Sign:
    """A repair of a revision, with its call or message and the earlier call as rows.

    `earlier` is None for a correction, which is estimated from its wording.
    """

    kind: Kind
    block: Block
    step: int
    earlier: Block | None = None


@dataclass(frozen=True, slots=True)
class AfterEffects:
    """Signs in the steps after a revision, in order, each call once, and what the calls cost; None
    if the model saw other contexts than this run's."""

    first_step: int
    last_step: int
    signs: tuple[Sign, ...]
    cost: LossCost | None = None

    @property
    def counts(self) -> dict[Kind, int]:
        """The number of signs by kind."""
        found = Counter(sign.kind for sign in self.signs)
        return {kind: found[kind] for kind in KINDS}

    @property
    def files(self) -> int:
        """The number of files that were read again."""
        return len({one.block.file_path for one in self.signs if one.kind == "reread"})

    def stored(self) -> dict[str, Any]:
        """The signs as stored with a ledger: counts, the first ones by entry name, and
        micro-dollars if any are known to be paid (`at_least` if some calls have no price)."""
        paid = {}
        if self.cost is not None and self.cost.microusd:
            paid = {"microusd": self.cost.microusd, "at_least": self.cost.at_least}
        return {
            **paid,
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
    """Find the repairs of a revision and what they cost. Raises MissingBlob, DamagedBlob."""
    found = repairs_of(session, revision)
    places = {block.position for one in found for block in (one.block, one.earlier) if block}
    rows = session.blocks.filter(position__in=places).select_related("message")
    by_place = {row.position: row for row in rows}
    return AfterEffects(
        revision.step,
        min(revision.step + WINDOW - 1, session.step_count),
        tuple(
            Sign(
                one.kind,
                by_place[one.block.position],
                one.step,
                by_place[one.earlier.position] if one.earlier is not None else None,
            )
            for one in found
        ),
        cost_of(session, found) if is_seen(session, revision.run) else None,
    )


def repairs_of(session: Session, revision: Revision) -> tuple[Repair, ...]:
    """The repairs of one revision. Reads only the texts that can be compared, not the whole
    session. Raises MissingBlob, DamagedBlob."""
    if revision.trigger == "rewind":
        return ()
    return repairs(_compared(session, revision), {revision.number: revision.step})


def _compared(session: Session, revision: Revision) -> list[EntryValue]:
    """The calls after a revision that may repair it, and all that showed the same before."""
    step = revision.step
    # What a call reads back, only its input says: then everything is compared.
    if session.blocks.filter(type="tool_use", tool__endswith=READ_BACK).exists():
        return lifespans(revision.run, blocks_of(session, with_text=True))
    # The model's output at a step is in the context from the next step on.
    came = session.blocks.filter(born__gt=step, born__lte=step + WINDOW)
    before = session.blocks.filter(born__lte=step)
    uses = list(came.filter(type="tool_use"))
    paths = {use.file_path for use in uses if use.file_path}
    same = {(use.tool, use.chars) for use in uses if not use.file_path}
    like = Q(file_path__in=paths) | Q(
        file_path="",
        tool__in={tool for tool, _ in same},
        chars__in={chars for _, chars in same},
    )
    earlier = [
        use
        for use in before.filter(like, type="tool_use")
        if use.file_path or (use.tool, use.chars) in same
    ]
    shown = {use.file_path or (use.tool, use.chars) for use in earlier}
    again = [use for use in uses if (use.file_path or (use.tool, use.chars)) in shown]
    failed = came.filter(type="tool_result", error=True).values_list("tool_call", flat=True)
    wanted = {use.tool_call for use in (*earlier, *again)} | set(failed)
    if failed:
        errors = before.filter(type="tool_result", error=True)
        wanted |= set(errors.values_list("tool_call", flat=True))
    of_calls = session.blocks.filter(born__lte=step + WINDOW, tool_call__in=wanted - {""})
    said = came.filter(type="text", kind="user").values_list("position", flat=True)
    places = {*of_calls.values_list("position", flat=True), *said}
    commands = [use.position for use in earlier if not use.file_path]
    if commands and any(not use.file_path for use in again):
        # Whether the work changed between two runs of a command, the calls between them say.
        between = session.blocks.filter(type="tool_use", position__gt=min(commands))
        places |= set(between.filter(born__lte=step + WINDOW).values_list("position", flat=True))
    return lifespans(revision.run, blocks_at(session, places))
