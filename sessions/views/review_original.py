"""What a reviewer reads: what was replaced, the summary, its facts, and what was missed later."""

from __future__ import annotations

from typing import Any

from sessions.actions.after_effects import after_effects
from sessions.models import Block, Entry, Replacement, Revision, Session
from sessions.models.replaced import unseen
from sessions.views.ledgers import aftermath
from sessions.views.places import entry_name, entry_url
from sessions.views.removal import closed_by, summary_texts
from sessions.views.sections import sections


def original(session: Session, revision: Revision) -> dict[str, Any]:
    """What was replaced, without its texts; the summaries with theirs; the ledger."""
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
    """What the agent did again after it, or was told again, as the compaction's page lists it."""
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
