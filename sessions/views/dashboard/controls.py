"""The controls above figures: a range of time, and the agent, model or policy shown."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest

from sessions.actions.accounts.preferences import preferred
from sessions.models import Team
from sessions.models.dashboard.facets import facets
from sessions.models.dashboard.slices import Split
from sessions.models.web.periods import ALL, BadPeriod, Period
from sessions.views.web.dates import RANGE, date_control
from sessions.views.web.filters import QUERY_CHARS

CHOICES = 100
"""Most values offered to split by."""

SPLIT = ("agent", "model", "policy")


def controls(
    request: HttpRequest,
    team: Team,
    period: Period,
    split: Split,
    *,
    wrong: BadPeriod | None,
    **kept: str,
) -> dict[str, Any]:
    """The context of templates/dashboard/controls.html; `kept` are further query parameters that
    choosing a range or split keeps."""
    hidden = [] if wrong else range_of(request)
    shown = [(name, value) for name, value in {**kept, **asdict(split)}.items() if value]
    return {
        "dates": date_control(request.GET, shown, period.name, (ALL, "All"), wrong),
        "kept_range": hidden,
        "kept_more": [(name, value) for name, value in kept.items() if value],
        "split_by": _choices(team, split),
        "unfiltered_url": query(Split(), **dict(hidden)),
    }


def asked_range(request: HttpRequest) -> dict[str, str]:
    """The range in the URL, or the one that the person prefers."""
    asked = dict(range_of(request))
    usual = preferred(request).get("date_range")
    return asked or ({"range": usual} if usual else {})


def split_of(request: HttpRequest) -> Split:
    """The agent, model or policy that the URL names."""
    # PostgreSQL rejects NUL characters.
    return Split(*(request.GET.get(name, "").replace("\x00", "")[:QUERY_CHARS] for name in SPLIT))


def _choices(team: Team, split: Split) -> list[tuple[str, list[str], str]]:
    """The values that a team's sessions can be split by, the most frequent first."""
    found, made = facets(team), []
    for name in SPLIT:
        chosen = getattr(split, name)
        values = [value for value, *_ in found.get(name, [])[:CHOICES]]
        unlisted = [chosen] if chosen and chosen not in values else []
        if values or unlisted:
            made.append((name, [*unlisted, *values], chosen))
    return made


def query(split: Split, **more: str) -> str:
    """A query for a split and further parameters, without empty ones."""
    asked = {**more, **asdict(split)}
    return "?" + urlencode({name: value for name, value in asked.items() if value})


def range_of(request: HttpRequest) -> list[tuple[str, str]]:
    """The range in the URL, which choosing a split keeps."""
    return [(name, value) for name in RANGE if (value := request.GET.get(name, ""))]
