"""Data for a reviewer: replaced blocks, summary, facts, and after-effects."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from compaction.losses.quality import Measure, fit
from compaction.losses.suggested import suggested
from sessions.actions.reviews.after_effects import AfterEffects, after_effects
from sessions.actions.reviews.compaction_verdicts import signs_said, verdict_on
from sessions.actions.reviews.sizes import counted_at, sizes_of, taken_out
from sessions.models import Block, Entry, FactLedger, Replacement, Revision, Session
from sessions.models.record.replaced import unseen
from sessions.views.reviews import quality
from sessions.views.reviews.ledgers import aftermath
from sessions.views.reviews.loss_advice import loss_advice
from sessions.views.reviews.removal import closed_by, summary_texts
from sessions.views.reviews.sections import sections
from sessions.views.web.places import entry_name, entry_url


def original(session: Session, revision: Revision, *, may_write: bool) -> dict[str, Any]:
    """The replaced blocks without texts, the summaries with texts, the ledger, and what to do about
    what was lost, for who `may_write` policies or not."""
    ledger = getattr(revision, "fact_ledger", None)
    listed = [_block(session, revision, entry) for entry in closed_by(revision)]
    after = after_effects(session, revision)
    before, _ = sizes_of(session, revision)
    facts = ledger.facts if ledger is not None else []
    advice = loss_advice(session, revision, facts, may_write=may_write)
    logged = sum(block["tokens"] for block in listed)
    taken = taken_out(counted_at(session, revision.run, revision.step - 1), before, logged)
    return {
        "blocks": listed,
        "taken_out": {"tokens": taken.tokens, "left_before": taken.left_before},
        **_judged(revision, after, ledger),
        "advice": asdict(advice) if advice else None,
        "unseen": unseen(session, revision, logged),
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
        "missed": _missed(session, revision, after),
    }


def _judged(revision: Revision, after: AfterEffects, ledger: FactLedger | None) -> dict[str, Any]:
    """The verdict of ledger and measures, and what the measures suggest for each rating."""
    if ledger is None:
        return {"verdict": asdict(verdict_on(revision, after)), "suggested": {}}
    said = verdict_on(
        revision, after, ledger.facts, ledger.looked_until, lacking=ledger.score is None
    )
    found = [Measure(**one) for one in ledger.quality]
    suggestions = suggested(found, fit(found, quality.facts_of(ledger.facts)))
    return {
        "verdict": asdict(quality.with_targets(said, ledger.quality, ledger.facts)),
        "suggested": {name: asdict(one) for name, one in suggestions.items()},
    }


def _missed(session: Session, revision: Revision, found: AfterEffects) -> dict[str, Any]:
    """After-effects, in the words of the verdict."""
    return {
        "first_step": found.first_step,
        "last_step": found.last_step,
        "all": len(found.signs),
        "said": ", ".join(signs_said(found.counts, found.files)),
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
