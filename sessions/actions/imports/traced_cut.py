"""Where a stored context of traces is cut, what is in the context there, and taking back the rest.

Work is in proportion to what follows a cut, but for counts and searches that only the database
does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, overload

from django.db.models import Count, F, Min, Q, QuerySet

from compaction.context import wire
from compaction.seen.people import words_of
from sessions.actions.search.indexing import forget_from
from sessions.importers.traces.traced_contexts import OPENING, TOOLS, TOOLS_KEY
from sessions.models import (
    Block,
    Edit,
    Entry,
    Gathering,
    Message,
    Retry,
    Revision,
    Run,
    Session,
    SimulationResult,
)
from sessions.models.record.values import contents

PERSONS_WORDS = 20
"""Messages of people at the beginning that are searched for a title (our choice)."""


class TraceMoved(Exception):
    """Another import wrote to the group while it was read."""


class TraceCut(NamedTuple):
    """A place in a session between two steps: the first step, message (seq) and block (position)
    after it."""

    step: int
    seq: int
    position: int


START = TraceCut(1, 1, 0)


def end_of(session: Session) -> TraceCut:
    """The place after all that is stored."""
    return TraceCut(session.step_count + 1, session.message_count + 1, session.block_count)


def opening_of(session: Session) -> str:
    """What names the context of a session; empty if an earlier release stored it."""
    return str(session.meta.get(OPENING) or "")


def cut_at(session: Session, since: int) -> TraceCut | None:
    """The place before the first call at that time or later (ms since the epoch); None if calls
    are not in the order of their times, or count only by their tools."""
    if opening_of(session) == TOOLS:
        return None
    earlier = session.calls.filter(Q(at__lt=since) | Q(at=None)).order_by("-step")
    step = (earlier.values_list("step", flat=True).first() or 0) + 1
    if session.calls.filter(step__lt=step, at__gte=since).exists():
        return None
    if step > session.step_count:
        return end_of(session)
    if step == 1:
        return START
    # An answer is born at the step after its call.
    theirs = session.messages.filter(Q(born__lt=step) | Q(born=step) & ~Q(call=""))
    seq = (theirs.order_by("-seq").values_list("seq", flat=True).first() or 0) + 1
    later = Block.objects.filter(message__session=session, message__seq__gte=seq)
    position = later.aggregate(first=Min("position"))["first"]
    return TraceCut(step, seq, session.block_count if position is None else position)


# What is in the context at a cut


def ended_steps(session: Session, cut: TraceCut = START) -> dict[int, int]:
    """The steps from which messages are no longer in the context, by number (seq): of what a cut
    takes back."""
    rows = _ended(session).filter(to_step__gte=cut.step)
    pairs = rows.values_list("block__message__seq", "to_step")
    return {seq: step for seq, step in pairs if seq is not None and step is not None}


def _ended(session: Session) -> QuerySet[Entry]:
    run = Run.objects.filter(session=session, origin=Run.Origin.RECORDED)
    return Entry.objects.filter(run__in=run, closed_by__strategy__in=Edit.LEFT)


def standing_rows(session: Session, cut: TraceCut) -> Iterator[Message]:
    """The messages in the context at a cut, but for tools, in order."""
    gone = _gone(session, cut)
    rows = session.messages.filter(seq__lt=cut.seq).exclude(key__startswith=TOOLS_KEY)
    return (row for row in rows.order_by("seq") if row.seq not in gone)


def standing_keys(session: Session, cut: TraceCut) -> list[str]:
    """The keys of the messages in the context at a cut, but for tools, in order."""
    gone = _gone(session, cut)
    rows = session.messages.filter(seq__lt=cut.seq).exclude(key__startswith=TOOLS_KEY)
    return [
        key or "" for seq, key in rows.order_by("seq").values_list("seq", "key") if seq not in gone
    ]


def standing_count(session: Session, cut: TraceCut) -> int:
    """The number of these messages."""
    rows = session.messages.filter(seq__lt=cut.seq)
    return cut.seq - 1 - rows.filter(key__startswith=TOOLS_KEY).count() - len(_gone(session, cut))


def _gone(session: Session, cut: TraceCut) -> set[int]:
    rows = _ended(session).filter(to_step__lt=cut.step, block__message__seq__lt=cut.seq)
    return set(rows.values_list("block__message__seq", flat=True).distinct())


def tools_rows(session: Session, cut: TraceCut) -> QuerySet[Message]:
    """Messages with the tools before a cut, the last one first."""
    rows = session.messages.filter(seq__lt=cut.seq, key__startswith=TOOLS_KEY)
    return rows.order_by("-seq")


def blocks_by_message(session: Session, blocks: QuerySet[Block]) -> dict[int, list[wire.WireBlock]]:
    """What blocks say, by message (primary key). Raises MissingBlob, DamagedBlob."""
    rows = list(blocks.values_list("message", "sha"))
    data = contents(session, [sha for _, sha in rows])
    held: dict[int, list[wire.WireBlock]] = {}
    for pk, sha in rows:
        held.setdefault(pk, []).append(wire.decode(data[sha]))
    return held


class StoredBlocks:
    """What all messages of a session say, read once when it is asked for."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @cached_property
    def by_message(self) -> dict[int, list[wire.WireBlock]]:
        """By the primary key of the message."""
        return blocks_by_message(self._session, self._session.blocks.order_by("position"))


