"""Openings: knowledge from other sessions that a session starts with."""

from __future__ import annotations

from django.utils import timezone

from compaction import tokens
from compaction.board.board import BoardSize, plain, shortened
from compaction.context.blocks import Block
from compaction.context.stubs import digest
from sessions.actions.memory import boards
from sessions.actions.memory.shares import readable
from sessions.models import Blob, Opening, Session, Share
from sessions.models.record.blobs import keep
from sessions.models.record.values import contents
from sessions.models.web.statements import Statement, given_uuid

HEAD = (
    "[Background from other sessions of the team, as of the start of this session. Not a "
    "message of the user. It may be outdated: check anything the work depends on.]"
)

PARENT_CHARS = 8_000
"""Maximum length of a parent's summary, in code points (our choice): enough for 2,000 to 3,000
tokens."""

PROJECT_SIZE = BoardSize(600)
"""Maximum tokens of project knowledge (our choice)."""


def fix(session: Session) -> None:
    """Freeze a session's opening at its first message; it never changes afterwards.

    What the agent requested, else the board of its task if its policy shows boards. Does nothing if
    nothing is known.
    """
    found = Opening.objects.filter(session=session).first()
    row = found or Opening(session=session, wanted="")
    if row.fixed is not None:
        return
    text = _text(session, row)
    if found is None and not text:
        return
    row.fixed = timezone.now()
    if text:
        row.tokens = session.scaled(tokens.count(text))
        row.sha = _store(session, text)
        # Until usage is reported, this is all we know of tokens the log does not show.
        session.hidden_tokens = row.tokens
        Session.objects.filter(pk=session.pk).update(hidden_tokens=row.tokens)
    row.save()


def _text(session: Session, row: Opening) -> str:
    if row.wanted == Opening.Wanted.NOTHING:
        return ""
    most = boards.shown_tokens(session)
    if not row.wanted and not (session.task and most):
        return ""
    # Only on request does a sub-agent learn what its parent knows.
    parent = session.parent if row.wanted else None
    of = parent if parent is not None and not session.task else session
    parts = []
    if parent is not None and (summary := _summary(parent)):
        content = shortened(readable(summary), PARENT_CHARS)
        parts.append(f"<parent_summary>\n{plain(content).replace('</', '< /')}\n</parent_summary>")
    size = BoardSize(most) if most else BoardSize()
    parts.append(boards.rendered(session, boards.board_of(of), size).text)
    if row.wanted == Opening.Wanted.PROJECT and (project := boards.project_of(session)):
        board = boards.project_board(session.team, project)
        if board is not None:
            text = boards.rendered(session, board, PROJECT_SIZE).text
            parts.append(text.replace("chat_board>", "project>"))
    content = "\n".join(part for part in parts if part)
    return f"{HEAD}\n{content}" if content else ""


def _summary(session: Session) -> str:
    shares = Share.objects.filter(session=session).exclude(summary="")
    return shares.order_by("number").values_list("summary", flat=True).last() or ""


def _store(session: Session, text: str) -> str:
    blob = Blob.of(session.team_id, text.encode("utf-8", "replace"))
    keep(blob.team_id, [blob])
    return blob.sha


def opening_of(session: Session) -> str:
    """The text of a session's opening; empty if there is none."""
    sha = Opening.objects.filter(session=session).values_list("sha", flat=True).first()
    return contents(session, [sha])[sha].decode() if sha else ""


def opening_tokens(session: Session) -> int:
    """Tokens of a session's opening, in its own counting."""
    return next(iter(_TOKENS.column(session=session.pk)), 0)


_TOKENS = Statement(
    lambda: Opening.objects.filter(session_id=given_uuid("session")).values_list("tokens")
)


def with_opening(session: Session, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Insert the session's opening into a context, as the first user message.

    It is part of the cached prefix and never changes; before the first message there is none.
    """
    if not any(block.kind not in ("tools", "system") for block in blocks):
        return blocks
    text = opening_of(session)
    if not text:
        return blocks
    place = next(i for i, one in enumerate(blocks) if one.kind not in ("tools", "system"))
    first = blocks[place]
    opening = Block(
        id="opening", position=first.position, message=first.message, born=1, turn=first.turn,
        role="user", type="text", kind="memory", tokens=opening_tokens(session), chars=len(text),
        sha=digest(text), text=text, replaces="opening",
    )  # fmt: skip
    return (*blocks[:place], opening, *blocks[place:])
