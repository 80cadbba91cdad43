"""The date control of lists: presets, and two days of one's own; in the URL as range, from, to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils import timezone

from sessions.models.web.periods import ALL, CALENDAR, BadPeriod, Period, asked_for

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

    @property
    def custom(self) -> bool:
        """Whether days are entered instead of a preset."""
        return bool(self.since or self.until)


def date_control(
    query: QueryDict,
    kept: Pairs,
    chosen: str,
    all_dates: tuple[str, str],
    wrong: BadPeriod | None = None,
) -> DateControl:
    """Return the control for a query; `all_dates` is the range of all dates ("" for none in the
    URL) with its label, `chosen` the range in effect."""
    named = [(all_dates[0], all_dates[1]), *PRESETS.items()]
    presets = [
        (label, "?" + urlencode([*([("range", name)] if name else []), *kept]), name == chosen)
        for name, label in named
    ]
    custom = "" if query.get("range") else "x"
    since, until = (query.get(name, "") if custom else "" for name in ("from", "to"))
    return DateControl(presets, since, until, kept, wrong)


def dates_of(query: QueryDict) -> tuple[Pairs, Period | None, BadPeriod | None]:
    """Parse the range of a list: its parameters, the period (None for all dates), and why it was
    refused."""
    pairs = [(name, text) for name in RANGE if (text := query.get(name, "").strip()[:40])]
    if not pairs or pairs[0] == ("range", ALL):
        return (), None, None
    try:
        now = int(timezone.now().timestamp() * 1000)
        return pairs, asked_for(dict(pairs), now, None, None), None
    except BadPeriod as error:
        return (), None, error
