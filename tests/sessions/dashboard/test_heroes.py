"""The four figures at the top of the dashboard: values, changes, trends and lines."""

from __future__ import annotations

from typing import Any

import pytest

from sessions.actions.accounts.teams import local_team
from sessions.models import Session
from sessions.models.cache.causes import CauseSums
from sessions.models.dashboard.costliest import UNSPENT, Spent
from sessions.models.dashboard.dashboards import dashboard
from sessions.models.tools.unused import AgentTools, UnusedTools
from sessions.models.web.periods import DAY
from sessions.views.dashboard.hero import avoidable, change, recall, spend, success
from sessions.views.dashboard.peak import _session_why, _shares
from sessions.views.web.sparklines import trend
from tests.sessions.dashboard.dashboards import WEEK, assessed, made
from tests.sessions.web.test_periods import ms

NOTHING = UnusedTools([], 0)


def unused(at: str, microusd: int, *, complete: bool = True) -> UnusedTools:
    agent = AgentTools("writer")
    agent.add(ms(at), {"basis": "measured", "used": [], "tools": {"search": (90, microusd)}})
    return UnusedTools([agent], 1, complete)


@pytest.mark.django_db
def test_each_figure_says_what_it_counts(five: dict[str, Session]) -> None:
    found = dashboard(local_team(), WEEK)
    one = spend(found, "/list", ", ≈$9 this month")
    assert (one.value, one.change, one.basis) == ("$2.00", "+100 %", "measured")
    assert one.line == "$2.00 per session, 1 session with a cost, ≈$9 this month"
    one = recall(found, "/list")
    assert (one.value, one.change, one.basis) == ("60.0 %", "", "estimated")
    assert one.line == (
        "6 of 10 uses of facts, in all steps of 1 session that lost text or had a policy"
    )
    one = success(found, "/list")
    assert (one.value, one.change, one.url) == ("100 %", "+100 points", "/list")
    assert one.line == "1 of 1 session with an outcome"


@pytest.mark.django_db
def test_what_nothing_reports_is_unknown(five: dict[str, Session]) -> None:
    Session.objects.update(outcome="", cost_microusd=None)
    found = dashboard(local_team(), WEEK)
    assert not success(found, "").known
    assert success(found, "").line == "3 sessions reported no outcome."
    assert not spend(found, "", "").known
    assert spend(found, "", "").line.startswith("No session in this range reports usage")


@pytest.mark.django_db
def test_avoidable_spend_is_breaks_losses_and_unused_tools(
    five: dict[str, Session],
) -> None:
    team = local_team()
    one = avoidable(dashboard(team, WEEK), NOTHING, NOTHING, "")
    assert (one.value, one.basis, one.change) == ("$0.30", "measured", "")
    assert one.line == "15.0 % of spend, for what went wrong: cache breaks $0.30"
    five["priced"].assessment.losses_microusd = 50_000
    five["priced"].assessment.save()
    assessed(five["earlier"], uncached_microusd=1, avoidable_microusd=100_000)
    found = dashboard(team, WEEK)
    now, before = unused("2026-11-18 01:00", 150_000), unused("2026-11-10 13:00", 25_000)
    one = avoidable(found, now, before, "")
    assert (one.value, one.basis, one.change) == ("$0.50", "estimated", "+300 %")
    assert one.line == (
        "25.0 % of spend, for what went wrong: cache breaks $0.30, losses ≈$0.050, unused "
        "tools ≈$0.15"
    )
    assert one.trend is not None
    partly = avoidable(found, unused("2026-11-18 01:00", 150_000, complete=False), before, "")
    assert (partly.value, partly.change) == ("$0.50", "+250 %"), "0.35 against 0.10"
    assert partly.note == "without unused tools"


@pytest.mark.django_db
def test_costs_outside_the_range_are_not_counted() -> None:
    made("one", "2026-11-17 12:00", cost_microusd=1_000_000, usage_calls=1)
    found = dashboard(local_team(), WEEK)
    agent = AgentTools("writer")
    for at in (WEEK.since - 1, WEEK.since, WEEK.until - 1, WEEK.until, WEEK.until + DAY):
        agent.add(at, {"basis": "measured", "used": ["b"], "tools": {"a": (9, 1), "b": (9, 50)}})
    assert avoidable(found, UnusedTools([agent], 5), NOTHING, "").value == "$0.000002"


@pytest.mark.parametrize(
    ("unit", "value", "before", "words"),
    [
        ("microusd", 112, 100, "+12 %"),
        ("microusd", 50, 200, "−75 %"),
        ("microusd", 100, 100, "no change"),
        ("microusd", 5, 0, "up from 0"),
        ("count", 1000, 100, "×10"),
        ("count", 999, 100, "+899 %"),
        ("count", 0, 0, "no change"),
        ("share", 0.5, 0.49, "+1 point"),
        ("share", 0.2, 0.5, "−30 points"),
        ("share", 0.2, None, ""),
        ("share", None, 0.2, ""),
    ],
)
def test_a_change_in_words(unit: Any, value: Any, before: Any, words: str):
    assert change(value, before, unit) == words


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ([], None),
        ([3], None),
        ([None, 4, None], None),
        ([0, 4], "M0 27h0L1 1.0"),
        ([4, None, 2], None),
        ([4, None, 2, 4, None, 1, None, 3], None),
        ([4, None, 2, 4], None),
        ([4, 2, None, 4, 2, 2, 4, None], "M0 1.0h0L1 14.0M3 1.0h0L4 14.0L5 14.0L6 1.0"),
        ([4, 2, None, None, None, None, 2, 4], None),
        ([0, 0], "M0 27.0h0L1 27.0"),
    ],
)
def test_a_trend_is_broken_where_nothing_is_known(values: list[float | None], path: str | None):
    drawn = trend(values)
    assert (drawn.path.replace("27h", "27.0h") if drawn else None) == (
        path.replace("27h", "27.0h") if path else None
    )


