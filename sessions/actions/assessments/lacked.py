"""What the contexts that a model saw lacked: needed-later recall, lost facts and their cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from compaction.context import edits
from compaction.context.session import Session as Recording
from compaction.facts.facts import FactIndex
from compaction.facts.recall import Recall, recall
from compaction.losses.repairs import repairs
from sessions.actions.assessments.lost_facts import count_lost, dropped
from sessions.actions.reviews.losses import cost_of, removals, seen_run
from sessions.models import Run, Session
from sessions.models.record.replaced import entries_of
from sessions.models.record.values import recorded_session

NAMED = 3
"""Most missing facts that are kept by name (our choice)."""

STATES = ("in_context", "named", "retrievable", "lost")


def lacked(session: Session) -> dict[str, Any]:
    """Fields of an assessment: needed-later recall, in needs, the worst facts that were missing,
    lost facts that were needed again, and micro-dollars of losses.

    Of the managed contexts if the model saw any, else of the recorded ones if a text left them:
    all others lacked nothing, and counting their facts would mean reading every text. Null if
    unknown.
    """
    nothing = dict.fromkeys(("needs", *STATES, "missing", "losses_microusd", "lost_facts"))
    run = seen_run(session)
    if run is None or not may_lack(run):
        return {**nothing, "dropped": {}}
    value, lived = _read(session, run)
    index = FactIndex(value.blocks)
    found = recall(value, lived, index)
    repaired = repairs(lived.entries, removals(run))
    lines = dropped(session, run, lived.entries, repaired, index)
    return {
        "needs": found.needs,
        **{name: round(getattr(found, name) * found.needs) for name in STATES},
        "missing": missing(found),
        "lost_facts": count_lost(session, run, lines),
        "dropped": lines,
        "losses_microusd": cost_of(session, repaired).microusd,
    }


def missing(found: Recall) -> list[dict[str, Any]]:
    """The worst facts that calls used and their contexts lacked, at most `NAMED`: lost ones first,
    then those used most often; each with its first such step and its state there."""
    uses = Counter(need.fact for need in found.worst)
    first = {need.fact: need for need in reversed(found.worst)}
    worst = sorted(
        first.values(), key=lambda one: (-STATES.index(one.state), -uses[one.fact], one.step)
    )
    return [
        {"fact": one.fact, "step": one.step, "state": one.state, "uses": uses[one.fact]}
        for one in worst[:NAMED]
    ]


def recall_under(session: Session, run: Run) -> Recall:
    """Needed-later recall of the contexts of a run that is stored step by step.

    Reads every text of the session. Raises MissingBlob, DamagedBlob.
    """
    return recall(*_read(session, run))


def _read(session: Session, run: Run) -> tuple[Recording, _Lived]:
    value = recorded_session(session, window=0)
    return value, _Lived(entries_of(session, run, value.blocks))


def may_lack(run: Run) -> bool:
    """Whether a text may have left its contexts."""
    return run.origin == Run.Origin.MANAGED or run.entries.filter(to_step__isnull=False).exists()


@dataclass(frozen=True, slots=True)
class _Lived:
    """A run in the form that recall reads."""

    entries: tuple[edits.Entry, ...]
