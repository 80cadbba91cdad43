"""Artefacts: summaries, outlines and judgements, made once in a job and found again by what they
are of."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

import msgspec
from django.db import DatabaseError, transaction

from compaction import tokens
from compaction.context import Block
from compaction.plan import FileText, Span, Wish
from compaction.redaction.redact import mask_span
from compaction.summaries import images
from compaction.topic import Topic
from sessions import topic_judge
from sessions.actions import boards
from sessions.models import Artefact, Blob, Session
from sessions.models.blobs import sha256
from sessions.models.values import contents
from sessions.summarizers import Summarizer, chosen
from sessions.topic_judge import NEW, SAME, Judge

log = logging.getLogger(__name__)

OUTLINER = "tree-sitter"


def digest(kind: str, maker: str, wanted: Wish) -> str:
    """What names an artefact: its kind, who was asked for it, and all that it is made from."""
    if isinstance(wanted, FileText):
        source: object = (wanted.path, wanted.sha)
    elif isinstance(wanted, Topic):
        source = ([(one.said, one.answered) for one in wanted.rounds], wanted.message)
    else:
        source = (
            wanted.form,
            wanted.budget,
            wanted.instructions,
            wanted.board,
            wanted.previous,
            _names(wanted.blocks),
            _names(wanted.originals),
            _names(wanted.kept),
        )
    try:
        data = msgspec.json.encode((kind, maker, source))
    except UnicodeEncodeError:
        data = msgspec.json.encode((kind, maker, _encodable(source)))
    return hashlib.sha256(data).hexdigest()


def _names(blocks: Iterable[Block]) -> list[tuple[str, str]]:
    return [(block.id, block.sha) for block in blocks]


def _encodable(value: object) -> object:
    """The same with lone surrogates, which have no UTF-8, written out."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return [_encodable(item) for item in value] if isinstance(value, (list, tuple)) else value


def summary_text(session: Session, span: Span) -> str | None:
    """The summary of a span, or None while nobody has made it."""
    found = _ready(session, Artefact.Kind.SUMMARY, digest("summary", chosen().name, span))
    return found and _text(session, found)


def summary_ms(session: Session, span: Span) -> int | None:
    """How long the summary of a span took to be made; None while nobody has made it."""
    name = digest("summary", chosen().name, span)
    rows = Artefact.objects.filter(session=session, kind=Artefact.Kind.SUMMARY, digest=name)
    return rows.values_list("ms", flat=True).first()


def outline_text(session: Session, file: FileText) -> str | None:
    """The outline of a file, or None while nobody has made it."""
    found = _ready(session, Artefact.Kind.OUTLINE, digest("outline", OUTLINER, file))
    return found and _text(session, found)


def verdict(session: Session, topic: Topic, judge: Judge) -> bool | None:
    """Whether a message begins a new topic, or None while nobody has judged it."""
    found = _ready(session, Artefact.Kind.TOPIC, digest("topic", judge.name, topic))
    return None if found is None else _text(session, found) == NEW


def _ready(session: Session, kind: str, name: str) -> str | None:
    """The address of a finished artefact's text."""
    rows = Artefact.objects.filter(session=session, kind=kind, digest=name)
    return rows.values_list("sha", flat=True).first()


def _text(session: Session, sha: str) -> str:
    return contents(session, [sha])[sha].decode("utf-8", "surrogatepass")


def make(session: Session, wanted: Wish) -> Artefact:
    """Make a summary, an outline or a judgement and store it, or take what is stored by now.

    For job processes: it may take minutes. No transaction is open while a text is made; of two
    workers that make the same one, the first one's is kept.
    """
    write: Callable[[], tuple[Artefact, str]]
    if isinstance(wanted, FileText):
        kind, maker = Artefact.Kind.OUTLINE, OUTLINER
        write = partial(_outline, wanted)
    elif isinstance(wanted, Topic):
        # Chosen when it was wanted; if the settings changed since, the settings' own answer.
        judge = topic_judge.chosen() or topic_judge.Embedded()
        kind, maker = Artefact.Kind.TOPIC, judge.name
        write = partial(_judgement, judge, wanted)
    else:
        summarizer = chosen()
        kind, maker = Artefact.Kind.SUMMARY, summarizer.name
        write = partial(_summary, summarizer, session, wanted)
    name = digest(kind, maker, wanted)
    if _ready(session, kind, name) is None:
        began = time.monotonic()
        row, text = write()
        row.session, row.kind, row.digest = session, kind, name
        row.ms = int((time.monotonic() - began) * 1000)
        _store(row, text)
    return Artefact.objects.get(session=session, kind=kind, digest=name)


def _summary(summarizer: Summarizer, session: Session, span: Span) -> tuple[Artefact, str]:
    # Beside what names the summary: a board that grew meanwhile must not ask for another.
    span = replace(span, board=span.board or _board(session))
    # Before anything else: whoever writes the summary has never seen the secrets.
    span, masked = mask_span(span)
    span, pictures = images.take_out(span)
    made = summarizer.summarize(span, lambda text: session.scaled(tokens.count(text)))
    row = Artefact(
        maker=made.maker,
        model=made.model,
        note=made.note[:400],
        usage=dict(made.usage),
        cost_microusd=made.cost_microusd,
        masked=masked,
        unsupported=[_clean(fact) for fact in made.unsupported],
    )
    return row, images.put_back(made.text, pictures)


def _judgement(judge: Judge, topic: Topic) -> tuple[Artefact, str]:
    made = judge.judge(topic)
    row = Artefact(
        maker=made.maker,
        model=made.model,
        note=made.note[:400],
        usage=dict(made.usage),
        cost_microusd=made.cost_microusd,
        masked=dict(made.masked),
    )
    return row, NEW if made.new else SAME


def _board(session: Session) -> str:
    """The session's board, as a help for whoever writes; a summary does not wait for one."""
    try:
        return boards.rendered(session, boards.board_of(session)).text
    except DatabaseError as error:
        log.warning("a summary is written without its board: %s", type(error).__name__)
        return ""


def _clean(text: str) -> str:
    """PostgreSQL takes neither NUL nor lone surrogates."""
    return text.replace("\x00", "␀").encode("utf-8", "replace").decode("utf-8")


def _outline(file: FileText) -> tuple[Artefact, str]:
    # Grammars are loaded by who needs them: servers never do.
    from compaction.outlines.outline import outline

    return Artefact(maker=OUTLINER), outline(file.text, file.path)


def _store(row: Artefact, text: str) -> None:
    """Text and row in one transaction; of two workers the first one's row stays."""
    data = text.encode("utf-8", "surrogatepass")
    row.sha = sha256(data)
    with transaction.atomic():
        blob = Blob.of(row.session.team_id, data, row.sha)
        Blob.objects.bulk_create([blob], ignore_conflicts=True)
        Artefact.objects.bulk_create([row], ignore_conflicts=True)
