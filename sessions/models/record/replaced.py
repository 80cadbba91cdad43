"""What a compaction replaced, its summary, and the rest of the context, as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from django.db.models import Q, QuerySet

from compaction.context import edits
from compaction.context.blocks import Block
from compaction.context.wire import decode, text_of
from compaction.summaries.summary import board_apart
from compaction.tokens import count
from sessions.models.record.blobs import sha256
from sessions.models.record.revisions import Edit, Entry, Replacement, Revision, Run
from sessions.models.record.sessions import Session
from sessions.models.record.values import CHUNK, blocks_at, contents, summary_positions

REAL = (Run.Origin.RECORDED, Run.Origin.MANAGED)
"""Origins of runs that a model really saw."""

SUMMARISING = Q(summary__type="text") | Q(replacement__kind="summary", replacement__type="text")
"""Edits that replace blocks by a readable summary."""

UNREADABLE = Q(summary__kind="summary") & ~Q(summary__type="text")
"""Edits that replace blocks by a summary that only its provider can read, such as Codex's encrypted
ones."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """One compaction. `span` is what it replaced, as the model saw it; `sources` are the originals
    behind stubs in the span; `standing` is the rest of the first context after it, with the board
    that follows the summary; `refs` are ids of originals that the summary refers to."""

    span: tuple[Block, ...]
    sources: tuple[Block, ...]
    summary: str
    standing: tuple[Block, ...]
    refs: tuple[str, ...]


def summarised(session: Session) -> QuerySet[Revision]:
    """Revisions of recorded and managed contexts that contain a summary, in order."""
    made = Edit.objects.filter(SUMMARISING, revision__run__session=session)
    rows = Revision.objects.filter(run__session=session, run__origin__in=REAL)
    return rows.filter(pk__in=made.values("revision")).order_by("run", "number")


def replaced(session: Session, revision: Revision) -> Replaced | None:
    """Read what a revision replaced by a summary; None if it contains none."""
    made = list(revision.edits.filter(SUMMARISING).select_related("summary", "replacement"))
    if not made:
        return None
    rows = [edit.summary or edit.replacement for edit in made]
    data = contents(session, [row.sha for row in rows if row is not None])
    span = list(Entry.objects.filter(closed_by__in=made).select_related("replacement"))
    read = _BlockReader(session)
    texts = [board_apart(text_of(decode(data[row.sha]))) for row in rows if row is not None]
    boards = (_board_block(session, revision, board) for _, board in texts if board)
    return Replaced(
        span=tuple(read.blocks(span)),
        sources=tuple(read.originals(entry.position for entry in span if entry.replacement)),
        summary="\n".join(summary for summary, _ in texts),
        standing=(*read.blocks(_standing(session, revision, made)), *boards),
        refs=tuple(
            ref for edit in made if edit.replacement is not None for ref in edit.replacement.refs
        ),
    )


def unseen(session: Session, revision: Revision, tokens: int) -> int | None:
    """Replaced tokens that the log reports but does not contain, as when a session continues
    another log's. `tokens` is the size of the entries the revision closed. None if the log reports
    nothing, or contains at least half."""
    if not revision.tokens_stated or revision.tokens_before is None:
        return None
    lacking = revision.tokens_before - session.hidden_tokens - tokens
    return lacking if lacking > revision.tokens_before // 2 else None


def _standing(session: Session, revision: Revision, made: list[Edit]) -> list[Entry]:
    """Entries of the context at the revision's step, without its summaries; blocks without an entry
    get an unsaved one."""
    run, step = revision.run, revision.step
    stands = Q(from_step__lte=step) & (Q(to_step=None) | Q(to_step__gt=step))
    rows = run.entries.filter(stands).select_related("replacement")
    ours = {edit.replacement_id for edit in made} - {None}
    found = [row for row in rows if row.replacement_id not in ours]
    noted = set(run.entries.exclude(block=None).values_list("position", flat=True))
    noted |= {edit.summary.position for edit in made if edit.summary is not None}
    places = session.blocks.filter(born__lte=step).values_list("position", flat=True)
    found += [Entry(run=run, position=place) for place in places if place not in noted]
    return found


def _board_block(session: Session, revision: Revision, text: str) -> Block:
    sha = sha256(text.encode("utf-8", "surrogatepass"))
    return Block(
        id="board", position=0, message=0, born=revision.step, turn=0, role="user", type="text",
        kind="memory", tokens=session.scaled(count(text)), chars=len(text), sha=sha, text=text,
    )  # fmt: skip


class _BlockReader:
    """Reads blocks of one session, each only once."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._known: dict[int, Block] = {}

    def originals(self, places: Iterable[int]) -> list[Block]:
        wanted = set(places)
        for block in blocks_at(self.session, wanted - self._known.keys()):
            self._known[block.position] = block
        return [self._known[place] for place in sorted(wanted)]

    def blocks(self, entries: Iterable[Entry]) -> list[Block]:
        """The blocks of entries, in context order."""
        listed = sorted(entries, key=lambda entry: (entry.position, entry.from_step or 0))
        originals = {b.position: b for b in self.originals(one.position for one in listed)}
        made = [entry.replacement for entry in listed if entry.replacement is not None]
        data = contents(self.session, [row.sha for row in made])
        return [
            originals[entry.position]
            if entry.replacement is None
            else made_block(self.session, originals[entry.position], entry.replacement, data)
            for entry in listed
        ]


