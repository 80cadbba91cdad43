"""The controls above figures: a range of time, and the agent, model or policy shown."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest

from sessions.actions.accounts.preferences import preferred
from sessions.models import Team
from sessions.models.dashboard.dashboards import SessionSpan
from sessions.models.dashboard.facets import facets
from sessions.models.dashboard.slices import Split
from sessions.models.web.periods import (
    ALL,
    CALENDAR,
    RANGES,
    USUAL,
    BadPeriod,
    Period,
    asked_for,
    ending_now,
)
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
        "whole_url": "" if period.name == ALL else query(split, **kept, range=ALL),
        "range_label": LABELS.get(period.name, "").lower(),
    }


LABELS = {name: label for name, (label, *_) in RANGES.items()} | CALENDAR
"""The label of each range that a person may prefer."""


@dataclass(frozen=True, slots=True)
class ShownRange:
    """The period of a page, the query parameters that name it, and why those of the URL were
    refused. `widened` names the usual range if all is shown because that has hardly any of the
    sessions whose cost is known: logs without times count on the day of their import."""

    period: Period
    asked: dict[str, str]
    wrong: BadPeriod | None = None
    widened: str = ""


def shown_range(request: HttpRequest, there: SessionSpan, now: int) -> ShownRange:
    """The range in the URL, or the one that the person prefers; all dates if the URL names none and
    that one has next to nothing to show."""
    named = dict(range_of(request))
    usual = preferred(request).get("date_range")
    asked = named or ({"range": usual} if usual else {})
    try:
        period = asked_for(asked, now, there.first, there.last)
        empty = there.last is not None and there.last < period.since
        if not named and (empty or (not usual and there.mostly_before(period.since))):
            wide = {"range": ALL}
            shown = asked_for(wide, now, there.first, there.last)
            return ShownRange(shown, wide, widened=LABELS[usual or USUAL].lower())
    except BadPeriod as error:
        return ShownRange(ending_now(USUAL, now), asked, error)
    return ShownRange(period, asked)


def begins(period: Period, there: SessionSpan) -> int:
    """Where a page says that its range begins, in ms: all dates at the first session, though their
    first part may begin earlier, on a Monday."""
    return max(period.since, there.first or 0) if period.name == ALL else period.since


def split_of(request: HttpRequest) -> Split:
    """The agent, model or policy that the URL names."""
    # PostgreSQL rejects NUL characters.
    return Split(*(request.GET.get(name, "").replace("\x00", "")[:QUERY_CHARS] for name in SPLIT))


def _choices(team: Team, split: Split) -> list[tuple[str, list[str], str]]:
    """The values that a team's sessions which count can be split by, the most frequent first."""
    found, made = facets(team), []
    for name in SPLIT:
        chosen = getattr(split, name)
        values = [value for value, _, _ in found.get(name, [])][:CHOICES]
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
