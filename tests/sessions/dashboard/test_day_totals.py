"""Kept sums of days: the same figures as from all rows, whatever changed since they were kept."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.db.models import Count, F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sessions.actions.accounts.teams import local_team
from sessions.actions.dashboard.day_totals import keep_totals
from sessions.models import (
    Assessment,
    DayTotals,
    FactLedger,
    Policy,
    PolicyVersion,
    ReviewItem,
    Revision,
    Run,
    Session,
    Team,
)
from sessions.models.dashboard import day_totals, slices
from sessions.models.dashboard.dashboards import dashboard, extent
from sessions.models.dashboard.day_totals import due_days, due_once, kept
from sessions.models.dashboard.facets import facets
from sessions.models.dashboard.slices import EVERYTHING, Split, merged, read_slices
from sessions.models.dashboard.troubles import nearest_limit, worst_of_causes
from sessions.models.record.manifest import pack
from sessions.models.record.sessions import SORT_KEYS
from sessions.models.record.tail import Figures
from sessions.models.web.happened import happened
from sessions.models.web.periods import DAY, HOUR, WEEK, Period, ending_now, of_all
from sessions.models.web.sums import Frequencies, Sums
from tests.sessions.pages import other_team
from tests.sessions.web.test_periods import NOW

pytestmark = [pytest.mark.django_db, pytest.mark.store]

SINCE = NOW - 12 * DAY
PERIODS = (
    ending_now("24h", NOW),
    ending_now("7d", NOW),
    of_all(SINCE, NOW),
    of_all(NOW - 100 * DAY, NOW),
    Period("", NOW - 3 * HOUR - 1, NOW, HOUR, (NOW - 7 * HOUR, NOW - 3 * HOUR - 7)),
)
CARD = {"step": 1, "title": "", "detail": "", "tokens": 9, "advice": "", "kind": "ttl"}


@pytest.fixture
def team() -> Team:
    """Eighty sessions of twelve days at random, with all that is counted of them."""
    dice, team = random.Random(5), local_team()
    sessions, created = list[Session](), list[datetime]()
    for i in range(80):
        priced = dice.random() < 0.7
        sessions.append(Session(
            team=team, external_id=f"s{i}",
            ended_at=NOW - dice.randrange(12 * DAY) if i % 9 else None,
            step_count=dice.randrange(40), usage_calls=dice.randrange(5), window=1000,
            cost_microusd=dice.randrange(10**6) if priced else None, break_count=i % 3,
            peak_tokens=dice.randrange(1100), agent=f"agent-{i % 4}", model=f"m{i % 3}",
            meta={"warmup": True} if i % 11 == 0 else {},
        ))  # fmt: skip
        created.append(datetime.fromtimestamp((NOW - dice.randrange(12 * DAY)) / 1000, UTC))
    Session.objects.bulk_create(sessions)
    for one, at in zip(sessions, created, strict=True):
        one.created = at
    Session.objects.bulk_update(sessions, ["created"])
    Assessment.objects.bulk_create(
        Assessment(
            session=one, failures=i % 4, uncached_microusd=i, avoidable_microusd=7 * i % 50,
            unexplained_microusd=0,
        ) for i, one in enumerate(sessions)
    )  # fmt: skip
    runs = [
        Run(
            session=one, origin="recorded",
            columns=pack(msgspec.json.encode(Figures(causes=[{**CARD, "cost_microusd": i}]))),
        ) for i, one in enumerate(sessions)
    ]  # fmt: skip
    for run in Run.objects.bulk_create(runs)[::8]:
        compaction(run)
    Session.objects.create(team=other_team(), external_id="theirs", ended_at=NOW - HOUR)
    return team


def compaction(run: Run) -> Revision:
    """A compaction with a ledger."""
    revision = Revision.objects.create(run=run, number=1, step=1, trigger="tokens")
    revision.edits.create(index=0, strategy="compact")
    FactLedger.objects.create(revision=revision, score=800, kept=8, lost=2)
    return revision


def shown(team: Team) -> Any:
    """All that pages read of a team's days."""
    found: list[Any] = [extent(team, SINCE // DAY * DAY), extent(team, 0), facets(team)]
    for period in PERIODS:
        made = dashboard(team, period)
        of = [{name: many for name, many in part.of.items() if many} for part in made.parts]
        before = made.before and {name: many for name, many in made.before.of.items() if many}
        causes = worst_of_causes(team, period, EVERYTHING)
        some = dashboard(team, period, Split("agent-1", "m2"))
        found.append([({n: m for n, m in part.of.items() if m}, part.peaks) for part in some.parts])
        sizes = [(part.peaks, part.steps) for part in made.parts]
        found += [of, before, sizes, causes, nearest_limit(team, period)]
    return found


def from_rows(team: Team) -> Any:
    """The same without anything kept."""
    Session.objects.for_team(team).update(tallied_version=-1)
    DayTotals.objects.all().delete()
    return shown(team)


def checked(team: Team) -> Any:
    """What is shown before and after days are kept again, which must be what the rows say."""
    before = shown(team)
    keep_totals(team)
    assert not day_totals.due_days(team)
    assert shown(team) == before
    assert from_rows(team) == before
    keep_totals(team)
    return before


def test_kept_sums_are_those_of_the_rows(team: Team):
    assert checked(team)[0].sessions == 80
    assert {row.team for row in DayTotals.objects.all()} == {team}


def grown(one: Session) -> None:
    one.step_count += 100
    one.version += 1
    one.save(update_fields=["step_count", "version"])


def moved(one: Session) -> None:
    Session.objects.filter(pk=one.pk).update(ended_at=NOW - 9 * DAY, version=F("version") + 1)


def described(one: Session) -> None:
    one.agent, one.outcome = "another", "succeeded"
    one.save(update_fields=["agent", "outcome"])


def assessed(one: Session) -> None:
    one.assessment.failures = 90
    one.assessment.save()


def compacted(one: Session) -> None:
    compaction(Run.objects.create(session=one, origin="managed"))


def reviewed(one: Session) -> None:
    revision = compaction(Run.objects.create(session=one, origin="managed"))
    item = ReviewItem.objects.create(team=one.team, revision=revision, reason="hand")
    user = get_user_model().objects.create_user(username="a member")
    review = item.reviews.create(reviewer=user, verdict="")
    keep_totals(one.team)
    review.verdict, review.submitted = "pass", timezone.now()
    review.save()
    ReviewItem.objects.filter(pk=item.pk).update(finished=timezone.now())


def deleted(one: Session) -> None:
    one.delete()


def added(one: Session) -> None:
    Session.objects.create(team=one.team, external_id="added", ended_at=NOW - DAY, step_count=3)


@pytest.mark.parametrize(
    "change", [grown, moved, described, assessed, compacted, reviewed, deleted, added]
)
def test_what_changed_is_shown_at_once(team: Team, change: Any):
    before = checked(team)
    change(Session.objects.for_team(team).get(external_id="s1"))
    assert checked(team) != before


def test_what_is_kept_is_not_read_from_rows(team: Team):
    keep_totals(team)
    with CaptureQueriesContext(connection) as asked:
        dashboard(team, of_all(SINCE, NOW))
        extent(team, 0)
        facets(team)
        keep_totals(team)
    reads = [one["sql"] for one in asked if 'FROM "agent_sessions_session"' in one["sql"]]
    assert all("tallied_version" in sql for sql in reads)
    assert len(asked) == 10
    with CaptureQueriesContext(connection) as asked:
        dashboard(team, of_all(SINCE, NOW), Split(agent="agent-1"))
    reads = [one["sql"] for one in asked if 'FROM "agent_sessions_session"' in one["sql"]]
    assert all("tallied_version" in sql for sql in reads)


def test_a_split_is_of_its_sessions_and_of_no_others(team: Team):
    number = iter(range(3))
    for name, version in (("careful", 1), ("careful", 2), ("bold", 1)):
        policy, _ = Policy.objects.get_or_create(team=team, name=name)
        row = PolicyVersion.objects.create(policy=policy, number=version, document={})
        found = Session.objects.for_team(team).filter(external_id__endswith=str(next(number)))
        found.update(policy_version=row, tallied_version=-1)
    keep_totals(team)
    for period in PERIODS:
        whole = dashboard(team, period).whole.of
        rows = Session.objects.for_team(team).annotate(at=happened())
        rows = rows.filter(at__gte=period.since, at__lt=period.until)
        assert whole["unsplit"] == 0
        for split, wanted in (
            (Split(agent="agent-2"), rows.filter(agent="agent-2")),
            (Split(model="m1", policy="careful"),
             rows.filter(model="m1", policy_version__policy__name="careful")),
            (Split(policy="careful@2"),
             rows.filter(policy_version__policy__name="careful", policy_version__number=2)),
            (Split(agent="absent"), rows.none()),
        ):  # fmt: skip
            of = dashboard(team, period, split).whole.of
            assert of["sessions"] == wanted.count()
            assert of["cost"] == sum(one.cost_microusd or 0 for one in wanted)


def test_small_slices_beyond_the_most_are_one_that_no_split_shows(
    team: Team, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(slices, "MOST", 3)
    many = dict(read_slices(merge_of(9)))
    assert list(many) == [slices.REST, ("a6", "", ""), ("a7", "", ""), ("a8", "", "")]
    assert many[slices.REST].of["sessions"] == sum(range(6))
    assert not Split(policy=slices.REST[2]).matches(slices.REST)
    Session.objects.for_team(team).update(tallied_version=-1)
    keep_totals(team)
    period = of_all(NOW - 100 * DAY, NOW)
    found = dashboard(team, period, Split(agent="agent-1")).whole.of
    assert 0 < found["unsplit"] <= 80 - found["sessions"]


def merge_of(many: int) -> str:
    rows = [((f"a{i}", "", ""), Sums(Counter(sessions=i))) for i in range(many)]
    return msgspec.json.encode(merged(rows)).decode()


def test_a_week_is_read_instead_of_its_days(team: Team):
    keep_totals(team)
    period = of_all(NOW - 100 * DAY, NOW)
    before = shown(team), dashboard(team, period).parts
    week = DayTotals.objects.filter(days=WEEK).order_by("day")[1]
    days = DayTotals.objects.filter(days=1, day__in=range(week.day, week.day + WEEK))
    assert len(days) == WEEK
    days.update(sums="{}", facets="{}", fullest="", costliest="")
    assert dashboard(team, period).parts == before[1]
    assert shown(team)[2] == before[0][2], "facets"
    Session.objects.filter(tally_day=week.day).update(tallied_version=-1)
    assert dashboard(team, period).parts != before[1], "a week with a day that changed is not read"


def test_hours_beside_each_other_are_one_condition(team: Team):
    keep_totals(team)
    since, until = NOW - 40 * HOUR - 1, NOW - 7
    found = kept(team, [(since, until)])
    assert len(found.hours) > 12
    days = [(day * DAY, (day + 1) * DAY) for day in sorted(found.days)]
    assert sorted([*found.but_days, *days]) == [
        (since, days[0][0]), *days, (days[-1][1], until)
    ]  # fmt: skip


@pytest.mark.parametrize("name", SORT_KEYS)
def test_every_order_of_the_list_has_an_index(team: Team, name: str):
    rows = Session.objects.for_team(team).annotate(key=SORT_KEYS[name])
    ordered = rows.order_by("-key", "-pk")[:50]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("SET LOCAL enable_sort = off")
    assert f"session_by_{name}" in ordered.explain()


def test_changed_sessions_are_found_by_an_index(team: Team):
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
    assert "session_due" in Session.objects.for_team(team).filter(day_totals.DUE).explain()


def test_policies_and_the_newest_reviews_are_found_by_indexes(team: Team):
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("SET LOCAL enable_sort = off")
            cursor.execute("SET LOCAL enable_bitmapscan = off")
    managed = Session.objects.for_team(team).filter(policy_version__isnull=False, demo=False)
    grouped = managed.order_by().values_list("policy_version").annotate(many=Count("*"))
    assert "session_policy" in grouped.explain()
    newest = ReviewItem.objects.for_team(team).order_by("-created", "-pk")
    assert "review_newest" in newest[:20].explain()


def test_due_days_are_asked_once_where_one_says_so_and_again_afterwards(team: Team):
    keep_totals(team)
    one = Session.objects.for_team(team).exclude(tally_day=None).first()
    assert one is not None
    with due_once():
        assert not due_days(team)
        Session.objects.filter(pk=one.pk).update(version=F("version") + 1)
        assert not due_days(team)
    assert due_days(team) == {one.tally_day}


def test_several_sums_are_added_up_as_one_by_one():
    parts = [
        Sums(Counter(a=1, b=2), Frequencies({3: 1, 5: 2}), Frequencies({1: 1})),
        Sums(Counter(b=3, c=4), Frequencies({5: 7}), Frequencies()),
    ]
    added = Sums()
    for part in parts:
        added.add(part)
    together = Sums.together(parts)
    assert together == added
    assert together.of["b"] == 5
    assert together.peaks.quantile(0.5) == 5
    assert parts[0].of == Counter(a=1, b=2), "the parts stay as they are"
