"""A cost that is only a lower bound: one definition, said on every page that prints the cost."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.utils import timezone

from sessions.models import Session
from sessions.models.record.sessions import COST_IS_BOUND
from tests.sessions.programs import Program
from tests.sessions.web.addresses import PAGES, PRIVATE
from tests.sessions.web.world import browser_of, by_browser, each

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]

COST = re.compile(r"(≥\s*|[Aa]t least )?\$[78]\.13\b")
"""The cost of a session that is known in part, alone or together with another."""

MARKUP = re.compile(r'(?s)<ctx-island data-name="chart".*?</ctx-island>|<[^>]*>')
"""Markup; and charts, whose title says it for all of their values."""
DAY = 86_400_000

PRINTED = {
    "sessions/",
    "live/",
    "dashboard/",
    "cache/",
    "sessions/<uuid:session_id>/compare/",
    "compare/<uuid:session_id>..<uuid:other_id>/",
}
"""Pages known to print the cost of a session."""


@pytest.mark.parametrize(
    "columns",
    [
        {"cost_microusd": None, "usage_calls": 1},
        {"usage_calls": 2},
        {"usage_calls": 1},
        {"usage_calls": 2, "cost_at_least": True},
    ],
)
def test_the_query_is_the_property_once_a_session_ended(
    world: dict[str, Any], columns: dict[str, Any]
):
    rows = Session.objects.filter(pk=world["session_id"])
    rows.update(**{"cost_microusd": 5, "step_count": 2, "outcome": "succeeded"} | columns)
    assert rows.filter(COST_IS_BOUND).exists() == rows.get().cost_is_bound


@pytest.mark.parametrize("columns", [{"usage_calls": 1}, {"cost_at_least": True}])
def test_every_page_that_prints_a_lower_bound_says_so(
    world: dict[str, Any], program: Program, columns: dict[str, Any]
):
    now = int(timezone.now().timestamp() * 1000)
    partly = Session.objects.get(pk=world["session_id"])
    other = Session.objects.create(
        team=program.team, external_id="other", cost_microusd=1_000_000, usage_calls=1,
        step_count=1, uncached_tokens=5, ended_at=now - DAY, title=str(partly),
    )  # fmt: skip
    Session.objects.filter(pk=partly.pk).update(
        **{"cost_microusd": 7_130_000, "usage_calls": partly.step_count, "ended_at": now,
           "uncached_tokens": 9, "version": partly.version + 1} | columns
    )  # fmt: skip
    browser, printed = browser_of(program.team), set()
    shown = [one for one in PRIVATE if one.method == "GET" and one.route in PAGES]
    for address in each(shown):
        for ids in (world, world | {"session_id": other.pk, "other_id": partly.pk}):
            answer = by_browser(browser, address, ids)
            found = COST.findall(MARKUP.sub("", str(getattr(answer, "content", b""), "utf-8")))
            assert all(found), (address.route, "prints the cost without a word")
            printed |= {address.route} if found else set()
    assert printed == PRINTED
    assert "Spend (at least) by cause" in browser.get("/dashboard/").content.decode()
