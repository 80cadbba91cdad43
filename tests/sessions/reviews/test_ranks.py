"""Ranks of review items: the worst first, in the order of an index."""

from __future__ import annotations

from itertools import pairwise

import pytest
from django.db import connection
from django.utils import timezone

from sessions.actions.assessments import assess
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import attempt
from sessions.actions.reviews import ranks, reviews
from sessions.actions.reviews.fact_ledgers import keep_ledger
from sessions.actions.reviews.ranks import rank_of
from sessions.actions.reviews.reservations import open_to
from sessions.models import FactLedger, ReviewItem, Session, Team
from sessions.models.reviews.reviews import UNRANKED
from tests.sessions.reviewing import compaction, item, member

pytestmark = [pytest.mark.django_db, pytest.mark.store]

MOST = ranks.MOST


def test_cost_counts_before_facts_and_facts_before_signs():
    rising = [
        (None, None, None),
        (None, 0, 1),
        (None, 0, MOST),
        (None, 1, 0),
        (None, MOST, MOST),
        (1, 0, 0),
        (1, 0, 1),
        (2, 0, 0),
        (10**12, MOST, MOST),
    ]
    assert all(rank_of(*less) < rank_of(*more) for less, more in pairwise(rising))
    assert rank_of(0, 0, 0) == rank_of(None, None, None) == 0 > UNRANKED
    assert rank_of(10**13, 10**6, 10**6) == rank_of(*rising[-1]) < 2**63


def test_an_item_has_the_rank_of_its_ledger_and_follows_it(ours: Team):
    revision = compaction(ours)
    FactLedger.objects.filter(revision=revision).update(
        missed=2, after_effects=3, after={"microusd": 5, "at_least": False}
    )
    added = reviews.add(revision, None)
    assert added.rank == rank_of(5, 2, 3)
    kept = keep_ledger(revision.run.session, revision)
    added.refresh_from_db()
    assert kept is not None and added.rank == ranks.rank_by(kept) != rank_of(5, 2, 3)
    bare = compaction(ours, "bare")
    FactLedger.objects.filter(revision=bare).delete()
    assert reviews.add(bare, None).rank == 0


def test_items_of_an_earlier_release_are_ranked_by_the_assessment(
    ours: Team, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ranks, "AT_ONCE", 2)
    made = [item(ours, str(number)) for number in range(5)]
    FactLedger.objects.update(missed=1, after_effects=0, after={})
    ReviewItem.objects.update(rank=UNRANKED)
    ReviewItem.objects.filter(pk=made[0].pk).update(finished=timezone.now())
    ReviewItem.objects.filter(pk=made[1].pk).update(rank=7)
    assert [ranks.rank_some(ours) for _ in range(3)] == [2, 1, 0]
    found = dict(ReviewItem.objects.values_list("pk", "rank"))
    assert [found[one.pk] for one in made] == [UNRANKED, 7, *[rank_of(0, 1, 0)] * 3]
    monkeypatch.setattr(assess, "_unassessed", lambda team: Session.objects.none())
    assert assess.ask_all(ours) is None
    ReviewItem.objects.update(rank=UNRANKED)
    job = assess.ask_all(ours)
    claimed = jobs.claim(job.pk) if job is not None else None
    assert claimed is not None and claimed.token is not None
    assert attempt(claimed.pk, claimed.token) and not ranks.unranked(ours)


def test_the_worst_come_from_the_index_without_a_sort(ours: Team):
    reviewer = member(ours, "reviewer")
    for rows in (
        ReviewItem.objects.for_team(ours).filter(finished=None),
        open_to(ours, reviewer),
    ):
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":  # with so few rows, it would
                cursor.execute("SET LOCAL enable_sort = off")
                cursor.execute("SET LOCAL enable_seqscan = off")
        plan = rows.order_by(*ranks.WORST)[:3].explain()
        assert "review_worst" in plan
        assert "Sort Key" not in plan and "USE TEMP B-TREE FOR ORDER BY" not in plan
