"""The date control of lists: presets, and two days of one's own; in the URL as range, from, to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, tzinfo
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils import timezone

from sessions.models.web.periods import ALL, CALENDAR, CUSTOM, BadPeriod, Period, asked_for

RANGE = ("range", "from", "to")
"""Query parameters of a range."""

PRESETS = {
    "today": CALENDAR["today"],
    "7d": "7 days",
    "30d": "30 days",
    "month": CALENDAR["month"],
    "last-month": CALENDAR["last-month"],
}

Pairs = Sequence[tuple[str, str]]
"""Query parameters, in order."""


@dataclass(frozen=True, slots=True)
class DateControl:
    """What the control shows: presets as (label, URL, whether chosen), two days, and what else the
    URL holds. `wrong` says why the days are refused."""

    presets: list[tuple[str, str, bool]]
    since: str
    until: str
    kept: Pairs
    wrong: BadPeriod | None = None
    zone: str = "UTC"

    @property
    def days(self) -> tuple[str, str]:
        """The two days as people read them."""
        return written_day(self.since or self.until), written_day(self.until or self.since)

    @property
    def custom(self) -> bool:
        """Whether days are entered instead of a preset."""
        return bool(self.since or self.until)


def written_day(text: str) -> str:
    """A day of the URL as people read it: Nov 17, 2026; as it stands if it is none."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return text
    return f"{day:%b} {day.day}, {day.year}"


def date_control(
    query: QueryDict,
    kept: Pairs,
    chosen: str,
    all_dates: tuple[str, str],
    wrong: BadPeriod | None = None,
    zone: str = "UTC",
) -> DateControl:
    """Return the control for a query; `all_dates` is the range of all dates ("" for none in the
    URL) with its label, `chosen` the range in effect, `zone` whose days they are."""
    named = [(all_dates[0], all_dates[1]), *PRESETS.items()]
    presets = [
        (label, "?" + urlencode([*([("range", name)] if name else []), *kept]), name == chosen)
        for name, label in named
    ]
    custom = query.get("range", "") in ("", CUSTOM)
    since, until = (query.get(name, "") if custom else "" for name in ("from", "to"))
    return DateControl(presets, since, until, kept, wrong, zone)


def current_zone() -> tzinfo:
    """The person's time zone."""
    return timezone.get_current_timezone()


def listed_dates(query: QueryDict, kept: Pairs, chosen: str) -> DateControl:
    """The control of a list, which begins with all dates."""
    wrong = dates_of(query)[2]
    zone = timezone.get_current_timezone_name()
    return date_control(query, kept, chosen, ("", "Any time"), wrong, zone)


def dates_of(query: QueryDict) -> tuple[Pairs, Period | None, BadPeriod | None]:
    """Parse the range of a list, in days of the person's time zone: its parameters, the period
    (None for all dates), and why it was refused."""
    pairs = [(name, text) for name in RANGE if (text := query.get(name, "").strip()[:40])]
    if not pairs or pairs[0] == ("range", ALL):
        return (), None, None
    try:
        now = int(timezone.now().timestamp() * 1000)
        return pairs, asked_for(dict(pairs), now, None, None, current_zone()), None
    except BadPeriod as error:
        return (), None, error
