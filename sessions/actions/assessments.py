"""Assessments: what a session cost by where it went, what failed, what was there when needed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from compaction import edits, prices, wire
from compaction.cache import causes
from compaction.context import Block
from compaction.facts.recall import recall
from compaction.groups import Groups
from compaction.session import Call
from sessions.actions.fact_ledgers import is_over
from sessions.actions.outcomes import outcomes
from sessions.models import Assessment, Run, Session, tail
from sessions.models.replaced import entries_of
from sessions.models.values import blocks_of, calls_of, contents, recorded_session

ENGINE = 3
"""Rises when a rule changes by which assessments are made."""

SOONEST = 50
"""Steps after which a live session is assessed again, at the earliest; never before it has grown
by a quarter, so that all assessments of a session together are linear in it."""


def assessment_due(session: Session) -> bool:
    """Whether a session has changed enough since it was assessed."""
    row = Assessment.objects.filter(session=session).only("steps", "engine").first()
    if row is None or row.engine < ENGINE:
        return True
    grown = session.step_count - row.steps
    if is_over(session):
        return grown != 0
    return grown >= max(SOONEST, row.steps // 4)


def outdate(session: Session) -> None:
    """Note that something of a session changed that no step tells of: a log told more of a call."""
    Assessment.objects.filter(session=session).update(engine=0)


def keep_assessment(session: Session) -> Assessment:
    """Assess a session as it is stored now, in place of what was known of it."""
    steps = session.step_count
    fields = _spend(session) | _failures(session) | _recall(session) | outcomes(session)
    row, _ = Assessment.objects.update_or_create(
        session=session, defaults={**fields, "steps": steps, "engine": ENGINE}
    )
    return row


# Money


@dataclass(slots=True)
class _Spend:
    """Nano-dollars of reported usage by where they went."""

    fresh: int = 0
    write: int = 0
    read: int = 0
    output: int = 0

    def add(self, call: Call) -> bool:
        """Take in a call; False where its model has no price."""
        usage, price = call.usage, prices.price(call.model, call.at)
        if usage is None:
            return True
        if price is None:
            return False
        rates = price.at(usage.prompt)
        self.fresh += usage.fresh * rates.input
        self.write += usage.cache_write_5m * rates.cache_write_5m
        self.write += usage.cache_write_1h * rates.cache_write_1h
        self.read += usage.cache_read * rates.cache_read
        self.output += usage.output * rates.output
        return True


def _spend(session: Session) -> dict[str, int | None]:
    """Null where no usage was reported, or a call has no price, as of a session's cost."""
    names = ("fresh", "write", "read", "output", "avoidable", "unexplained")
    nothing: dict[str, int | None] = {f"{name}_microusd": None for name in names}
    spend = _Spend()
    calls = calls_of(session)
    priced = [spend.add(call) for call in calls]
    if not all(priced) or not any(call.usage for call in calls):
        return nothing
    return {
        "fresh_microusd": prices.micros(spend.fresh),
        "write_microusd": prices.micros(spend.write),
        "read_microusd": prices.micros(spend.read),
        "output_microusd": prices.micros(spend.output),
        **_paid_again(session),
    }


def _paid_again(session: Session) -> dict[str, int | None]:
    """What was paid again though it had been cached, as the cause cards of the session's breaks say
    it: for causes that somebody can avoid, and for none that is known."""
    run = Run.objects.get(session=session, origin=Run.Origin.RECORDED)
    row = tail.stored(run)
    cards = tail.causes(row) if row.columns or row.tail is not None else []
    costs = [(card["kind"], card["cost_microusd"] or 0) for card in cards]
    return {
        "avoidable_microusd": sum(cost for kind, cost in costs if causes.is_avoidable(kind)),
        "unexplained_microusd": sum(cost for kind, cost in costs if kind == "unexplained"),
    }


# Failures


def _failures(session: Session) -> dict[str, int]:
    """Failed calls, and those of them after which the same thing succeeded."""
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
    """Blocks without texts, but for the inputs by which a failure is known again."""
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


# Recall


def _recall(session: Session) -> dict[str, int | None]:
    """Needed-later recall of what was served, in needs; null where nothing was."""
    run = Run.objects.filter(session=session, origin=Run.Origin.SERVED).first()
    names = ("needs", "in_place", "named", "retrievable", "lost")
    if run is None:
        return dict.fromkeys(names)
    value = recorded_session(session, window=0)
    found = recall(value, _Lived(entries_of(session, run, value.blocks)))
    shares = (found.in_place, found.named, found.retrievable, found.lost)
    counts = [round(share * found.needs) for share in shares]
    return dict(zip(names, [found.needs, *counts], strict=True))


@dataclass(frozen=True, slots=True)
class _Lived:
    """A served run as recall reads it."""

    entries: tuple[edits.Entry, ...]
