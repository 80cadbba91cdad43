"""Fact ledgers of compactions: computed from rows and stored, with later effects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from compaction import tokens
from compaction.losses.ledger import ENGINE, CompactedContext, Fact, Ledger, ledger_of
from compaction.losses.needed import needed_again
from compaction.losses.quality import Compacted, Measure, measures
from compaction.losses.repairs import WINDOW
from compaction.summaries.model.asked import AskedSection, parts_of
from sessions.actions.reviews.after_effects import AfterEffects, after_effects
from sessions.actions.reviews.compaction_verdicts import is_missed
from sessions.actions.reviews.ranks import rank_by
from sessions.actions.reviews.sizes import sizes_of
from sessions.models import Edit, FactLedger, ReviewItem, Revision, Session
from sessions.models.erasure.kept import while_kept
from sessions.models.record.replaced import (
    REAL,
    SUMMARISING,
    replaced,
    summarised,
    unseen,
)
from sessions.models.record.sessions import SOURCE_LIVE
from sessions.models.record.values import blocks_at, summary_messages
from sessions.models.web.statements import Statement, given_int, given_uuid

LOOKS = (10, WINDOW)
"""Steps after a compaction at which its ledger is made and remade; once more when the session is
over."""


@dataclass(frozen=True, slots=True)
class LedgerAssessment:
    """The assessment of a compaction, up to step `looked_until`.

    `score` is the ledger's; None if the log lacks most of the replaced messages, because support
    cannot be judged then.
    """

    ledger: Ledger
    score: int | None
    parts: list[AskedSection]
    after: AfterEffects
    looked_until: int
    quality: list[Measure]

    @property
    def facts(self) -> list[dict[str, Any]]:
        """Ledger lines as stored, with blocks given by entry name."""
        return stored_lines(self.ledger.facts)


def judge(session: Session, revision: Revision) -> LedgerAssessment | None:
    """Assess what a revision replaced; None if it contains no summary.

    Reads the texts of the span, of the rest of the context, and of later calls. Writes nothing.
    """
    found = replaced(session, revision)
    if found is None:
        return None
    until = min(session.step_count, revision.step + WINDOW - 1)
    after = after_effects(session, revision)
    ledger = ledger_of(
        found.span,
        found.summary,
        CompactedContext(found.standing, found.refs),
        sources=found.sources,
        needed=_needed(session, revision, after),
    )
    lacking = unseen(session, revision, sum(block.tokens for block in found.span))
    parts = parts_of(found.span, found.summary, found.standing)
    size, left = sizes_of(session, revision)
    made = Compacted(
        found.span,
        found.sources,
        found.standing,
        found.summary,
        session.scaled(tokens.count(found.summary)),
        size.tokens if size else None,
        left.tokens if left else None,
        session.window or None,
    )
    return LedgerAssessment(
        ledger,
        ledger.score if lacking is None else None,
        parts,
        after,
        until,
        measures(made, ledger, parts),
    )


def _needed(session: Session, revision: Revision, after: AfterEffects) -> dict[str, int]:
    """The facts that were needed again after a compaction while no context showed them."""
    came = session.blocks.filter(born__gt=revision.step, born__lte=revision.step + WINDOW).exclude(
        message__seq__in=summary_messages(session)
    )
    later = blocks_at(session, came.values_list("position", flat=True))
    shown = {sign.block.position for sign in after.signs}
    calls = {sign.block.tool_call for sign in after.signs} - {""}
    shown |= {one.position for one in later if one.tool_call in calls and one.type != "tool_use"}
    others = summarised(session).filter(run=revision.run, number__gt=revision.number)
    until = others.values_list("step", flat=True).first()
    return needed_again(later, shown, until)


def keep_ledger(session: Session, revision: Revision) -> FactLedger | None:
    """Compute a compaction's ledger and store it, replacing an older one. Raises SessionErased."""
    judged = judge(session, revision)
    if judged is None:
        return None
    ledger = judged.ledger
    with while_kept(session.pk):
        row, _ = FactLedger.objects.update_or_create(
            revision=revision,
            defaults={
                "kept": ledger.kept,
                "retrievable": ledger.retrievable,
                "lost": ledger.lost,
                "missed": sum(map(is_missed, judged.facts)),
                "unsupported": ledger.unsupported,
                "score": judged.score,
                "facts": judged.facts,
                "sections": [asdict(part) for part in judged.parts],
                "quality": [asdict(one) for one in judged.quality],
                "after": judged.after.stored(),
                "after_effects": len(judged.after.signs),
                "looked_until": judged.looked_until,
                "engine": ENGINE,
            },
        )
        ReviewItem.objects.filter(revision=revision).update(rank=rank_by(row))
    return row


def stored_lines(facts: Iterable[Fact]) -> list[dict[str, Any]]:
    """Lines of a ledger as stored, with blocks given by entry name."""
    return [_stored(fact) for fact in facts]


def _stored(fact: Fact) -> dict[str, Any]:
    return {
        "key": fact.key,
        "fact": _clean(fact.fact),
        "kind": fact.kind,
        "state": fact.state,
        "weight": fact.weight,
        "block": _entry_of(fact.block),
        "needed": fact.needed,
    }


def _clean(text: str) -> str:
    """Replace characters that PostgreSQL rejects: NUL and lone surrogates."""
    return text.replace("\x00", "␀").encode("utf-8", "replace").decode("utf-8")


def _entry_of(block: str | None) -> str | None:
    """The entry name of an original block's id; None for blocks made by an edit."""
    if block is None or not (block[:1] == "m" and block[1:2].isdecimal()):
        return None
    return block[1:].removesuffix(".0")


def is_over(session: Session) -> bool:
    """Whether no more steps are expected: imported, or its agent reported an outcome."""
    return session.source != SOURCE_LIVE or bool(session.outcome)


def due(session: Session, *, newest: bool = False) -> Iterator[Revision]:
    """Compactions whose ledger is missing, outdated, or due for another look.

    With `newest`, only those that the last steps can have made due.
    """
    since = 0
    if newest and not is_over(session):
        since = max(session.step_count - 2 * WINDOW, 0)
        if not _LATELY.first(session=session.pk, step=since):
            return
    rows = summarised(session).filter(step__gte=since)
    for revision in rows.select_related("fact_ledger", "run"):
        ledger = getattr(revision, "fact_ledger", None)
        if ledger is None or ledger.engine < ENGINE or _look_is_due(session, revision, ledger):
            yield revision


_LATELY = Statement(
    lambda: Edit.objects.filter(
        SUMMARISING,
        revision__run__session_id=given_uuid("session"),
        revision__run__origin__in=REAL,
        revision__step__gte=given_int("step"),
    ).values_list("pk")[:1]
)


def _look_is_due(session: Session, revision: Revision, ledger: FactLedger) -> bool:
    until = min(session.step_count, revision.step + WINDOW - 1)
    if is_over(session):
        return ledger.looked_until < until
    return any(ledger.looked_until < revision.step + look - 1 <= until for look in LOOKS)
