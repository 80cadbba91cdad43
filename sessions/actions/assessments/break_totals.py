"""Keep what a session's cache breaks cost, by cause, and what a longer TTL would have saved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from compaction.cache.causes import hour_keeps
from compaction.context.session import Call
from compaction.prices import prices
from sessions.models import BreakTotals, Session
from sessions.models.record.tail import Card

_Kind = tuple[str, bool]
"""A cause, and whether its breaks are avoidable."""


def keep_breaks(session: Session, cards: Sequence[Card], *, priced: bool) -> None:
    """Store the breaks of a session, of judged cards, by cause and by whether they are avoidable;
    without costs unless all of its calls are `priced`, as its cost is unknown then."""
    breaks, tokens, costs = Counter[_Kind](), Counter[_Kind](), Counter[_Kind]()
    for card in cards:
        kind = card["kind"], card["avoidable"]
        breaks[kind] += 1
        tokens[kind] += card["tokens"]
        costs[kind] += card["cost_microusd"] or 0
    for row in BreakTotals.objects.filter(session=session):
        if (row.cause, row.avoidable) not in breaks:
            row.delete()
    BreakTotals.objects.bulk_create(
        [
            BreakTotals(
                session=session,
                cause=cause,
                avoidable=avoidable,
                breaks=many,
                tokens=tokens[cause, avoidable],
                cost_microusd=costs[cause, avoidable] if priced else None,
            )
            for (cause, avoidable), many in breaks.items()
        ],
        update_conflicts=True,
        unique_fields=["session", "cause", "avoidable"],
        update_fields=["breaks", "tokens", "cost_microusd"],
    )


def hour_saved(calls: Sequence[Call], cards: Sequence[Card]) -> int | None:
    """What a one-hour TTL would have saved over the five minutes requested, in micro-dollars.

    It saves the breaks after idles of up to an hour, and costs the higher price of all other
    writes. None if no call wrote for five minutes, or a price is unknown.
    """
    saved = {
        card["step"]: card
        for card in cards
        if card["kind"] == "ttl"
        and not card.get("cut")
        and hour_keeps(card.get("idle"), card.get("ttl"))
    }
    nano, written = 0, 0
    for call in calls:
        if call.usage is None or not call.usage.cache_write_5m:
            continue
        price = prices.price(call.model, call.at)
        if price is None:
            return None
        rates = price.at(call.usage.prompt)
        card = saved.get(call.step)
        again = min(card["tokens"], call.usage.cache_write_5m) if card else 0
        nano += again * (rates.cache_write_5m - rates.cache_read)
        nano -= (call.usage.cache_write_5m - again) * (rates.cache_write_1h - rates.cache_write_5m)
        written += call.usage.cache_write_5m
    return prices.micros(nano) if written else None
