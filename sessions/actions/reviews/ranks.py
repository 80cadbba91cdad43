"""Ranks of review items: how bad each is, as one number that an index keeps in order."""

from __future__ import annotations

from django.db.models import BigIntegerField, Case, F, When

from sessions.models import FactLedger, ReviewItem, Team
from sessions.models.reviews.reviews import UNRANKED

WORST = ("-rank", "created", "pk")
"""Items by what the loss cost, where that is known; then by lost facts that were needed again."""

MOST = 999
"""Facts and signs beyond this do not count."""

AT_ONCE = 500
"""Items per statement."""


def rank_of(microusd: int | None, missed: int | None, signs: int | None) -> int:
    """The rank of an item: the cost of the loss, then lost facts that were needed again, then
    after-effects; None where it has no ledger."""
    facts = min(missed or 0, MOST) * (MOST + 1) + min(signs or 0, MOST)
    return min(microusd or 0, 10**12) * (MOST + 1) ** 2 + facts


def rank_by(ledger: FactLedger) -> int:
    """The rank of the item of a ledger's compaction."""
    return rank_of(ledger.after.get("microusd"), ledger.missed, ledger.after_effects)


def unranked(team: Team) -> bool:
    """Whether open items have no rank, as those of an earlier release."""
    return ReviewItem.objects.for_team(team).filter(finished=None, rank=UNRANKED).exists()


def rank_some(team: Team) -> int:
    """Rank some items that have no rank; return how many, 0 once all have one."""
    items = ReviewItem.objects.for_team(team).filter(finished=None, rank=UNRANKED)
    of = "revision__fact_ledger"
    names = ("pk", *(f"{of}__{name}" for name in ("after__microusd", "missed", "after_effects")))
    ranks = {pk: rank_of(*known) for pk, *known in items.values_list(*names)[:AT_ONCE]}
    if ranks:
        # A ledger made meanwhile has ranked its item.
        cases = (When(pk=pk, then=rank) for pk, rank in ranks.items())
        ranked = Case(*cases, default=F("rank"), output_field=BigIntegerField())
        items.filter(pk__in=ranks).update(rank=ranked)
    return len(ranks)
