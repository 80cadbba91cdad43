"""Data for a reviewer: replaced blocks, summary, facts, and after-effects."""

from __future__ import annotations

from typing import Any

from sessions.actions.reviews.after_effects import after_effects
from sessions.models import Block, Entry, Replacement, Revision, Session
from sessions.models.record.replaced import unseen
from sessions.views.reviews.ledgers import aftermath
from sessions.views.reviews.removal import closed_by, summary_texts
from sessions.views.reviews.sections import sections
from sessions.views.web.places import entry_name, entry_url


def original(session: Session, revision: Revision) -> dict[str, Any]:
    """The replaced blocks without texts, the summaries with texts, and the ledger."""
    ledger = getattr(revision, "fact_ledger", None)
    listed = [_block(session, revision, entry) for entry in closed_by(revision)]
    return {
        "blocks": listed,
        "unseen": unseen(session, revision, sum(block["tokens"] for block in listed)),
        "summaries": [
            {
                "tokens": session.scaled(row.tokens),
                "parts": [{"title": part.title, "text": part.text} for part in sections(text)],
                "left_out": left_out,
            }
            for row, text, left_out in summary_texts(session, revision)
        ],
        "ledger": {
            "facts": ledger.facts,
            "sections": ledger.sections,
            "score": ledger.score,
        }
        if ledger is not None
        else None,
        "missed": _missed(session, revision),
    }


def _missed(session: Session, revision: Revision) -> dict[str, Any]:
    """After-effects, as on the compaction's page."""
    found = after_effects(session, revision)
    return {
        "first_step": found.first_step,
        "last_step": found.last_step,
        "counts": found.counts,
        "signs": aftermath(session, revision, found)["signs"],
    }


def _block(session: Session, revision: Revision, entry: Entry) -> dict[str, Any]:
    row: Block | Replacement | None = entry.block or entry.replacement
    assert row is not None
    original = entry.block
    return {
        "entry": entry.pk,
        "name": entry_name(original) if original else "",
        "role": original.message.role if original else row.role,  # type: ignore[union-attr]
        "kind": row.kind,
        "type": row.type,
        "tool": row.tool,
        "file": original.file_path if original else "",
        "error": original.error if original else False,
        "tokens": session.scaled(row.tokens),
        "chars": row.chars,
        "preview": row.preview,
        "url": entry_url(session, original, revision.step - 1, revision.run) if original else "",
    }
