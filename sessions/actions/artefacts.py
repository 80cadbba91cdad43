"""Artefacts: summaries and outlines, made once in a job and found again by what they are of."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable

import msgspec
from django.db import transaction

from compaction import tokens
from compaction.context import Block
from compaction.plan import FileText, Span
from compaction.redact import mask_span
from sessions.models import Artefact, Blob, Session
from sessions.models.blobs import sha256
from sessions.models.values import contents
from sessions.summarizers import Made, chosen

OUTLINER = "tree-sitter"


def digest(kind: str, maker: str, wanted: Span | FileText) -> str:
    """What names an artefact: its kind, who was asked for it, and all that it is made from."""
    if isinstance(wanted, FileText):
        source: object = (wanted.path, wanted.sha)
    else:
        source = (
            wanted.form,
            wanted.budget,
            wanted.instructions,
            wanted.previous,
            _names(wanted.blocks),
            _names(wanted.originals),
            _names(wanted.kept),
        )
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


def outline_text(session: Session, file: FileText) -> str | None:
    """The outline of a file, or None while nobody has made it."""
    found = _ready(session, Artefact.Kind.OUTLINE, digest("outline", OUTLINER, file))
    return found and _text(session, found)


def _ready(session: Session, kind: str, name: str) -> str | None:
    """The address of a finished artefact's text."""
    rows = Artefact.objects.filter(session=session, kind=kind, digest=name)
    return rows.values_list("sha", flat=True).first()


def _text(session: Session, sha: str) -> str:
    return contents(session, [sha])[sha].decode("utf-8", "surrogatepass")


def make(session: Session, wanted: Span) -> Artefact:
    """Make a summary and store it, or take the one that another worker has stored meanwhile.

    For job processes: it may take minutes. No transaction is open while a text is made.
    """
    began = time.monotonic()
    summarizer = chosen()
    name = digest("summary", summarizer.name, wanted)
    if _ready(session, Artefact.Kind.SUMMARY, name) is None:
        # Before anything else: whoever writes the summary has never seen the secrets.
        span, masked = mask_span(wanted)
        made = summarizer.summarize(span, lambda text: session.scaled(tokens.count(text)))
        _store(session, name, made, masked, int((time.monotonic() - began) * 1000))
    return Artefact.objects.get(session=session, kind=Artefact.Kind.SUMMARY, digest=name)


def _store(session: Session, name: str, made: Made, masked: dict[str, int], ms: int) -> None:
    """Text and row in one transaction; of two workers the first one's row stays."""
    data = made.text.encode("utf-8", "surrogatepass")
    row = Artefact(
        session=session,
        kind=Artefact.Kind.SUMMARY,
        digest=name,
        sha=sha256(data),
        maker=made.maker,
        model=made.model,
        note=made.note[:400],
        usage=dict(made.usage),
        cost_microusd=made.cost_microusd,
        masked=masked,
        ms=ms,
    )
    with transaction.atomic():
        Blob.objects.bulk_create([Blob.of(session.team_id, data)], ignore_conflicts=True)
        Artefact.objects.bulk_create([row], ignore_conflicts=True)
