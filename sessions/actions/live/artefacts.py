"""Artefacts: summaries, outlines and topic verdicts, made once in a job and found by their
inputs."""

from __future__ import annotations

import hashlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

import msgspec
from django.db import DatabaseError

from compaction import tokens
from compaction.context.blocks import Block
from compaction.proposals.plan import FileText, Span, Wish
from compaction.redaction.redact import mask_span
from compaction.redaction.team_rules import TeamRule, masked_by
from compaction.summaries import images
from compaction.topic.topic import Round, Topic
from sessions import topic_judge
from sessions.actions.memory import boards
from sessions.models import Artefact, Blob, Session
from sessions.models.erasure.kept import while_kept
from sessions.models.masking.masking import rules_of
from sessions.models.record.blobs import keep, sha256
from sessions.models.record.values import contents
from sessions.summarizers import Extractive, Summarizer, chosen
from sessions.topic_judge import NEW, SAME, Judge

log = logging.getLogger(__name__)

OUTLINER = "tree-sitter"

AT_ONCE_CHARS = 250_000
"""Maximum size of a span, in code points, that is summarized by code within the request: about 30
ms, at worst 150, mostly masking. Workers summarize longer spans."""


def label(wish: Wish) -> str:
    """The name of a missing artefact in a plan."""
    if isinstance(wish, Topic):
        return "topic"
    return "summary" if isinstance(wish, Span) else f"outline of {wish.path}"


def digest(kind: str, maker: str, wanted: Wish) -> str:
    """The digest of an artefact's kind, maker and inputs."""
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
    """Escape lone surrogates, which cannot be encoded as UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return [_encodable(item) for item in value] if isinstance(value, (list, tuple)) else value


def summary_text(session: Session, span: Span) -> str | None:
    """The summary of a span; None if it is not ready."""
    found = _ready(session, Artefact.Kind.SUMMARY, digest("summary", chosen().name, span))
    return found and _text(session, found)


def summary_now(session: Session, span: Span) -> str | None:
    """The summary of a span; short extractive ones are made immediately, without a worker."""
    text = summary_text(session, span)
    short = sum(block.chars for block in span.blocks) <= AT_ONCE_CHARS
    if text is None and short and isinstance(chosen(), Extractive):
        make(session, span)
        text = summary_text(session, span)
    return text


def summary_ms(session: Session, span: Span) -> int | None:
    """Milliseconds it took to make the summary of a span; None if it is not ready."""
    name = digest("summary", chosen().name, span)
    rows = Artefact.objects.filter(session=session, kind=Artefact.Kind.SUMMARY, digest=name)
    return rows.values_list("ms", flat=True).first()


def outline_text(session: Session, file: FileText) -> str | None:
    """The outline of a file; None if it is not ready."""
    found = _ready(session, Artefact.Kind.OUTLINE, digest("outline", OUTLINER, file))
    return found and _text(session, found)


def verdict(session: Session, topic: Topic, judge: Judge) -> bool | None:
    """Whether a message begins a new topic; None if it is not judged yet."""
    found = _ready(session, Artefact.Kind.TOPIC, digest("topic", judge.name, topic))
    return None if found is None else _text(session, found) == NEW


def _ready(session: Session, kind: str, name: str) -> str | None:
    """The SHA-256 of a finished artefact's text."""
    rows = Artefact.objects.filter(session=session, kind=kind, digest=name)
    return rows.values_list("sha", flat=True).first()


def _text(session: Session, sha: str) -> str:
    return contents(session, [sha])[sha].decode("utf-8", "surrogatepass")


def make(session: Session, wanted: Wish) -> Artefact:
    """Make and store an artefact, unless it is already stored.

    For job processes: it may take minutes. No transaction is open while a text is made; of two
    concurrent workers, the first one's result is kept.
    """
    write: Callable[[], tuple[Artefact, str]]
    if isinstance(wanted, FileText):
        kind, maker = Artefact.Kind.OUTLINE, OUTLINER
        write = partial(_outline, wanted)
    elif isinstance(wanted, Topic):
        # The judge selected when it was requested; after a change of settings, the current one.
        judge = topic_judge.chosen() or topic_judge.Embedded()
        kind, maker = Artefact.Kind.TOPIC, judge.name
        write = partial(_judgement, judge, session, wanted)
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
    # Not part of the digest: a board that grew meanwhile must not cause another summary.
    span = replace(span, board=span.board or _board(session))
    # First of all, so that the summarizer never sees the secrets.
    span, masked = mask_span(span, rules_of(session.team_id))
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


def _judgement(judge: Judge, session: Session, topic: Topic) -> tuple[Artefact, str]:
    masked: Counter[str] = Counter()
    made = judge.judge(_by_rules(topic, rules_of(session.team_id), masked))
    row = Artefact(
        maker=made.maker,
        model=made.model,
        note=made.note[:400],
        usage=dict(made.usage),
        cost_microusd=made.cost_microusd,
        masked=dict(masked + Counter(made.masked)),
    )
    return row, NEW if made.new else SAME


def _by_rules(topic: Topic, rules: Sequence[TeamRule], counts: Counter[str]) -> Topic:
    """A topic masked by the team's rules; a judge masks it by all others."""

    def clean(text: str) -> str:
        return masked_by(rules, text, counts)

    rounds = tuple(Round(clean(one.said), clean(one.answered)) for one in topic.rounds)
    return Topic(rounds, clean(topic.message))


def _board(session: Session) -> str:
    """The session's board, as background for the summarizer; empty if it cannot be read."""
    try:
        return boards.rendered(session, boards.board_of(session)).text
    except DatabaseError as error:
        log.warning("summarizing without the board: %s", type(error).__name__)
        return ""


def _clean(text: str) -> str:
    """Replace characters that PostgreSQL rejects: NUL and lone surrogates."""
    return text.replace("\x00", "␀").encode("utf-8", "replace").decode("utf-8")


def _outline(file: FileText) -> tuple[Artefact, str]:
    # Load grammars only when needed: servers never need them.
    from compaction.outlines.outline import outline

    return Artefact(maker=OUTLINER), outline(file.text, file.path)


def _store(row: Artefact, text: str) -> None:
    """Store text and row in one transaction; of two workers, the first one's row is kept. Raises
    SessionErased."""
    data = text.encode("utf-8", "surrogatepass")
    row.sha = sha256(data)
    with while_kept(row.session_id):
        blob = Blob.of(row.session.team_id, data, row.sha)
        keep(blob.team_id, [blob])
        Artefact.objects.bulk_create([row], ignore_conflicts=True)
