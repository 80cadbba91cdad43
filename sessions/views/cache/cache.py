"""The cache page of a team: what cache breaks cost, why, and what each fix would save."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET

from compaction.cache.rules import rules_of
from sessions.access import team_of
from sessions.actions.dashboard.day_totals import keep_totals
from sessions.models.cache.causes import (
    AVOIDABLE,
    Calibration,
    CauseSums,
    calibration_in,
    causes_in,
    name_of,
)
from sessions.models.dashboard.added_up import Slice
from sessions.models.dashboard.dashboards import dashboard, extent
from sessions.models.dashboard.day_totals import due_once
from sessions.models.dashboard.slices import REST, Split, slices_in
from sessions.models.dashboard.troubles import COSTLIEST, worst_breaks
from sessions.models.web.periods import HOUR, Period
from sessions.models.web.sums import Sums
from sessions.views.cache.columns import columns
from sessions.views.cache.verdict import verdict
from sessions.views.dashboard.controls import (
    SPLIT,
    begins,
    controls,
    query,
    shown_range,
    split_of,
)
from sessions.views.dashboard.fixes import EDITS_ALSO_SAVE, fix_of
from sessions.views.dashboard.links import sessions_url
from sessions.views.web.dates import RANGE
from sessions.views.web.demo_notice import demo_notice
from sessions.views.web.pages import Link, Page
from sessions.views.web.places import step_url

WORST = 10
"""Most breaks listed."""

ROWS = 50
"""Most agents or models listed."""

PROVIDERS = {
    "anthropic": "Anthropic",
    "openai": "OpenAI",
    "gemini": "Google",
    "prefix": "automatic",
    "none": "no cache",
}
"""Whose rules, in words; `automatic`: as other providers cache prefixes."""


@dataclass(frozen=True, slots=True)
class CauseRow:
    """A cause as a row: its sums, its fix, and what the fix would save in micro-dollars (None if
    unknown; negative if it would cost more). `note` says what the saving depends on."""

    sums: CauseSums
    fix: str
    why: str
    saved: int | None
    note: str
    url: str


@dataclass(frozen=True, slots=True)
class CacheRow:
    """The sessions of one agent or model; costs are in micro-dollars. `cost` is a lower bound if
    `short`, `avoidable` if `at_least`: an avoidable break has no known cost."""

    name: str
    url: str
    sessions: int
    cost: int | None
    short: bool
    avoidable: int | None
    breaks: int
    top: CauseSums | None
    at_least: bool
    hour: int | None
    read: float | None


@require_GET
@due_once()
def page(request: HttpRequest) -> HttpResponse:
    """Show the cache of the sessions in a range."""
    team = team_of(request)
    now = int(timezone.now().timestamp() * 1000)
    keep_totals(team)
    there = extent(team, 0)
    if not there.sessions:
        return redirect("start")
    shown = shown_range(request, there, now)
    period, wrong, asked = shown.period, shown.wrong, shown.asked
    split = split_of(request)
    cause = request.GET.get("cause", "")
    cause = cause if name_of(cause) else ""
    avoidable = {"1": True, "0": False}.get(request.GET.get("avoidable", ""))
    made = dashboard(team, period, split)
    slices = {
        one: sums
        for one, sums in slices_in(team, period).items()
        if not split or split.matches(one)
    }
    rows = [_row(asked, one, made.whole, split) for one in causes_in(made.whole)]
    context = {
        **demo_notice(request, team),
        "section": "cache",
        "period": period,
        "begins": begins(period, there),
        "wrong": wrong,
        "widened": shown.widened,
        "split": split,
        "cause": cause,
        "cause_name": _named(cause, avoidable),
        "hourly": period.size == HOUR,
        **controls(request, team, period, split, wrong=wrong, cause=cause),
        "sessions": made.whole.of["sessions"],
        "verdict": verdict(made.whole, [row.sums for row in rows]),
        "rows": rows,
        "columns": columns(made, period, split),
        "agents": _split_rows(slices, 0, "agent", split, asked),
        "models": _split_rows(slices, 1, "model", split, asked),
        "calibrations": _calibrations(slices),
        "calibration": calibration_in(made.whole),
        "worst": _worst(team, period, split, cause, avoidable),
        "worst_of": COSTLIEST,
        "all_causes_url": query(split, **asked) + "#worst",
        "avoidable_means": AVOIDABLE,
        "broken": made.whole.of["broken"],
        "broken_url": sessions_url(period, split, flags=("breaks",), sort="cost"),
        "not_assessed": made.whole.of["not_assessed"],
    }
    return render(request, "cache/cache.html", context, status=400 if wrong else 200)


def _row(asked: dict[str, str], one: CauseSums, whole: Sums, split: Split) -> CauseRow:
    fix, why = fix_of(one)
    saved, note = one.microusd if one.avoidable else None, "at most"
    if one.kind == "ttl" and one.avoidable:
        saved, note = (
            whole.of["hour_saved"],
            "1-hour TTL, only where it saves",
        )
    elif one.kind == "edit":
        saved, note = None, EDITS_ALSO_SAVE
    url = query(split, **asked, **one.asked) + "#worst"
    return CauseRow(one, fix, why, saved, note if one.avoidable else "", url)


def _split_rows(
    slices: dict[Slice, Sums], at: int, name: str, split: Split, asked: dict[str, str]
) -> list[CacheRow]:
    """The agents or models of a range, those with the most avoidable cost first."""
    made: dict[tuple[str, bool], Sums] = defaultdict(Sums)
    for one, sums in slices.items():
        made[one[at], one == REST].add(sums)
    rows = []
    for (value, rest), sums in made.items():
        of = sums.of
        prompt = of["uncached"] + of["read"] + of["write"]
        causes = causes_in(sums)
        can = [cause for cause in causes if cause.avoidable]
        short = any(cause.microusd is None or cause.at_least for cause in can)
        known = bool(of["split"] and (of["avoidable"] or not short))
        chosen = Split(**{**asdict(split), name: value})
        rows.append(
            CacheRow(
                "all others" if rest else value or "no name",
                "" if rest or not value else query(chosen, **asked),
                of["sessions"],
                of["cost"] if of["priced"] else None,
                bool(of["short"]),
                of["avoidable"] if known else None,
                sum(cause.breaks for cause in causes),
                can[0] if can else None,
                short,
                of["hour_saved"] if of["hour"] else None,
                of["read"] / prompt if prompt else None,
            )
        )
    rows.sort(key=lambda row: (-(row.avoidable or 0), -(row.cost or 0), row.name))
    return rows[:ROWS]


def _calibrations(slices: dict[Slice, Sums]) -> list[tuple[str, str, Calibration]]:
    """The provider whose rules are used, the model, and how well they hold, by prompt size."""
    made: dict[str, Sums] = defaultdict(Sums)
    for one, sums in slices.items():
        made["all others" if one == REST else one[1]].add(sums)
    found = [
        (_provider(model), model or "no name", calibration_in(sums)) for model, sums in made.items()
    ]
    return sorted(found, key=lambda one: (-one[2].prompt, one[1]))[:ROWS]


def _provider(model: str) -> str:
    """Whose rules forecast a model's cache."""
    rules = rules_of(model) if model else "unknown"
    return PROVIDERS.get(rules, rules)


def _named(cause: str, avoidable: bool | None) -> str:
    """The listed breaks in words; empty if all are."""
    which = {True: "avoidable", False: "not avoidable", None: ""}[avoidable]
    return ", ".join(filter(None, (name_of(cause), which)))


def _worst(
    team: Any, period: Period, split: Split, cause: str, avoidable: bool | None
) -> list[tuple[Any, str]]:
    return [
        (one, step_url(one.session, one.card["step"]))
        for one in worst_breaks(team, period, split, cause, avoidable, WORST)
    ]


PAGES = (
    Page(
        route="cache/",
        query=(*RANGE, *SPLIT, "cause", "avoidable"),
        view=page,
        name="cache",
        link=Link(38, "Cache", "cache", "g c", "cache", "Diagnose"),
        about="prompt cache, breaks by cause, cache breaks, TTL, cost over time, calibration",
    ),
)
