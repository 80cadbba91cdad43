"""What a revision removed from a context, and what it inserted instead."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from django.db.models import Count, QuerySet

from compaction.context import wire
from compaction.context.blocks import KINDS
from sessions.models import Block, Edit, Entry, Replacement, Revision, Session
from sessions.models.record.values import contents
from sessions.views.reviews.sections import SummarySection, sections
from sessions.views.web.places import entry_url

ROWS_SHOWN = 50
SUMMARY_CHARS = 200_000
"""Most code points of a summary shown on a page."""


@dataclass(frozen=True, slots=True)
class Group:
    """Removed entries of one kind."""

    kind: str
    count: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Removed:
    """One removed entry; `url` leads to the last context that contained it."""

    kind: str
    name: str
    preview: str
    tokens: int
    url: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """An original and the stub that replaced it."""

    before: Removed
    stub: str
    tokens: int
    reason: str


@dataclass(frozen=True, slots=True)
class Summary:
    """The text that replaced the removed entries; its size is None if it is encrypted."""

    tokens: int | None
    sections: list[SummarySection]
    left_out: int


def closed_by(revision: Revision) -> QuerySet[Entry]:
    """Entries closed by the revision, in context order."""
    return (
        Entry.objects.filter(closed_by__revision=revision)
        .select_related("block__message", "replacement", "closed_by__replacement")
        .order_by("position", "from_step")
    )


def groups(session: Session, revision: Revision) -> list[Group]:
    """Removed entries by kind, in prompt order; tokens in the session's counting."""
    counts: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    names = ("block__kind", "block__tokens", "replacement__kind", "replacement__tokens")
    for kind, count, other_kind, other_count in closed_by(revision).values_list(*names):
        counts[kind or other_kind] += 1
        tokens[kind or other_kind] += session.scaled(count or other_count or 0)
    return [Group(kind, counts[kind], tokens[kind]) for kind in KINDS if counts[kind]]


def rows(session: Session, revision: Revision) -> list[Removed]:
    """The first entries removed without a stub."""
    found = closed_by(revision).exclude(closed_by__in=_stubbing(revision))
    return [_removed(session, revision, entry) for entry in found[:ROWS_SHOWN]]


def exchanges(session: Session, revision: Revision) -> tuple[list[Exchange], int]:
    """The first originals replaced by a stub, and their number."""
    found = closed_by(revision).filter(closed_by__in=_stubbing(revision))
    shown = []
    for entry in found[:ROWS_SHOWN]:
        edit = entry.closed_by
        assert edit is not None and edit.replacement is not None
        stub = edit.replacement
        shown.append(
            Exchange(
                _removed(session, revision, entry),
                stub.preview,
                session.scaled(stub.tokens),
                edit.reason,
            )
        )
    return shown, found.count()


def _stubbing(revision: Revision) -> QuerySet[Edit]:
    """Edits that replace one block by one block; one that replaces several is a summary."""
    edits = revision.edits.exclude(replacement=None).exclude(replacement__kind="summary")
    return edits.annotate(targets=Count("closed")).filter(targets=1)


def _removed(session: Session, revision: Revision, entry: Entry) -> Removed:
    row: Block | Replacement | None = entry.block or entry.replacement
    assert row is not None
    original = entry.block
    return Removed(
        row.kind,
        f"#{original.message.seq}" if original else "stub",
        row.preview,
        session.scaled(row.tokens),
        entry_url(session, original, revision.step - 1, revision.run) if original else "",
    )


_ENCRYPTED = "This summary is encrypted: only the provider can read it. Its size is unknown."


def summary_texts(
    session: Session, revision: Revision
) -> list[tuple[Block | Replacement, str, int]]:
    """Summaries inserted by the revision, from the log or by a policy: the row, its text as shown,
    and the number of characters omitted."""
    rows: list[Block | Replacement] = []
    for edit in revision.edits.select_related("summary", "replacement").order_by("index"):
        if edit.summary is not None:
            rows.append(edit.summary)
        elif edit.replacement is not None and edit.replacement.kind == "summary":
            rows.append(edit.replacement)
    data = contents(session, [row.sha for row in rows])
    return [
        (row, *(_shown(data[row.sha]) if row.type == "text" else (_ENCRYPTED, 0))) for row in rows
    ]


def _shown(data: bytes) -> tuple[str, int]:
    text = wire.text_of(wire.decode(data)).encode("utf-8", "replace").decode("utf-8")
    return text[:SUMMARY_CHARS].replace("\x00", "␀"), max(0, len(text) - SUMMARY_CHARS)


def summaries(session: Session, revision: Revision) -> list[Summary]:
    """The inserted summaries, in sections."""
    return [
        Summary(
            session.scaled(row.tokens) if row.type == "text" else None, sections(text), left_out
        )
        for row, text, left_out in summary_texts(session, revision)
    ]
