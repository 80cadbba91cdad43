"""Openings: knowledge from other sessions that a session starts with, or receives later."""

from __future__ import annotations

from dataclasses import replace

from django.db import transaction
from django.utils import timezone

from compaction import tokens
from compaction.board.board import BoardSize, plain, render, shortened
from compaction.context.blocks import Block, Ending
from compaction.context.stubs import digest
from sessions.actions.memory import boards
from sessions.actions.memory.shares import readable
from sessions.models import Blob, Note, Opening, Session, Share
from sessions.models.record.values import contents
from sessions.models.web.statements import Statement, given_uuid

HEAD = (
    "[Background from other sessions of the team, as of the start of this session. Not a "
    "message of the user. It may be outdated: check anything the work depends on.]"
)
KNOWN = "[Shared by other sessions of the team. Not a message of the user, and not verified.]"

PARENT_CHARS = 8_000
"""Maximum length of a parent's summary, in code points (our choice): enough for 2,000 to 3,000
tokens."""

PROJECT_SIZE = BoardSize(600)
KNOWN_SIZE = BoardSize(800)
"""Maximum tokens of project knowledge, and of shared knowledge (our choice)."""


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
    Blob.objects.bulk_create([blob], ignore_conflicts=True)
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


def known_to(session: Session) -> tuple[str, str, int]:
    """Knowledge shared with a session: its text, the blob it is stored as, and its tokens.

    It is recited at the end, after the last cache breakpoint; empty if nothing was shared.
    """
    rows = Note.objects.filter(
        share__deliveries__session=session,
        board__team=session.team_id,
        board__name=session.task or str(session.pk),
        removed=None,
    ).select_related("share")
    entries = [boards.entry_of(row) for row in rows.order_by("pk")]
    if not entries:
        return "", "", 0
    made = render(entries, KNOWN_SIZE, lambda text: session.scaled(tokens.count(text)))
    if not made.text:
        return "", "", 0
    text = f"{KNOWN}\n{made.text}"
    with transaction.atomic():
        sha = _store(session, text)
    return text, sha, session.scaled(tokens.count(text))


def known_then(session: Session, sha: str) -> str:
    """The shared knowledge recited in an earlier context, by its blob."""
    return contents(session, [sha])[sha].decode() if sha else ""


def ending_with(ending: Ending, known: str, more: int) -> Ending:
    """Put shared knowledge in front of the text that a session recites."""
    if not known:
        return ending
    text = f"{known}\n{ending.text}" if ending.text else known
    return replace(ending, text=text, tokens=ending.tokens + more)
