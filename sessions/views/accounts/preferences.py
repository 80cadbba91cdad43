"""A person's preferences: the form of the account page, and their effect on every request."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from sessions.access import by_key
from sessions.actions.accounts.preferences import preferred
from sessions.models import Preferences
from sessions.models.accounts.preferences import PREFERRED
from sessions.models.web.periods import CALENDAR, RANGES
from sessions.views.web.pages import links

RANGE_CHOICES = [
    ("", "7 days"),
    *((name, label) for name, (label, *_) in RANGES.items() if name != "7d"),
    *CALENDAR.items(),
]


@cache
def time_zones() -> list[tuple[str, str]]:
    """IANA names to choose from."""
    named = sorted(
        name for name in available_timezones() if "/" in name and not name.startswith("Etc/")
    )
    usual = timezone.get_default_timezone_name()
    return [("", f"As the server ({usual})"), ("UTC", "UTC"), *((name, name) for name in named)]


def first_pages() -> list[tuple[str, str]]:
    """The main pages, by route name."""
    named = [(name, link.title) for _, group in links() for link, name, _ in group]
    return [("", "As usual: the dashboard"), *named]


class PreferencesForm(forms.Form):
    """What a person can choose."""

    theme = forms.ChoiceField(
        required=False,
        choices=Preferences.Theme.choices,
        help_text="The button in the header changes it in one browser.",
    )
    time_zone = forms.ChoiceField(
        label="Time zone",
        required=False,
        choices=time_zones,
        help_text="Of dates and times, and of the days in date filters of lists. "
        "Days on the dashboard are added up in UTC.",
    )
    first_page = forms.ChoiceField(
        label="First page after sign-in", required=False, choices=first_pages
    )
    date_range = forms.ChoiceField(
        label="Date range",
        required=False,
        choices=RANGE_CHOICES,
        help_text="Of dashboard and cache.",
    )
    less_motion = forms.BooleanField(label="Reduce motion", required=False)

    def __init__(self, data: Any = None, row: Preferences | None = None) -> None:
        now = {name: getattr(row, name) for name in PREFERRED} if row else {}
        super().__init__(data, initial=now, auto_id="preferences-%s")


class Preferred:
    """Middleware that applies the time zone of the person signed in."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle a request."""
        try:
            return self.get_response(request)
        finally:
            timezone.deactivate()

    def process_view(self, request: HttpRequest, view: Any, *_: Any) -> None:
        """Activate the time zone, once `SignedIn` has loaded the session."""
        if by_key(request) or not getattr(view, "login_required", True):
            return
        if name := preferred(request).get("time_zone"):
            try:
                timezone.activate(ZoneInfo(name))
            except (ZoneInfoNotFoundError, ValueError):
                return
