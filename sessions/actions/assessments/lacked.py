"""What the contexts that a model saw lacked: needed-later recall, lost facts and their cost."""

from __future__ import annotations

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

STATES = ("in_context", "named", "retrievable", "lost")


def lacked(session: Session) -> dict[str, Any]:
    """Fields of an assessment: needed-later recall, in needs, lost facts that were needed again,
    and micro-dollars of losses.

    Of the managed contexts if the model saw any, else of the recorded ones if a text left them:
    all others lacked nothing, and counting their facts would mean reading every text. Null if
    unknown.
    """
    nothing = dict.fromkeys(("needs", *STATES, "losses_microusd", "lost_facts"))
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
        "lost_facts": count_lost(session, run, lines),
        "dropped": lines,
        "losses_microusd": cost_of(session, repaired).microusd,
    }


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
