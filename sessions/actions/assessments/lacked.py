"""What the contexts that a model saw lacked: needed-later recall, and files read again."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.context import edits
from compaction.context.session import Session as SessionValue
from compaction.facts.recall import recall
from compaction.losses.rereads import read_again
from compaction.prices import prices
from sessions.models import ManagedContext, Run, Session
from sessions.models.record.replaced import entries_of
from sessions.models.record.values import recorded_session

STATES = ("in_context", "named", "retrievable", "lost")


def lacked(session: Session) -> dict[str, int | None]:
    """Fields of an assessment: needed-later recall, in needs, and micro-dollars of files read
    again.

    Of the managed contexts if the model saw any, else of the recorded ones if a text left them:
    all others lacked nothing, and counting their facts would mean reading every text. Null if
    unknown.
    """
    nothing: dict[str, int | None] = dict.fromkeys(("needs", *STATES, "reread_microusd"))
    run = _seen(session)
    if run is None:
        return nothing
    value = recorded_session(session, window=0)
    lived = _Lived(entries_of(session, run, value.blocks))
    found = recall(value, lived)
    counts = {name: round(getattr(found, name) * found.needs) for name in STATES}
    return {"needs": found.needs, **counts, "reread_microusd": _reread_cost(value, lived)}


def _seen(session: Session) -> Run | None:
    """The run whose contexts the model saw, if one of its texts may have left."""
    runs = {run.origin: run for run in Run.objects.filter(session=session)}
    managed = runs.get(Run.Origin.MANAGED)
    if managed is not None and ManagedContext.objects.filter(run=managed).exists():
        return managed
    recorded = runs.get(Run.Origin.RECORDED)
    if recorded is not None and recorded.entries.filter(to_step__isnull=False).exists():
        return recorded
    return None


def _reread_cost(value: SessionValue, lived: _Lived) -> int | None:
    """What writing the texts again cost; None if a call that read one again has no price."""
    calls = {call.step: call for call in value.calls}
    total = 0
    for step, tokens in read_again(lived.entries):
        call = calls.get(step)
        price = prices.price(call.model, call.at) if call is not None else None
        if price is None:
            return None
        prompt = call.usage.prompt if call is not None and call.usage is not None else 0
        total += tokens * price.at(prompt).cache_write_5m
    return prices.micros(total)


@dataclass(frozen=True, slots=True)
class _Lived:
    """A run in the form that recall reads."""

    entries: tuple[edits.Entry, ...]
