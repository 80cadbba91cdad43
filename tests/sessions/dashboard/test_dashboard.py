"""Dashboard figures of a range, compared with values computed by hand and by other means."""

from __future__ import annotations

import json
import math
import random
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions import importers
from sessions.actions.accounts import audit
from sessions.actions.accounts.teams import local_team
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.models import Assessment, AuditEntry, FactLedger, ReviewItem, Revision, Run, Session
from sessions.models.dashboard.dashboards import Dashboard, dashboard, extent
from sessions.models.dashboard.matching import matching
from sessions.models.dashboard.tiles import COUNTED, TILES
from sessions.models.dashboard.troubles import breaks, nearest_limit
from sessions.models.record.manifest import pack
from sessions.models.record.tail import Figures
from sessions.models.web.periods import DAY, Period, ending_now, of_all
from sessions.models.web.sums import quantile
from tests.sessions.made import count
from tests.sessions.pages import other_team
from tests.sessions.web.test_periods import NOW, ms

pytestmark = [pytest.mark.django_db, pytest.mark.store]

WEEK = ending_now("7d", NOW)
LOG = Path(__file__).parents[1] / "importers" / "samples" / "claude-code" / "claude-code.jsonl"


def made(name: str, at: str | None, team: Any = None, **columns: Any) -> Session:
    """A session that happened at a time, with just these columns."""
    return Session.objects.create(
        team=team or local_team(), external_id=name, ended_at=ms(at) if at else None, **columns
    )


def assessed(session: Session, **columns: Any) -> None:
    Assessment.objects.create(session=session, steps=session.step_count, **columns)


def values(made: Dashboard, tile: str) -> dict[str, Any]:
    return {number.column.name: number.value for number in made.numbers(COUNTED[tile])}


def before(made: Dashboard, tile: str) -> Any:
    return made.numbers(COUNTED[tile])[0].before


@pytest.fixture
def five() -> dict[str, Session]:
    """Two of this week, one without times, one of the week before, and one of no week; and one of
    a foreign team."""
    priced = made(
        "priced", "2026-11-17 12:00", cost_microusd=2_000_000, usage_calls=4, step_count=4,
        uncached_tokens=100, cache_read_tokens=700, cache_write_tokens=200, window=1000,
        peak_tokens=500, peak_measured=True, compaction_count=2, outcome="succeeded",
    )  # fmt: skip
    assessed(
        priced, uncached_microusd=400_000, write_microusd=600_000, read_microusd=500_000,
        output_microusd=500_000, avoidable_microusd=300_000, unexplained_microusd=70_000,
        failures=2, recovered=1,
        needs=10, in_context=6, named=1, retrievable=2, lost=1, judged_steps=4, adrift_steps=1,
        checked_calls=5, schema_violations=1,
    )  # fmt: skip
    silent = made(
        "silent", "2026-11-18 01:00", step_count=2, window=1000, peak_tokens=900,
        parent_external_id="priced",
    )  # fmt: skip
    timeless = made("timeless", None, usage_calls=3, step_count=3, uncached_tokens=1000)
    at = datetime.fromtimestamp(ms("2026-11-15 08:00") / 1000, UTC)
    Session.objects.filter(pk=timeless.pk).update(created=at)
    assessed(timeless, failures=0)
    earlier = made(
        "earlier", "2026-11-10 12:00", cost_microusd=1_000_000, usage_calls=1, step_count=2,
        uncached_tokens=50, cache_read_tokens=50, outcome="failed",
    )  # fmt: skip
    # Later in the previous week than it is now in this one: not comparable yet.
    neither = made("neither", "2026-11-11 12:00", cost_microusd=9_000_000, usage_calls=1)
    made("foreign", "2026-11-17 12:00", other_team(), cost_microusd=7_000_000, usage_calls=1)
    return {
        "priced": priced, "silent": silent, "timeless": timeless, "earlier": earlier,
        "neither": neither,
    }  # fmt: skip


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
                    "needs": 10}, None),
        ("ledger", dict.fromkeys(("share", "score", "ledgers", "kept", "retrievable", "lost",
                                  "unsupported")), None),
        ("reviews", dict.fromkeys(("passed", "pass", "fix", "fail")), None),
        ("failures", {"rate": 0.5, "failures": 2, "recovered": 1}, None),
        ("outcomes", {"rate": 1, "succeeded": 1, "failed": 0, "abandoned": 0, "unknown": 2}, 0),
        ("steps", {"median": 3, "p90": 4, "all": 9}, 2),
        ("drift", {"share": 0.25, "adrift": 1, "judged": 4}, None),
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
    assert quantile(Counter(numbers), share) == wanted


