"""Fact ledgers of compactions: made from the rows, kept with what came of each compaction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from compaction import tokens
from compaction.facts.ledger import ENGINE, Fact, Ledger, Standing, ledger_of
from compaction.facts.weighty import named_later
from compaction.summaries.asked import Part, parts_of
from compaction.summaries.quality import Compacted, Measure, measures
from sessions.actions.after_effects import STEPS, AfterEffects, after_effects
from sessions.models import FactLedger, Revision, Session
from sessions.models.replaced import Replaced, replaced, summarised, unseen
from sessions.models.sessions import SOURCE_LIVE
from sessions.models.values import blocks_at

NAMED_WITHIN = 50
"""Steps after a compaction whose calls are looked at for facts that they name."""

LOOKS = (STEPS, NAMED_WITHIN)
"""So many steps after a compaction its ledger is made (anew), and once more when all is over."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A compaction as it is known by now, looked at up to step `looked_until`.

    `score` is the ledger's, None where the log lacks most of what was replaced: nobody can tell
    then what is supported.
    """

    ledger: Ledger
    score: int | None
    parts: list[Part]
    after: AfterEffects
    looked_until: int
    quality: list[Measure]

    @property
    def facts(self) -> list[dict[str, Any]]:
        """Lines of the ledger as they are stored: blocks by the names of their entries."""
        return [_stored(fact) for fact in self.ledger.facts]


def judge(session: Session, revision: Revision) -> Judged | None:
    """What became of what a revision replaced; None where it put no summary in.

    Reads the texts of the span, of what stood after it, and of the calls that came next. Writes
    nothing.
    """
    found = replaced(session, revision)
    if found is None:
        return None
    until = min(session.step_count, revision.step + NAMED_WITHIN - 1)
    calls = session.blocks.filter(
        type="tool_use", born__gt=revision.step, born__lte=revision.step + NAMED_WITHIN
    )
    later = blocks_at(session, calls.values_list("position", flat=True))
    ledger = ledger_of(
        found.span,
        found.summary,
        Standing(found.standing, found.refs),
        sources=found.sources,
        needed=named_later(later),
    )
    lacking = unseen(session, revision, sum(block.tokens for block in found.span))
    parts = parts_of(found.span, found.summary, found.standing)
    before, after = _sizes(session, revision, found) if lacking is None else (None, None)
    made = Compacted(
        found.span,
        found.sources,
        found.standing,
        found.summary,
        session.scaled(tokens.count(found.summary)),
        before,
        after,
        session.window or None,
    )
    return Judged(
        ledger,
        ledger.score if lacking is None else None,
        parts,
        after_effects(session, revision),
        until,
        measures(made, ledger, parts),
    )


def _sizes(session: Session, revision: Revision, found: Replaced) -> tuple[int, int]:
    """Tokens before and after a compaction: as they were noted with it, else by our count of what
    stood. Logs that state them leave the hidden prompt out of what comes after."""
    before, after = revision.tokens_before, revision.tokens_after
    if before is not None and after is not None:
        return before, after + (session.hidden_tokens if revision.tokens_stated else 0)
    beside = session.hidden_tokens + sum(block.tokens for block in found.standing)
    made = session.scaled(tokens.count(found.summary))
    return beside + sum(block.tokens for block in found.span), beside + made


def keep_ledger(session: Session, revision: Revision) -> FactLedger | None:
    """Make a compaction's ledger and keep it, in place of an older one."""
    judged = judge(session, revision)
    if judged is None:
        return None
    ledger = judged.ledger
    row, _ = FactLedger.objects.update_or_create(
        revision=revision,
        defaults={
            "kept": ledger.kept,
            "retrievable": ledger.retrievable,
            "lost": ledger.lost,
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
    return row


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
    """PostgreSQL takes neither NUL nor lone surrogates."""
    return text.replace("\x00", "␀").encode("utf-8", "replace").decode("utf-8")


def _entry_of(block: str | None) -> str | None:
    """The name of an entry by the id of its original; None for what only an edit had made."""
    if block is None or not (block[:1] == "m" and block[1:2].isdecimal()):
        return None
    return block[1:].removesuffix(".0")


def is_over(session: Session) -> bool:
    """Whether no more steps are expected: it was imported, or its agent said how it ended."""
    return session.source != SOURCE_LIVE or bool(session.outcome)


def due(session: Session, *, newest: bool = False) -> Iterator[Revision]:
    """Compactions whose ledger is missing, made by older rules, or whose next look has come.

    With `newest` only those are asked for that the last steps can have made due.
    """
    rows = summarised(session).select_related("fact_ledger", "run")
    if newest and not is_over(session):
        rows = rows.filter(step__gte=session.step_count - 2 * NAMED_WITHIN)
    for revision in rows:
        ledger = getattr(revision, "fact_ledger", None)
        if ledger is None or ledger.engine < ENGINE or _look_is_due(session, revision, ledger):
            yield revision


def _look_is_due(session: Session, revision: Revision, ledger: FactLedger) -> bool:
    until = min(session.step_count, revision.step + NAMED_WITHIN - 1)
    if is_over(session):
        return ledger.looked_until < until
    return any(ledger.looked_until < revision.step + look - 1 <= until for look in LOOKS)