OTHERS = Spent(2, 2_000, 40, 4_000, 36_000, 0, 400)
"""Two sessions of 20 steps, each of 1,000 prompt tokens, 90 % read; 1,000 micro-dollars each."""


@pytest.mark.parametrize(
    ("steps", "cost", "used", "others", "why"),
    [
        (1, 90, (100, 900, 0, 10), UNSPENT, "1 step with m"),
        (20, 900, (2_000, 18_000, 0, 200), OTHERS, "20 steps with m"),
        (
            80,
            4_000,
            (8_000, 72_000, 0, 800),
            OTHERS,
            "80 steps with m. 4.0 times the steps (80, the others 20 on average)",
        ),
        (
            20,
            5_000,
            (10_000, 90_000, 0, 1_000),
            OTHERS,
            "20 steps with m. 5.0 times the prompt of a step (5.0k tokens, the others 1.0k)",
        ),
        (
            20,
            3_000,
            (14_000, 6_000, 0, 200),
            OTHERS,
            "20 steps with m. 3.0 times the cost of a prompt token (its cache: 30.0 % of its "
            "prompts were read, of the others 90.0 %)",
        ),
        (
            20,
            3_000,
            (2_000, 18_000, 0, 3_000),
            OTHERS,
            "20 steps with m. 3.0 times the cost of a prompt token (its output: 15.0 % of its "
            "prompts' size, the others 1.0 %)",
        ),
        (
            10,
            4_000,
            (1_000, 9_000, 0, 100),
            OTHERS,
            "10 steps with m. 8.0 times the cost of a prompt token (its model: the same tokens "
            "cost 8.0 times as much as in the others)",
        ),
        (
            54,
            10_500,
            (5_400, 124_200, 0, 1_200),
            OTHERS,
            "54 steps with m. 2.7 times the steps (54, the others 20 on average) and 2.4 times the "
            "prompt of a step (2.4k tokens, the others 1.0k)",
        ),
        (
            40,
            10_500,
            (12_000, 28_000, 0, 400),
            OTHERS,
            "40 steps with m. 5.2 times the cost of a prompt token (its model: the same tokens "
            "cost 3.0 times as much as in the others)",
        ),
    ],
)
def test_what_made_a_session_expensive(
    steps: int, cost: int, used: tuple[int, int, int, int], others: Spent, why: str
) -> None:
    uncached, read, write, output = used
    session = Session(
        step_count=steps,
        cost_microusd=cost,
        model="m",
        uncached_tokens=uncached,
        cache_read_tokens=read,
        cache_write_tokens=write,
        output_tokens=output,
    )
    said = _session_why(session, others, bound=False)
    over = (
        f"It cost {cost / 1_000:.1f} times as much as the 2 other sessions with a known cost "
        "($0.0010 on average): "
    )
    assert said.replace(over, "") == why
    if "times" in why:
        assert over in said
        many = _session_why(session, Spent(*(500 * one for one in others)), bound=True)
        assert f"up to {cost / 1_000:.1f} times as much as the newest 1,000 other" in many
        assert "with a known cost (≥ $0.0010 on average)" in many


def cause(kind: str, microusd: int | None, *, avoidable: bool = True) -> CauseSums:
    return CauseSums(kind, 1, 1, 9, microusd, 0 if microusd is None else 1, avoidable)


@pytest.mark.parametrize(
    ("avoidable", "others", "said"),
    [
        ([2], [], "$2.00 was avoidable, all of it by “client restarted”"),
        ([3, 1], [], "$4.00 was avoidable, most of it by “client restarted”"),
        ([3, 0], [], "$3.00 was avoidable, all of it by “client restarted”"),
        ([2, 2], [], "$4.00 was avoidable, the largest part of it by “client restarted”"),
        ([2], [3, 4], "$2.00 was avoidable, all of it by “client restarted”; $3.00 is unexplained; "
                      "$4.00 was not avoidable"),
        ([], [3, 0], "$3.00 is unexplained"),
    ],
)  # fmt: skip
def test_what_cache_breaks_cost_adds_up_to_its_parts(
    avoidable: list[int], others: list[int], said: str
) -> None:
    kinds = zip(("restart", "model"), avoidable, strict=False)
    causes = [cause(kind, cost * 1_000_000) for kind, cost in kinds]
    for kind, cost in zip(("unexplained", "rewind"), others, strict=False):
        causes.append(cause(kind, cost * 1_000_000, avoidable=False))
    assert _shares(causes) == said