class MessageBlocks(Sequence[wire.WireBlock]):
    """What one message says; what leaves it where it is does not read it."""

    def __init__(self, stored: StoredBlocks, message: int) -> None:
        self._stored, self._message = stored, message

    @property
    def _blocks(self) -> list[wire.WireBlock]:
        return self._stored.by_message.get(self._message, [])

    @overload
    def __getitem__(self, at: int) -> wire.WireBlock: ...
    @overload
    def __getitem__(self, at: slice) -> list[wire.WireBlock]: ...
    def __getitem__(self, at: int | slice) -> wire.WireBlock | list[wire.WireBlock]:
        return self._blocks[at]

    def __len__(self) -> int:
        return len(self._blocks)


# Taking back


def take_back(session: Session, cut: TraceCut) -> None:
    """Delete what follows a cut, and what was derived from it. Use in a transaction, with the
    group's lock, before the rest is appended."""
    forget_from(session, cut.position)
    fields = _counted_before(session, cut)
    Run.objects.filter(session=session).exclude(origin=Run.Origin.RECORDED).delete()
    SimulationResult.objects.filter(session=session).delete()
    Gathering.objects.filter(session=session).delete()
    run = Run.objects.get(session=session, origin=Run.Origin.RECORDED)
    Revision.objects.filter(run=run, step__gte=cut.step).delete()
    Run.objects.filter(pk=run.pk).update(
        head=run.revisions.order_by("-number").values_list("number", flat=True).first() or 0,
        entries_packed=b"",
        entries_key="",
        rewritten=(run.rewritten or 0) + 1,
        generation=F("generation") + 1,
    )
    messages = session.messages.filter(seq__gte=cut.seq)
    Retry.objects.filter(message__in=messages).delete()
    for rows in (
        session.blocks.filter(position__gte=cut.position),
        messages,
        session.calls.filter(step__gte=cut.step),
    ):
        rows._raw_delete("default")
    Session.objects.filter(pk=session.pk).update(**fields, measured=False, version=F("version") + 1)


def _counted_before(session: Session, cut: TraceCut) -> dict[str, object]:
    gone = session.blocks.filter(position__gte=cut.position).aggregate(
        tools=Count("pk", filter=Q(type="tool_use")), errors=Count("pk", filter=Q(error=True))
    )
    before = session.messages.filter(seq__lt=cut.seq).order_by("-seq")
    ended = before.exclude(at=None).values_list("at", flat=True).first()
    return {
        "step_count": cut.step - 1,
        "message_count": cut.seq - 1,
        "block_count": cut.position,
        "turn_count": before.values_list("turn", flat=True).first() or 0,
        "tool_call_count": session.tool_call_count - gone["tools"],
        "error_count": session.error_count - gone["errors"],
        "started_at": None if ended is None else session.started_at,
        "ended_at": ended,
    }


def keeps_title(session: Session, cut: TraceCut) -> bool:
    """Whether the title of a session is of what precedes a cut, a person's words."""
    if not session.title:
        return True
    said = session.blocks.filter(message__human=True, type="text", position__lt=cut.position)
    first = said.order_by("position").values_list("preview", flat=True)[:PERSONS_WORDS]
    return any(words_of(preview) for preview in first)
