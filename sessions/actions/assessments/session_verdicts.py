"""The verdict on a session: its cost, the part that could be avoided, and what was lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from django.urls import reverse

from compaction.policies.trigger_words import VENDORS
from sessions.actions.assessments.assessments import ENGINE
from sessions.actions.reviews.fact_ledgers import is_over
from sessions.actions.web.verdicts import UNREPAIRED, EventVerdict, Tone, counted
from sessions.figures import money, percent
from sessions.models import Assessment, FactLedger, Run, Session
from sessions.models.web.statements import Statement, given_uuid

MUCH = 0.05
"""Avoidable share of the cost from which a session is no success (our choice)."""

FIELDS = ("avoidable_microusd", "needs", "lost_facts", "losses_microusd", "dropped")


@dataclass(frozen=True, slots=True)
class SessionVerdict(EventVerdict):
    """`proofs` are words of the sentence, in order, and the address that shows where they come
    from; None for the avoidable break that cost most, which the replay finds. `lost_facts` were
    needed again; None if unknown, or if nothing left the context."""

    proofs: tuple[tuple[str, str | None], ...] = ()
    lost_facts: int | None = None


@dataclass(frozen=True, slots=True)
class Missed:
    """How many lost facts were needed again; None if unknown. `tested`: a step followed; `worst`:
    the address of the removal after which most was missed."""

    count: int | None
    tested: bool = True
    worst: str = ""


def session_verdict(
    cost: int | None,
    broken: int | None,
    missed: Missed | None,
    losses: int | None,
    *,
    by: str,
    at_least: bool = False,
) -> SessionVerdict:
    """Say what a session cost, how much of it for nothing, and what it lost and needed.

    `broken` is the cost of avoidable cache breaks, `losses` that of calls made because text had
    left the context, as on the dashboard. Micro-dollars, None if unknown; `at_least` if the log
    lacks a part of the cost. `missed` is None if no text left the context; `by` names what removed
    texts.
    """
    paid = _avoidable(broken, losses)
    return SessionVerdict(
        _tone(cost, paid, missed, losses),
        f"{_spent(cost, paid, at_least=at_least)} {_lost(missed, by, losses)}",
        _parts(broken, losses),
    )


def _avoidable(broken: int | None, losses: int | None) -> int | None:
    return None if broken is None and losses is None else (broken or 0) + (losses or 0)


def _tone(
    cost: int | None, avoidable: int | None, missed: Missed | None, losses: int | None
) -> Tone:
    harmed = missed and missed.count and losses != 0
    if harmed or (cost and avoidable and avoidable >= MUCH * cost):
        return "bad"
    if missed and missed.count:
        return "neutral"
    unknown = cost is None or avoidable is None or not _is_judged(missed)
    return "neutral" if unknown else "good"


def _is_judged(missed: Missed | None) -> bool:
    return missed is None or (missed.tested and missed.count is not None)


def _spent(cost: int | None, avoidable: int | None, *, at_least: bool) -> str:
    if cost is None:
        return "Cost unknown."
    said = f"Cost {'at least ' if at_least else ''}{money(cost)}"
    if avoidable is None:
        return f"{said}."
    if not avoidable:
        return f"{said}, nothing avoidable."
    share = f" ({percent(avoidable / cost)})" if cost else ""
    return f"{said}, ≈{money(avoidable)}{share} avoidable."


def _parts(broken: int | None, losses: int | None) -> str:
    """What the avoidable cost is made of, if a part of it is of losses."""
    if not losses:
        return ""
    parts = [f"cache breaks {money(broken)}"] if broken else []
    parts.append(
        f"losses ≈{money(losses)} (calls made because text had left the context, "
        "and what came again)"
    )
    return f"Avoidable: {', '.join(parts)}."


def _lost(missed: Missed | None, by: str, losses: int | None) -> str:
    if missed is None:
        return "Nothing is known to have left the context."
    if missed.count is None:
        return f"What {by} lost is unknown: its summary is encrypted."
    if missed.count:
        free = losses == 0
        return f"{lost_and_needed(missed.count, free=free)} after {by}{UNREPAIRED if free else ''}."
    if not missed.tested:
        return "No step followed its last compaction, so nothing that it lost can have been missed."
    if losses:
        return f"No single fact that {by} lost was needed again, but calls brought back its text."
    return f"No fact that {by} lost was needed again."


def lost_and_needed(count: int, *, free: bool = False) -> str:
    """The count of lost facts as every page words it; `free` if they were used again and no call
    was made for them."""
    was = "was" if count == 1 else "were"
    return f"{counted(count, 'lost fact')} {was} {'used' if free else 'needed'} again"


def verdict_on_session(session: Session, *, managed: bool) -> SessionVerdict | None:
    """The verdict on a stored session, from an indexed row and its ledgers; None while it goes on,
    and before it is assessed. `managed`: its context was ours."""
    row: Sequence[Any] | None = (
        _ASSESSED.first(session=session.pk) if session.step_count and is_over(session) else None
    )
    if row is None:
        return None
    own = "compaction" if session.compaction_count else "edits"
    broken, needs, lost, losses, dropped = row
    known, by_agent = _missed(session, lost, dropped, managed=managed)
    missed = None if needs is None else known
    ours = managed and not by_agent
    by = "its policy" if ours else f"{VENDORS.get(session.agent, 'the client')}'s {own}"
    found = session_verdict(
        session.cost_microusd, broken, missed, losses, by=by, at_least=session.cost_is_bound
    )
    proofs: list[tuple[str, str | None]] = []
    if session.cost_microusd is not None and broken:
        proofs.append((f"≈{money(_avoidable(broken, losses))}", None))
    if missed is not None and missed.count and missed.worst:
        proofs.append((lost_and_needed(missed.count, free=losses == 0), missed.worst))
    return replace(found, proofs=tuple(proofs), lost_facts=lost)


def _missed(
    session: Session, lost: int | None, dropped: Mapping[str, Sequence[Any]], *, managed: bool
) -> tuple[Missed, bool]:
    """The stored count of a session, with the removal that lost most; and whether the agent made
    all compactions that have a ledger."""
    rows = _LEDGERS.rows(session=session.pk)
    most = [(missed, origin, number) for origin, number, _, missed, _ in rows[:1]]
    origin = Run.Origin.MANAGED if managed else Run.Origin.RECORDED
    most += [(len(facts), origin, int(number)) for number, facts in dropped.items()]
    worst = max(most, key=itemgetter(0), default=None)
    missed = Missed(
        lost,
        tested=not rows or any(until > step for _, _, step, _, until in rows),
        worst=reverse("revision", args=[session.pk, *worst[1:]]) if worst else "",
    )
    return missed, bool(rows) and all(row[0] == Run.Origin.RECORDED for row in rows)


_ASSESSED = Statement(
    lambda: Assessment.objects.filter(
        session_id=given_uuid("session"), engine__gte=ENGINE
    ).values_list(*FIELDS)
)
_LEDGERS = Statement(
    lambda: (
        FactLedger.objects.filter(revision__run__session_id=given_uuid("session"))
        .exclude(revision__run__origin=Run.Origin.SIMULATED)
        .order_by("-missed", "-after_effects", "revision__number")
        .values_list(
            "revision__run__origin",
            "revision__number",
            "revision__step",
            "missed",
            "looked_until",
        )
    )
)
