"""Dashboard figures against the raw rows, the log, and other means; its rankings."""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions import importers
from sessions.actions.accounts import audit
from sessions.actions.accounts.teams import local_team
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.models import AuditEntry, Run, Session
from sessions.models.dashboard.dashboards import dashboard, extent
from sessions.models.dashboard.slices import EVERYTHING
from sessions.models.dashboard.tiles import COUNTED, TILES
from sessions.models.dashboard.troubles import nearest_limit, worst_of_causes
from sessions.models.record.manifest import pack
from sessions.models.record.tail import Figures
from sessions.models.web.periods import DAY, ending_now, of_all
from tests.sessions.dashboard.dashboards import WEEK, assessed, made, values
from tests.sessions.made import count
from tests.sessions.pages import other_team
from tests.sessions.web.test_periods import NOW

pytestmark = [pytest.mark.django_db, pytest.mark.store]


LOG = Path(__file__).parents[1] / "importers" / "samples" / "claude-code" / "claude-code.jsonl"


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
        by_client = isinstance(message, dict) and message.get("model") == "<synthetic>"
        if isinstance(message, dict) and message.get("usage") and not by_client:
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
        worst_of_causes(team, WEEK, EVERYTHING)
        nearest_limit(team, WEEK)
    assert len(asked) == 22


def card(kind: str, step: int, cost: int | None) -> dict[str, Any]:
    """A cache break as stored in figures."""
    return {
        "step": step, "kind": kind, "title": f"{kind} at S{step}", "detail": "", "tokens": 100,
        "cost_microusd": cost, "advice": "Mend it.",
    }  # fmt: skip


def test_each_cause_leads_to_its_costliest_break():
    team = local_team()
    one = made("one", "2026-11-16 09:00", break_count=3, step_count=9, source="pi")
    two = made("two", "2026-11-17 09:00", break_count=2, step_count=9, source="codex-rollout")
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
    found = worst_of_causes(team, WEEK, EVERYTHING)
    assert {key: (one.session, one.card["step"]) for key, one in found.items()} == {
        ("edit", True): (two, 5), ("ttl", False): (one, 3), ("model", True): (two, 6)
    }  # fmt: skip


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
