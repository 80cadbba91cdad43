"""Dashboard figures of a range, compared with values computed by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from sessions.actions.accounts.teams import local_team
from sessions.models import FactLedger, ReviewItem, Revision, Run, Session
from sessions.models.dashboard.dashboards import Dashboard, dashboard, extent
from sessions.models.dashboard.matching import matching
from sessions.models.dashboard.tiles import COUNTED, TILES
from sessions.models.web.periods import DAY, Period, ending_now
from sessions.models.web.sums import Frequencies
from sessions.views.dashboard.charts import charts
from tests.sessions.dashboard.dashboards import WEEK, values
from tests.sessions.web.test_periods import NOW, ms

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def before(made: Dashboard, tile: str) -> Any:
    return made.numbers(COUNTED[tile])[0].before


@pytest.mark.parametrize(
    ("tile", "wanted", "was"),
    [
        ("spend", {"spend": 2_000_000, "per_session": 2_000_000}, 1_000_000),
        ("avoidable", {"avoidable": 300_000, "unexplained": 70_000, "uncached": 400_000,
                       "write": 600_000,
                       "read": 500_000, "output": 500_000}, None),
        ("cache", {"share": 0.35, "read": 700, "write": 200, "uncached": 1100}, 0.5),
        ("window", {"median": 0.5, "p90": 0.9, "near": 1}, None),
        ("compactions", {"per_session": 2 / 3, "recorded": 2, "managed": 0}, 0),
        ("recall", {"in_context": 0.6, "named": 0.1, "retrievable": 0.2, "lost": 0.1,
                    "needs": 10, "kept": 6, "facts": 1, "losing": 1}, None),
        ("ledger", dict.fromkeys(("share", "score", "ledgers", "kept", "retrievable", "lost",
                                  "unsupported")), None),
        ("reviews", dict.fromkeys(("passed", "pass", "fix", "fail")), None),
        ("failures", {"rate": 0.5, "failures": 2, "recovered": 1}, None),
        ("outcomes", {"rate": 1, "succeeded": 1, "failed": 0, "abandoned": 0, "unknown": 2}, 0),
        ("steps", {"median": 3, "p90": 4, "all": 9}, 2),
        ("schemas", {"share": 0.2, "violations": 1, "checked": 5}, None),
    ],
)  # fmt: skip
def test_each_tile_against_values_worked_out_by_hand(
    five: dict[str, Session], tile: str, wanted: dict[str, Any], was: Any
):
    found = dashboard(local_team(), WEEK)
    assert values(found, tile) == wanted
    assert before(found, tile) == was


def test_a_day_has_what_happened_on_it_and_nothing_where_nothing_tells(five: dict[str, Session]):
    found = dashboard(local_team(), WEEK)
    spend, cache, steps = (found.numbers(COUNTED[name])[0].values for name in
                           ("spend", "cache", "steps"))  # fmt: skip
    assert spend == (None, None, None, None, None, 2_000_000, None)
    assert cache == (None, None, None, 0, None, 0.7, None)
    assert steps == (None, None, None, 3, None, 4, 2)


def test_what_is_left_out_is_counted_with_the_reason(five: dict[str, Session]):
    found = dashboard(local_team(), WEEK)
    assert found.whole.of["sub_agents"] == 1
    left = {tile.name: found.missing(tile) for tile in TILES}
    assert left["spend"] == [
        (1, "without reported usage"),
        (1, "of a model without a known price"),
    ]
    assert left["avoidable"][-1] == (1, "not assessed yet")
    assert [many for many, _ in left["window"]] == [1, 1]
    assert left["outcomes"] == [(2, "without a reported outcome")]
    assert left["compactions"] == left["steps"] == []
    assert found.basis(COUNTED["window"]) == "estimated"
    earlier = dashboard(local_team(), Period("", ms("2026-11-10 00:00"), NOW, DAY, None))
    assert (1, COUNTED["spend"].missing[2][1]) in earlier.missing(COUNTED["spend"])


@pytest.mark.parametrize("tile", TILES, ids=lambda tile: tile.name)
def test_a_list_shows_exactly_the_sessions_that_a_tile_counts(five: dict[str, Session], tile: Any):
    compacted(five["priced"])
    found = dashboard(local_team(), WEEK)
    listed = matching(
        local_team(), within=(WEEK.since, WEEK.until), counted=COUNTED[tile.name].found()
    )
    assert len(listed) == found.whole.of[tile.counted]
    assert "neither" not in {session.external_id for session in listed}


def compacted(session: Session) -> Revision:
    """Two compactions: one that a log records, with a ledger, and one that we managed."""
    for origin in (Run.Origin.RECORDED, Run.Origin.MANAGED, Run.Origin.SIMULATED):
        run = Run.objects.create(session=session, origin=origin)
        revision = Revision.objects.create(run=run, number=1, step=2, trigger="threshold")
        for index in range(2):
            revision.edits.create(index=index, strategy="compact")
        score = {Run.Origin.RECORDED: 800, Run.Origin.MANAGED: None}.get(origin, 100)
        FactLedger.objects.create(revision=revision, score=score, kept=8, lost=2)
        if origin == Run.Origin.RECORDED:
            recorded = revision
    return recorded


def test_compactions_and_ledgers_are_those_that_happened(five: dict[str, Session]):
    compacted(five["priced"])
    found = dashboard(local_team(), WEEK)
    assert values(found, "compactions") == {"per_session": 1, "recorded": 2, "managed": 1}
    ledger = values(found, "ledger")
    assert (ledger["share"], ledger["score"], ledger["ledgers"]) == (0.8, 0.8, 1)
    assert (ledger["kept"], ledger["lost"]) == (8, 2)


def test_reviews_count_once_all_that_were_wanted_are_in(five: dict[str, Session]):
    """A number that changed with the first of two blind reviews would reveal it to the second
    reviewer."""
    team, at = local_team(), datetime.fromtimestamp(NOW / 1000, UTC)
    revision = compacted(five["priced"])
    item = ReviewItem.objects.create(team=team, revision=revision, reason="hand", wanted=2)
    for verdict in ("pass", "fail"):
        user = get_user_model().objects.create_user(username=verdict)
        item.reviews.create(reviewer=user, verdict=verdict, submitted=at)
    assert values(dashboard(team, WEEK), "reviews")["passed"] is None
    ReviewItem.objects.filter(pk=item.pk).update(finished=at)
    found = dashboard(team, WEEK)
    assert values(found, "reviews") == {"passed": 0.5, "pass": 1, "fix": 0, "fail": 1}
    assert found.whole.of["reviewed"] == 1


def test_the_forecast_is_this_month_and_the_pace_of_the_range(five: dict[str, Session]):
    team = local_team()
    there = extent(team, ms("2026-11-01 00:00"))
    assert (there.sessions, there.spent) == (5, 12_000_000)
    found = dashboard(team, WEEK)
    days = (NOW - WEEK.since) / DAY
    assert found.forecast(there.spent, NOW, 12.0) == 12_000_000 + round(2_000_000 / days * 12)
    assert dashboard(team, ending_now("24h", NOW + DAY)).forecast(1, NOW, 12.0) is None
    assert extent(team, ms("2026-12-01 00:00")).spent is None


@pytest.mark.parametrize(
    ("numbers", "share", "wanted"),
    [([], 0.5, None), ([7], 0.9, 7), ([1, 2], 0.5, 1), ([3, 1, 2], 0.5, 2),
     (list(range(1, 11)), 0.9, 9), (list(range(1, 11)), 0.5, 5), ([1] * 9 + [5], 0.9, 1)],
)  # fmt: skip
def test_quantiles_are_values_that_occur(numbers: list[int], share: float, wanted: int | None):
    assert Frequencies(numbers).quantile(share) == wanted


@pytest.mark.parametrize("later", [0, 500_000])
def test_the_parts_of_the_spend_add_up_to_it(five: dict[str, Session], later: int):
    """What a session spent after its assessment is a part of its own."""
    Session.objects.filter(cost_microusd=2_000_000).update(cost_microusd=2_000_000 + later)
    spend = charts(dashboard(local_team(), WEEK))[0][0]
    names = [one["label"] for one in spend.props["series"]]
    assert ("Not split yet" in names) == bool(later)
    parts = [value or 0 for one in spend.props["series"] for value in one["values"]]
    assert sum(parts) == 2_000_000 + later
