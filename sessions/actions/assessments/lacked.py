"""What the contexts that a model saw lacked: needed-later recall, and the cost of losses."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.context import edits
from compaction.facts.recall import Recall, recall
from sessions.actions.reviews.losses import cost_of_all, seen_run
from sessions.models import Run, Session
from sessions.models.record.replaced import entries_of
from sessions.models.record.values import recorded_session

STATES = ("in_context", "named", "retrievable", "lost")


def lacked(session: Session) -> dict[str, int | None]:
    """Fields of an assessment: needed-later recall, in needs, and micro-dollars of losses.

    Of the managed contexts if the model saw any, else of the recorded ones if a text left them:
    all others lacked nothing, and counting their facts would mean reading every text. Null if
    unknown.
    """
    nothing: dict[str, int | None] = dict.fromkeys(("needs", *STATES, "losses_microusd"))
    run = seen_run(session)
    if run is None or not may_lack(run):
        return nothing
    found, entries = _recall_under(session, run)
    counts = {name: round(getattr(found, name) * found.needs) for name in STATES}
    lost = cost_of_all(session, run, entries)
    return {"needs": found.needs, **counts, "losses_microusd": lost.microusd}


def recall_under(session: Session, run: Run) -> Recall:
    """Needed-later recall of the contexts of a run that is stored step by step.

    Reads every text of the session. Raises MissingBlob, DamagedBlob.
    """
    return _recall_under(session, run)[0]


def _recall_under(session: Session, run: Run) -> tuple[Recall, tuple[edits.Entry, ...]]:
    value = recorded_session(session, window=0)
    lived = _Lived(entries_of(session, run, value.blocks))
    return recall(value, lived), lived.entries


def may_lack(run: Run) -> bool:
    """Whether a text may have left its contexts."""
    return run.origin == Run.Origin.MANAGED or run.entries.filter(to_step__isnull=False).exists()


@dataclass(frozen=True, slots=True)
class _Lived:
    """A run in the form that recall reads."""

    entries: tuple[edits.Entry, ...]