def test_the_same_comes_out_of_the_raw_rows() -> None:
    """Two hundred sessions at random, added up again without the database."""
    dice, team = random.Random(11), local_team()
    for i in range(200):
        priced = dice.random() < 0.7
        session = Session.objects.create(
            team=team, external_id=f"s{i}", ended_at=NOW - dice.randrange(20 * DAY),
            step_count=dice.randrange(60), usage_calls=dice.randrange(1, 9) if priced else 0,
            cost_microusd=dice.randrange(10**7) if priced else None,
            uncached_tokens=dice.randrange(999) if priced else 0,
            cache_read_tokens=dice.randrange(9999) if priced else 0,
            window=dice.choice([None, 1000]), peak_tokens=dice.randrange(1000),
        )  # fmt: skip
        if priced:
            assessed(session, uncached_microusd=1, avoidable_microusd=dice.randrange(10**6))
    found = dashboard(team, WEEK)
    for i, start in enumerate(WEEK.parts):
        mine = [s for s in Session.objects.all() if start <= s.ended_at < start + WEEK.size]
        priced = [s for s in mine if s.cost_microusd is not None]
        spend, cache, avoidable, steps, window = (
            found.numbers(COUNTED[name])[0].values[i]
            for name in ("spend", "cache", "avoidable", "steps", "window")
        )
        assert spend == sum(s.cost_microusd for s in priced)
        prompt = sum(s.uncached_tokens + s.cache_read_tokens + s.cache_write_tokens for s in mine)
        assert cache == pytest.approx(sum(s.cache_read_tokens for s in mine) / prompt)
        assert avoidable == sum(s.assessment.avoidable_microusd for s in priced)
        ranked = sorted(s.step_count for s in mine if s.step_count)
        assert steps == ranked[math.ceil(len(ranked) / 2) - 1]
        peaks = sorted(s.peak_share for s in mine if s.window and s.peak_tokens)
        assert window == peaks[math.ceil(len(peaks) / 2) - 1]
    assert sum(part.of["sessions"] for part in found.parts) == found.whole.of["sessions"]


def test_the_same_comes_out_of_the_log_itself() -> None:
    """Cache read share and steps of an imported log, from its lines."""
    usage: dict[str, dict[str, int]] = {}
    for line in LOG.read_text().splitlines():
        message = json.loads(line).get("message") or {}
        if isinstance(message, dict) and message.get("usage"):
            usage[message["id"]] = message["usage"]
    sums: defaultdict[str, int] = defaultdict(int)
    for used in usage.values():
        for name, number in used.items():
            if isinstance(number, int):
                sums[name] += number
    stored = []
    for session in importers.parse(LOG.read_bytes(), LOG.name).sessions:
        stored.append(append(local_team(), session, count, source="test").session)
        measure(stored[-1])
    there = extent(local_team(), 0)
    assert there.first is not None
    assert there.last is not None
    found = dashboard(local_team(), of_all(there.first, there.last))
    read = sums["cache_read_input_tokens"]
    prompt = read + sums["input_tokens"] + sums["cache_creation_input_tokens"]
    assert prompt
    assert values(found, "cache")["share"] == pytest.approx(read / prompt)
    assert values(found, "steps")["all"] == len(usage)


