"""Assessments: a session's cost by category, failures, and needed-later recall."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from django.utils import timezone

from compaction.context import wire
from compaction.context.blocks import Block
from compaction.context.groups import Groups
from compaction.context.session import Call
from compaction.prices import prices
from compaction.prices.billed import requests_of
from sessions.actions.assessments.break_totals import hour_saved, keep_breaks
from sessions.actions.assessments.lacked import lacked
from sessions.actions.assessments.outcomes import outcomes
from sessions.actions.reviews.fact_ledgers import is_over
from sessions.models import Assessment, Session
from sessions.models.erasure.kept import while_kept
from sessions.models.record.model_calls import calls_of
from sessions.models.record.tail import Card, cards_of, judged
from sessions.models.record.values import blocks_of, contents
from sessions.models.web.statements import Statement, given_uuid

ENGINE = 15
"""Increment when a rule of assessments changes."""

SOONEST = 50
"""Minimum steps before a live session is reassessed; it must also have doubled, so that the total
work is about twice that of assessing it once."""

REST = timedelta(minutes=5)
"""Time without anything new after which a live session is assessed as it stands (ours)."""


def assessment_due(session: Session) -> bool:
    """Whether a session has changed enough since its assessment."""
    steps, engine = _ASSESSED.first(session=session.pk) or (0, 0)
    if engine < ENGINE:
        return True
    grown = session.step_count - steps
    if is_over(session) or session.changed < timezone.now() - REST:
        return bool(grown)
    return grown >= max(SOONEST, steps)


_ASSESSED = Statement(
    lambda: Assessment.objects.filter(session_id=given_uuid("session")).values_list(
        "steps", "engine"
    )
)


def outdate(session: Session) -> None:
    """Mark the assessment outdated after changes without a new step, such as a log that says more
    about a call."""
    Assessment.objects.filter(session=session).update(engine=0)


def keep_assessment(session: Session) -> Assessment:
    """Assess a session as stored now, replacing an older assessment. Raises SessionErased."""
    steps = session.step_count
    fields = _spend(session) | _failures(session) | lacked(session) | outcomes(session)
    with while_kept(session.pk):
        row, _ = Assessment.objects.update_or_create(
            session=session, defaults={**fields, "steps": steps, "engine": ENGINE}
        )
    return row


# Cost


@dataclass(slots=True)
class _Spend:
    """Nano-dollars of reported usage, by category."""

    uncached: int = 0
    write: int = 0
    read: int = 0
    output: int = 0

    def add(self, call: Call) -> bool:
        """Add a call. Returns False if its model has no price."""
        for model, usage in requests_of(call):
            price = prices.price(model, call.at)
            if price is None:
                return False
            rates = price.at(usage.prompt)
            self.uncached += usage.uncached * rates.input
            self.write += usage.cache_write_5m * rates.cache_write_5m
            self.write += usage.cache_write_1h * rates.cache_write_1h
            self.read += usage.cache_read * rates.cache_read
            self.output += usage.output * rates.output
        return True


def _spend(session: Session) -> dict[str, int | None]:
    """Cost by category; null without reported usage, or if a call has no price."""
    names = ("uncached", "write", "read", "output", "avoidable", "unexplained", "hour_saved")
    nothing: dict[str, int | None] = {f"{name}_microusd": None for name in names}
    spend = _Spend()
    calls = calls_of(session)
    found = cards_of(session)
    priced = [spend.add(call) for call in calls]
    known = all(priced) and any(call.usage for call in calls)
    saved = hour_saved(calls, found) if known else None
    cards = judged(found, saved)
    keep_breaks(session, cards, priced=known)
    if not known:
        return nothing
    return {
        "uncached_microusd": prices.micros(spend.uncached),
        "write_microusd": prices.micros(spend.write),
        "read_microusd": prices.micros(spend.read),
        "output_microusd": prices.micros(spend.output),
        **_paid_again(cards),
        "hour_saved_microusd": saved,
    }


def _paid_again(cards: Sequence[Card]) -> dict[str, int | None]:
    """The cost of writing cached tokens again, of judged cards: avoidable and unexplained."""
    costs = [(card, card["cost_microusd"] or 0) for card in cards]
    return {
        "avoidable_microusd": sum(cost for card, cost in costs if card["avoidable"]),
        "unexplained_microusd": sum(cost for card, cost in costs if card["kind"] == "unexplained"),
    }


# Failures


def _failures(session: Session) -> dict[str, int]:
    """Number of failed calls, and of those that succeeded later."""
    if not session.blocks.filter(error=True, type="tool_result").exists():
        return {"failures": 0, "recovered": 0}
    groups = Groups()
    failed: set[int] = set()
    for block in _with_inputs(session, blocks_of(session, with_text=False)):
        groups.add(block)
        if block.error and block.type == "tool_result":
            failed.add(block.position)
    return {"failures": len(failed), "recovered": len(failed.intersection(groups.mended))}


def _with_inputs(session: Session, blocks: Iterable[Block]) -> list[Block]:
    """Blocks without texts, except for the inputs that identify a failed call."""
    listed = list(blocks)
    failing = {block.tool_call for block in listed if block.error}
    tools = {block.tool for block in listed if block.tool_call in failing and block.tool}
    asked = {
        block.position
        for block in listed
        if block.type == "tool_use" and block.tool in tools and block.file is None
    }
    data = contents(session, [block.sha for block in listed if block.position in asked])
    return [
        replace(block, text=wire.text_of(wire.decode(data[block.sha])))
        if block.position in asked
        else block
        for block in listed
    ]
