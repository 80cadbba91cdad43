"""The verdict on a session: its cost, the part that could be avoided, and what was lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from django.urls import reverse

from compaction.policies.trigger_words import VENDORS
from sessions.actions.assessments.assessments import ENGINE
from sessions.actions.reviews.fact_ledgers import is_over
from sessions.actions.web.verdicts import EventVerdict, Tone, counted
from sessions.figures import money, percent
from sessions.models import Assessment, FactLedger, Run, Session
from sessions.models.web.statements import Statement, given_uuid

MUCH = 0.05
"""Avoidable share of the cost from which a session is no success (our choice)."""

FIELDS = ("avoidable_microusd", "needs", "lost", "losses_microusd")


@dataclass(frozen=True, slots=True)
class SessionVerdict(EventVerdict):
    """`proofs` are words of the sentence, in order, and the address that shows where they come
    from; None for the avoidable break that cost most, which the replay finds."""

    proofs: tuple[tuple[str, str | None], ...] = ()


def session_verdict(
    cost: int | None,
    broken: int | None,
    needs: int | None,
    lost: int | None,
    losses: int | None,
    *,
    by: str,
    at_least: bool = False,
) -> SessionVerdict:
    """Say what a session cost, how much of it for nothing, and what it lost and needed.

    `broken` is the cost of avoidable cache breaks, `losses` that of calls made because text had
    left the context, as on the dashboard. Micro-dollars, None if unknown; `at_least` if the log
    lacks a part of the cost. `needs` and the `lost` of them are counts, None if no text left the
    context; `by` names what removed texts.
    """
    paid = _avoidable(broken, losses)
    return SessionVerdict(
        _tone(cost, paid, lost),
        f"{_spent(cost, paid, at_least=at_least)} {_lost(needs, lost, by)}",
        _parts(broken, losses),
    )


def _avoidable(broken: int | None, losses: int | None) -> int | None:
    return None if broken is None and losses is None else (broken or 0) + (losses or 0)


def _tone(cost: int | None, avoidable: int | None, lost: int | None) -> Tone:
    if lost or (cost and avoidable and avoidable >= MUCH * cost):
        return "bad"
    return "neutral" if cost is None or avoidable is None else "good"


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
    parts.append(f"losses ≈{money(losses)} (calls made because text had left the context)")
    return f"Avoidable: {', '.join(parts)}."


def _lost(needs: int | None, lost: int | None, by: str) -> str:
    if needs is None or lost is None:
        return "Nothing is known to have left the context."
    if not lost:
        return "No fact was lost when it was used again."
    return f"{by[0].upper()}{by[1:]} had lost a fact {_times(needs, lost)}."


def _times(needs: int, lost: int) -> str:
    """Uses, not facts, as on the dashboard: one fact may be used often."""
    return f"{lost:,} of {counted(needs, 'time')} that one was used again"


def verdict_on_session(session: Session, *, managed: bool) -> SessionVerdict | None:
    """The verdict on a stored session, from one indexed row, and one more if it lost facts; None
    while it goes on, and before it is assessed. `managed`: its context was ours."""
    row: Sequence[int | None] | None = (
        _ASSESSED.first(session=session.pk) if session.step_count and is_over(session) else None
    )
    if row is None:
        return None
    own = "compaction" if session.compaction_count else "edits"
    by = "its policy" if managed else f"{VENDORS.get(session.agent, 'the client')}'s {own}"
    found = session_verdict(session.cost_microusd, *row, by=by, at_least=session.cost_at_least)
    return replace(found, proofs=tuple(_proofs(session, *row)))


def _proofs(
    session: Session, broken: int | None, needs: int | None, lost: int | None, losses: int | None
) -> Iterator[tuple[str, str | None]]:
    if session.cost_microusd is not None and broken:
        yield f"≈{money(_avoidable(broken, losses))}", None
    if needs and lost and (address := _lost_at(session)):
        yield _times(needs, lost), address


def _lost_at(session: Session) -> str:
    """The address of the compaction after which most was missed; empty if none is known."""
    found = _WORST.first(session=session.pk)
    return reverse("revision", args=[session.pk, *found]) if found else ""


_ASSESSED = Statement(
    lambda: Assessment.objects.filter(
        session_id=given_uuid("session"), engine__gte=ENGINE
    ).values_list(*FIELDS)
)
_WORST = Statement(
    lambda: (
        FactLedger.objects.filter(revision__run__session_id=given_uuid("session"), lost__gt=0)
        .exclude(revision__run__origin=Run.Origin.SIMULATED)
        .order_by("-after_effects", "-lost", "revision__number")
        .values_list("revision__run__origin", "revision__number")[:1]
    )
)