@pytest.mark.parametrize("many", [1, 3, 40])
def test_the_number_of_questions_does_not_grow(many: int, five: dict[str, Session]):
    team = local_team()
    for i in range(many):
        session = made(f"more{i}", "2026-11-16 09:00", break_count=1, window=10, peak_tokens=9)
        columns = pack(msgspec.json.encode(Figures(causes=[card("edit", 1, 5)])))
        Run.objects.create(session=session, origin=Run.Origin.RECORDED, columns=columns)
    with CaptureQueriesContext(connection) as asked:
        extent(team, 0)
        dashboard(team, WEEK)
        breaks(team, WEEK)
        nearest_limit(team, WEEK)
    assert len(asked) == 21


def card(kind: str, step: int, cost: int | None) -> dict[str, Any]:
    """A cache break as stored in figures."""
    return {
        "step": step, "kind": kind, "title": f"{kind} at S{step}", "detail": "", "tokens": 100,
        "cost_microusd": cost, "advice": "Mend it.",
    }  # fmt: skip


def test_causes_are_ranked_by_what_they_cost_and_lead_to_the_costliest_break():
    team = local_team()
    one = made("one", "2026-11-16 09:00", break_count=3, step_count=9)
    two = made("two", "2026-11-17 09:00", break_count=2, step_count=9)
    made("old", "2026-11-01 09:00", break_count=5)
    figures = {
        (one, Run.Origin.RECORDED): [card("edit", 2, 50), card("ttl", 3, 70)],
        (one, Run.Origin.SIMULATED): [card("edit", 2, 9000)],
        # The model of a managed session saw its managed run.
        (two, Run.Origin.RECORDED): [card("edit", 4, 1_000_000)],
        (two, Run.Origin.MANAGED): [card("edit", 5, 60), card("model", 6, None)],
    }
    for (session, origin), causes in figures.items():
        columns = pack(msgspec.json.encode(Figures(causes=causes)))
        Run.objects.create(session=session, origin=origin, columns=columns)
    found = breaks(team, WEEK)
    assert found.looked_at == 2
    assert [(c.kind, c.breaks, c.tokens, c.cost, len(c.sessions)) for c in found.causes] == [
        ("edit", 2, 200, 110, 2),
        ("ttl", 1, 100, 70, 1),
        ("model", 1, 100, None, 1),
    ]
    assert [c.costliest for c in found.causes] == [(two, 5), (one, 3), (two, 6)]


def test_those_nearest_their_limit_come_first():
    for name, peak in (("full", 1100), ("near", 850), ("far", 790)):
        made(name, "2026-11-16 09:00", window=1000, peak_tokens=peak)
    made("unknown", "2026-11-16 09:00", peak_tokens=5000)
    found = nearest_limit(local_team(), WEEK)
    assert [session.external_id for session in found] == ["full", "near"]


def test_changes_of_policy_are_marked_and_no_other_acts():
    team = local_team()
    at = datetime.fromtimestamp(NOW / 1000, UTC)
    for action in ("rollout.accepted", "rollout.paused", "policy.saved"):
        audit.note(team, audit.COMMAND, action, "careful@2", rollout="r", share=10)
    audit.note(other_team(), audit.COMMAND, "rollout.completed", "theirs@1")
    now = ending_now("7d", int(AuditEntry.objects.latest("pk").at.timestamp() * 1000) + 1)
    assert [(m.action, m.named, m.detail["share"]) for m in dashboard(team, now).marks] == [
        ("rollout.accepted", "careful@2", 10)
    ]
    long_ago = int((at - timedelta(days=4000)).timestamp() * 1000)
    assert dashboard(team, ending_now("7d", long_ago)).marks == ()


def test_nothing_at_all_is_unknown_and_not_zero():
    found = dashboard(local_team(), WEEK)
    for tile in TILES:
        assert {number.value for number in found.numbers(tile)} == {None}
        assert found.missing(tile) == []
    assert extent(local_team(), 0).last is None
