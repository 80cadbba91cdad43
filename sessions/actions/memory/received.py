"""What other sessions shared with a session: in its context, and to be read back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from django.db import transaction
from django.db.models import QuerySet

from compaction import tokens
from compaction.board.board import BoardSize, render
from compaction.board.shared import SHARES, Shared, rests_on
from compaction.context.blocks import Ending
from sessions.actions.memory import boards
from sessions.models import Blob, Note, Session, Share
from sessions.models.record.blobs import keep
from sessions.models.record.values import contents

KNOWN = "[Shared by other sessions of the team. Not a message of the user, and not verified.]"

KNOWN_SIZE = BoardSize(800)
RESTS_TOKENS = 400
"""Maximum tokens of shared knowledge, and of what it rests on (our choice)."""


def known_to(session: Session) -> tuple[str, str, int]:
    """Knowledge shared with a session: its text, the blob it is stored as, and its tokens.

    It is recited at the end, after the last cache breakpoint; empty if nothing was shared.
    """

    def count(text: str) -> int:
        return session.scaled(tokens.count(text))

    rows = list(_notes(session).select_related("share").order_by("pk"))
    made = render([boards.entry_of(row) for row in rows], KNOWN_SIZE, count).text if rows else ""
    if not made:
        return "", "", 0
    newest = rows[-SHARES:][::-1]
    shares = [_shared(session, row.share) for row in newest if row.share is not None]
    text = "\n".join(filter(None, (KNOWN, made, rests_on(shares, RESTS_TOKENS, count))))
    blob = Blob.of(session.team_id, text.encode("utf-8", "replace"))
    with transaction.atomic():
        keep(blob.team_id, [blob])
    return text, blob.sha, count(text)


def _notes(session: Session) -> QuerySet[Note]:
    return Note.objects.filter(
        share__deliveries__session=session,
        board__team=session.team_id,
        board__name=session.task or str(session.pk),
        removed=None,
    )


def received(session: Session, share: int) -> Share | None:
    """A share that was delivered to this session and is still on its board."""
    row = _notes(session).filter(share=share, share__team=session.team_id).first()
    return None if row is None else row.share


def _shared(session: Session, row: Share) -> Shared:
    # Sessions of one task have one board, which they see anyway.
    board = "" if row.task and row.task == session.task else row.board
    return Shared(share_ref(row), row.agent, board, tuple(results(row)))


def share_ref(row: Share, result: str = "") -> str:
    """The reference by which a receiver reads a share, or one of its results."""
    return f"share:{row.pk}:{result}" if result else f"share:{row.pk}"


def results(row: Share) -> Iterator[tuple[str, str]]:
    """References to the results of a share, with tool and path: first those that its summary or
    board names, then the newest."""
    said = f"{row.summary}\n{row.board}"

    def is_named(one: dict[str, str]) -> bool:
        return one["ref"].partition("@")[0] in said or bool(one["path"] and one["path"] in said)

    newest = row.refs[::-1]
    for one in sorted(newest, key=lambda one: not is_named(one)):
        yield share_ref(row, one["ref"]), f"{one['tool']} {one['path']}".strip()


def known_then(session: Session, sha: str) -> str:
    """The shared knowledge recited in an earlier context, by its blob."""
    return contents(session, [sha])[sha].decode() if sha else ""


def ending_with(ending: Ending, known: str, more: int) -> Ending:
    """Put words from elsewhere, such as shared knowledge, in front of the end of a context."""
    if not known:
        return ending
    aside = f"{known}\n{ending.aside}" if ending.aside else known
    return replace(ending, aside=aside, tokens=ending.tokens + more)
