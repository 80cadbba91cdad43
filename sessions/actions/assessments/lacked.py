"""What the contexts that a model saw lacked: needed-later recall, and the cost of losses."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.context import edits
from compaction.facts.recall import recall
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
    if run is None or not _lacks(run):
        return nothing
    value = recorded_session(session, window=0)
    lived = _Lived(entries_of(session, run, value.blocks))
    found = recall(value, lived)
    counts = {name: round(getattr(found, name) * found.needs) for name in STATES}
    lost = cost_of_all(session, run, lived.entries)
    return {"needs": found.needs, **counts, "losses_microusd": lost.microusd}


def _lacks(run: Run) -> bool:
    """Whether a text may have left its contexts."""
    return run.origin == Run.Origin.MANAGED or run.entries.filter(to_step__isnull=False).exists()


@dataclass(frozen=True, slots=True)
class _Lived:
    """A run in the form that recall reads."""

    entries: tuple[edits.Entry, ...]
