"""Lost facts that were needed again: the one count of a session, which every page adds up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet, Sum

from compaction.context.edits import Entry
from compaction.facts.facts import FactIndex
from compaction.losses.needed import Dropped
from compaction.losses.repairs import Repair
from sessions.actions.reviews.fact_ledgers import stored_lines
from sessions.actions.reviews.losses import is_seen, removals, seen_run
from sessions.models import Assessment, Edit, FactLedger, Revision, Run, Session
from sessions.models.record.replaced import REAL, UNREADABLE, summarised

Lines = dict[str, list[dict[str, Any]]]
"""Lines of a ledger by the number of a revision."""

_SEEN = Q(revision__run__origin__in=REAL)


def dropped(
    session: Session,
    run: Run,
    entries: Sequence[Entry],
    repairs: Iterable[Repair],
    index: FactIndex,
) -> Lines:
    """The lost facts that were needed again, of removals that left no summary. What an encrypted
    summary lost is unknown; a compaction by the agent of a managed session has its ledger in the
    recorded run."""
    known = set(summarised(session).filter(run=run).values_list("number", flat=True))
    known |= set(_unreadable(run).values_list("number", flat=True))
    others = summarised(session).exclude(run=run)
    elsewhere = set(others.values_list("step", flat=True))
    found = Dropped(entries, repairs, index.facts_of)
    lines = {
        str(number): stored_lines(found.facts(number, step))
        for number, step in removals(run).items()
        if number not in known and step not in elsewhere
    }
    return {number: facts for number, facts in lines.items() if facts}


def count_lost(session: Session, run: Run, lines: Mapping[str, Sequence[Any]]) -> int | None:
    """How many lost facts of a session were needed again, `lines` of them without a summary; None
    if nothing tells, as after encrypted summaries only. `run` is the one that the model saw."""
    ledgers = FactLedger.objects.filter(_SEEN, revision__run__session=session)
    missed: int | None = ledgers.aggregate(missed=Sum("missed"))["missed"]
    if missed is None and not lines and _is_unknown(session, run):
        return None
    return (missed or 0) + sum(map(len, lines.values()))


def _is_unknown(session: Session, run: Run) -> bool:
    """Whether only a provider can read what became of all that was removed."""
    hidden = _unreadable(run)
    others = run.revisions.exclude(trigger="rewind").exclude(pk__in=hidden)
    return hidden.exists() and not others.exclude(pk__in=summarised(session)).exists()


def _unreadable(run: Run) -> QuerySet[Revision]:
    made = Edit.objects.filter(UNREADABLE, revision__run=run)
    return run.revisions.filter(pk__in=made.values("revision"))


def dropped_by(session: Session, revision: Revision) -> list[dict[str, Any]]:
    """The lost facts that were needed again, of a removal without a summary; none of a run that no
    model saw."""
    row = Assessment.objects.filter(session=session).only("dropped").first()
    if row is None or not is_seen(session, revision.run):
        return []
    found: list[dict[str, Any]] = row.dropped.get(str(revision.number), [])
    return found


@dataclass(frozen=True, slots=True)
class LostBy:
    """A removal, and how many of the facts that it lost were needed again."""

    revision: Revision
    facts: int


def lost_by_removal(session: Session) -> list[LostBy]:
    """The removals of a session after which a lost fact was needed, in order: its count by them."""
    run = seen_run(session)
    row = Assessment.objects.filter(session=session).only("dropped").first()
    if run is None or row is None:
        return []
    ledgers = FactLedger.objects.filter(_SEEN, revision__run__session=session, missed__gt=0)
    found = [LostBy(one.revision, one.missed) for one in ledgers.select_related("revision__run")]
    rows = run.revisions.filter(number__in=map(int, row.dropped)).select_related("run")
    found += [LostBy(one, len(row.dropped[str(one.number)])) for one in rows]
    return sorted(found, key=lambda one: (one.revision.step, one.revision.number))


def keep_lost(session: Session) -> None:
    """Count again after a look at a ledger, if the session is assessed."""
    row = Assessment.objects.filter(session=session).first()
    run = seen_run(session)
    if row is None or run is None or row.needs is None:
        return
    lost = count_lost(session, run, row.dropped)
    if lost != row.lost_facts:
        row.lost_facts = lost
        row.save(update_fields=["lost_facts", "changed"])