def made_block(
    session: Session, original: Block, row: Replacement, data: Mapping[str, bytes]
) -> Block:
    """A replacement as an engine block, at the position of the first original it replaces."""
    summary = row.kind == "summary"
    return replace(
        original,
        id=row.name or f"p{row.pk}",
        role=row.role,  # type: ignore[arg-type]
        type=row.type,  # type: ignore[arg-type]
        kind=row.kind,  # type: ignore[arg-type]
        tokens=session.scaled(row.tokens),
        chars=row.chars,
        sha=row.sha,
        text=text_of(decode(data[row.sha])),
        tool_call=None if summary else original.tool_call,
        file=None if summary else original.file,
        error=original.error and not summary,
        replaces=original.id,
        refs=tuple(row.refs),
    )


def lifespans(run: Run, originals: Iterable[Block]) -> list[edits.Entry]:
    """The lifespans of original blocks in a run; one without an entry stands from its birth on."""
    known = {block.position: block for block in originals}
    places = sorted(known)
    rows: list[Entry] = []
    for begin in range(0, len(places), CHUNK):
        part = run.entries.filter(position__in=places[begin : begin + CHUNK]).exclude(block=None)
        rows += part.select_related("closed_by__revision").order_by("position", "from_step")
    noted = {row.position for row in rows}
    found = [edits.Entry(known[place], known[place].born) for place in places if place not in noted]
    return found + [_value(row, known[row.position]) for row in rows]


def _value(row: Entry, block: Block) -> edits.Entry:
    closed = row.closed_by.revision.number if row.closed_by is not None else None
    return edits.Entry(block, row.from_step, row.to_step, closed_by=closed)


def entries_of(session: Session, run: Run, originals: Iterable[Block]) -> tuple[edits.Entry, ...]:
    """The lifespans of all blocks in a run: its entries, originals without one from their birth,
    and in a recorded run the summaries that its log states."""
    ordered = run.entries.order_by("position", "from_step")
    rows = list(ordered.select_related("replacement", "closed_by__revision"))
    made = [row.replacement for row in rows if row.replacement is not None]
    data = contents(session, [row.sha for row in made])
    known = {block.position: block for block in originals}
    if run.origin == Run.Origin.RECORDED:
        known |= {one.position: one for one in blocks_at(session, summary_positions(session))}
    noted = {row.position for row in rows if row.replacement is None}
    found = [edits.Entry(known[p], known[p].born) for p in known if p not in noted]
    for row in rows:
        block = known.get(row.position)
        if row.replacement is not None and block is not None:
            block = made_block(session, block, row.replacement, data)
        if block is not None:
            found.append(_value(row, block))
    return tuple(found)
