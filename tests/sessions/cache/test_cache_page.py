"""The cache page: what breaks cost, what fixes would save, and how well forecasts hold."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from django.test import Client
from django.utils import timezone

from compaction.cache.causes import AVOIDABLE
from compaction.cache.uses import NAMES
from compaction.context.session import Call, Usage
from sessions.actions.accounts.teams import local_team
from sessions.actions.assessments.break_totals import hour_saved, keep_breaks
from sessions.models import Assessment, BreakTotals, Run, Session
from sessions.models.cache.causes import AVOIDABLE as AVOIDABLE_MEANS
from sessions.models.record.manifest import pack
from sessions.models.record.tail import Figures, judged
from sessions.views.cache.verdict import NOUNS
from sessions.views.dashboard.fixes import CAUSES, NO_FIX
from tests.sessions.pages import page_of, signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.store]

MODEL = "claude-sonnet-4-5"
"""$3 a million for input, 3.75 and 6 for writing for five minutes and an hour, 0.30 for reading."""


@pytest.fixture
def client() -> Client:
    return signed_in()


def card(kind: str, cost: int, step: int = 3, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "step": step, "title": f"{kind} at {step}", "tokens": 10_000,
            "cost_microusd": cost, "advice": "", "idle": 600_000, "ttl": 300_000,
            **more}  # fmt: skip


def made(cards: list[dict[str, Any]], hour_saved: int = 1, **columns: Any) -> Session:
    """An assessed session of now with these breaks, which cost $5, and what an hour's TTL would
    have saved in it."""
    now = int(timezone.now().timestamp() * 1000)
    session = Session.objects.create(
        team=local_team(), external_id=str(uuid4()),
        **{"ended_at": now, "step_count": 9, "usage_calls": 9, "cost_microusd": 5_000_000,
           "model": MODEL, "break_count": len(cards), "cache_read_tokens": 900,
           "uncached_tokens": 100, **columns},
    )  # fmt: skip
    figures = pack(msgspec.json.encode(Figures(causes=cards)))
    Run.objects.create(session=session, origin=Run.Origin.RECORDED, columns=figures)
    cards = judged(cards, hour_saved)
    keep_breaks(session, cards, priced=True)
    costs = [(one["kind"], one["cost_microusd"]) for one in cards]
    Assessment.objects.create(
        session=session, uncached_microusd=1, write_microusd=1, read_microusd=1, output_microusd=1,
        avoidable_microusd=sum(one["cost_microusd"] for one in cards if one["avoidable"]),
        hour_saved_microusd=hour_saved,
        unexplained_microusd=sum(cost for kind, cost in costs if kind == "unexplained"),
    )  # fmt: skip
    return session


def text_of(client: Client, query: str = "") -> str:
    return " ".join(page_of(client, f"/cache/{query}").text.split())


def test_every_cause_has_a_fix_or_says_why_not() -> None:
    assert NO_FIX.keys() | CAUSES.keys() == NAMES.keys()
    assert not NO_FIX.keys() & CAUSES.keys()
    assert NOUNS.keys() == AVOIDABLE


def test_the_verdict_adds_up_what_could_be_avoided(client: Client) -> None:
    made([card("ttl", 1_500_000), card("ttl", 250_000, 5), card("unexplained", 700_000)])
    made([card("model", 250_000), card("rewind", 90_000)])
    text = text_of(client)
    assert "$2.00 of $10.00 avoidable: 3 cache breaks, most by TTL." in text
    assert "20.0 % of spend. $0.70 more is unexplained and $0.090 more could not" in text
    assert AVOIDABLE_MEANS in text
    dashboard = page_of(client, "/dashboard/?range=30d")
    assert "cache breaks $2.00" in dashboard.text and AVOIDABLE_MEANS in dashboard.html
    assert "TTL expired $1.75 2 1 20.0k Use the 1-hour cache TTL" in text
    assert "Model switched $0.25 1 1 10.0k Switch models at task boundaries" in text


def test_breaks_are_split_by_agent_and_model_and_narrowed_by_cause(client: Client) -> None:
    one = made([card("ttl", 1_500_000)], agent="scout")
    made([card("model", 250_000)], agent="writer", model="m2")
    page = page_of(client, "/cache/?range=30d&agent=scout")
    assert "$1.50 of $5.00 avoidable: 1 cache break, by TTL." in " ".join(page.text.split())
    assert "writer" not in re.sub(r"<option.*?</option>", "", page.html, flags=re.S)
    page = page_of(client, "/cache/?range=30d&cause=ttl")
    worst = re.findall(r'<ol class="worst-breaks">.*?</ol>', page.html, re.S)[0]
    assert re.findall(r'href="(/sessions/[^"]+)"', worst) == [f"/sessions/{one.pk}/steps/3/"]
    assert 'href="?range=30d&amp;agent=writer"' in page.html
    assert "No break matches" in text_of(client, "?cause=images")


def test_a_saving_leads_to_the_breaks_that_it_avoids_the_costliest_first(client: Client) -> None:
    stays = made([card("ttl", 9_000_000)], hour_saved=-1)
    less = made([card("ttl", 200_000)])
    more = made([card("ttl", 1_500_000), card("model", 2_500_000, 4)])

    def listed(url: str) -> list[str]:
        html = page_of(client, url).html
        worst = re.findall(r'<ol class="worst-breaks">.*?</ol>', html, re.S)[0]
        return re.findall(r'href="/sessions/([^/]+)/', worst)

    links = page_of(client, "/cache/").links
    assert listed("/cache/" + links["TTL expired"]) == [str(more.pk), str(less.pk)]
    assert "TTL expired, avoidable only." in text_of(client, links["TTL expired"])
    assert listed("/cache/" + links["TTL expired, not avoidable"]) == [str(stays.pk)]
    shown = unescape(page_of(client, "/dashboard/").html)
    (fix,) = re.findall(r'href="(/cache/[^"]*cause=ttl[^"]*)"', shown)
    assert listed(fix) == [str(more.pk), str(less.pk)]


def test_a_column_leads_to_the_breaks_of_its_day_and_cause(client: Client) -> None:
    made([card("ttl", 1_500_000), card("unexplained", 500_000)])
    html = page_of(client, "/cache/").html
    today = f"{timezone.now():%Y-%m-%d}"
    assert f"?cause=ttl&amp;avoidable=1&amp;from={today}&amp;to={today}#worst" in html
    heights = dict(re.findall(r'class="cause-(ttl|unexplained)"[^>]*height="(\d+)"', html, re.S))
    assert heights == {"ttl": "750", "unexplained": "250"}


def test_calibration_compares_reads_and_is_unknown_without_a_report(client: Client) -> None:
    made([], forecast_calls=8, forecast_tokens=950, forecast_prompt_tokens=1_000,
         forecast_reported_tokens=900, forecast_off_tokens=70)  # fmt: skip
    made([], model="m2", cache_read_tokens=0)
    text = text_of(client)
    assert "7.0 % absolute error over 8 calls" in text
    assert f"{MODEL} Anthropic 8 90.0 % 95.0 % 7.0 % 0" in text
    assert "m2 unknown 0 unknown unknown unknown 1" in text


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?agent=nobody", "Nothing matches"),
        ("?from=2020-01-01", "Nothing in this range"),
        ("", "No avoidable cache breaks in 1 session."),
    ],
)
def test_nothing_matches_nothing_yet_and_nothing_to_fix(
    client: Client, query: str, said: str
) -> None:
    made([])
    assert said in text_of(client, query)


def test_without_reported_usage_nothing_is_known(client: Client) -> None:
    made([], usage_calls=0, cost_microusd=None)
    assert "Unknown: no session in this range reports cache use." in text_of(client)


def test_an_hour_saves_short_idles_and_costs_more_for_all_other_writes() -> None:
    calls = [Call(step, MODEL, 1_790_000_000_000, Usage(0, 0, 10_000, 0, 5)) for step in (1, 2, 3)]
    ttl = {"ttl": 300_000}
    short, long = card("ttl", 9, 2, idle=600_000, **ttl), card("ttl", 9, 3, idle=3_600_001, **ttl)
    # 10,000 tokens read instead of written, and 20,000 written for an hour.
    assert hour_saved(calls, [short, long]) == 34_500 - 2 * 22_500
    assert hour_saved(calls, []) == -3 * 22_500
    assert hour_saved([Call(1, MODEL, None, Usage(10, 0, 0, 10, 5))], []) is None
    assert hour_saved([Call(1, "nobody's", None, Usage(10, 0, 10, 0, 5))], []) is None


def test_totals_follow_the_cards() -> None:
    long = card("ttl", 8, 5, idle=3_600_001)
    session = made([card("ttl", 5), card("ttl", 6, 4), long, card("edit", 7)])
    names = ("cause", "avoidable", "breaks", "tokens", "cost_microusd")
    rows = BreakTotals.objects.order_by("cost_microusd").values_list(*names)
    assert list(rows) == [
        ("edit", True, 1, 10_000, 7), ("ttl", False, 1, 10_000, 8), ("ttl", True, 2, 20_000, 11)
    ]  # fmt: skip
    keep_breaks(session, judged([card("ttl", 5)], -1), priced=False)
    assert list(rows.all()) == [("ttl", False, 1, 10_000, None)]


def test_expired_ttls_are_listed_by_whether_they_are_avoidable(client: Client) -> None:
    """The session decides, so the agents' shares add up to the whole."""
    long = card("ttl", 400_000, 5, idle=39_060_000)
    made([card("ttl", 1_500_000), long], 90_000, agent="scout")
    made([card("ttl", 250_000)], -5_000_000, agent="writer")
    text = text_of(client)
    assert "$1.50 of $10.00 avoidable: 1 cache break, by TTL. 15.0 % of spend. $0.65 more" in text
    assert "TTL expired $1.50 1 1 10.0k Use the 1-hour cache TTL" in text
    assert "$0.090 1-hour TTL, only where it saves" in text
    assert "TTL expired, not avoidable $0.65 2 2 20.0k Keep the TTL" in text
    assert text.count("10.0k tokens written again, not avoidable") == 2
    assert "$1.50 of $5.00 avoidable" in text_of(client, "?agent=scout")
    assert "No avoidable cache breaks" in text_of(client, "?agent=writer")


@pytest.mark.parametrize("page", ["cache", "dashboard"])
def test_all_dates_begin_and_end_with_the_sessions(client: Client, page: str) -> None:
    for at in (1_763_700_000_000, 1_787_200_000_000):
        made([card("ttl", 1)], ended_at=at)
    found = " ".join(page_of(client, f"/{page}/?range=all").text.split())
    assert "Sessions from Nov 21, 2025 to Aug 20, 2026 (days in UTC)" in found
    assert "2 sessions" in found
