"""Filters of finished reviews, in the URL of the queue's page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import QueryDict

from sessions.actions.reviews.reservations import items_of
from sessions.figures import moment
from sessions.models import PolicyVersion, Review, ReviewItem, Team
from sessions.models.dashboard.facets import POLICY, facets
from sessions.models.web.periods import Period
from sessions.views.web.dates import Pairs, dates_of

CHOICES = ("verdict", "reason", "policy")
"""Query parameters that filter results, besides dates."""


@dataclass(frozen=True, slots=True)
class ReviewFilters:
    """Filters from the query string; unknown values are ignored."""

    verdict: str = ""
    reason: str = ""
    policy: str = ""
    demo: bool = False
    dates: Pairs = ()
    period: Period | None = None
    """The range in the URL, and the time it covers."""

    @classmethod
    def of(cls, query: QueryDict) -> ReviewFilters:
        """Parse the query string."""

        def known(name: str, values: Any) -> str:
            value = query.get(name, "")
            return value if value in values else ""

        policy = query.get("policy", "")
        dates, period, _ = dates_of(query)
        return cls(
            verdict=known("verdict", Review.Verdict.values),
            reason=known("reason", ReviewItem.Reason.values),
            policy=policy if policy.isdecimal() and len(policy) < 18 else "",
            demo=query.get("demo") == "1",
            dates=dates,
            period=period,
        )

    @property
    def active(self) -> bool:
        """Whether any filter is set."""
        return any((self.verdict, self.reason, self.policy, self.dates))

    def address(self, cursor: str = "") -> str:
        """The query string of these filters."""
        pairs = [*self.kept, *self.dates, ("cursor", cursor)]
        return "?" + urlencode([(name, value) for name, value in pairs if value])

    @property
    def kept(self) -> list[tuple[str, str]]:
        """The filters that choosing dates keeps."""
        found = [(name, value) for name in CHOICES if (value := getattr(self, name))]
        return [*found, ("demo", "1")] if self.demo else found

    def rows(self, team: Team) -> QuerySet[ReviewItem]:
        """Finished items that match."""
        rows = items_of(team, demo=self.demo).filter(finished__isnull=False)
        if self.verdict:
            rows = rows.filter(pk__in=Review.objects.filter(
                item__team=team, submitted__isnull=False, verdict=self.verdict
            ).values("item"))  # fmt: skip
        if self.reason:
            rows = rows.filter(reason=self.reason)
        if self.policy:
            rows = rows.filter(revision__policy_version=int(self.policy))
        if self.period:
            begin, end = moment(self.period.since), moment(self.period.until)
            rows = rows.filter(finished__gte=begin, finished__lt=end)
        return rows


def choices(team: Team, filters: ReviewFilters) -> list[dict[str, Any]]:
    """The filters as selects."""
    # Those of the sessions, as kept: to ask the items for theirs would read all of them.
    used = {name for name, *_ in facets(team, demo=filters.demo).get(POLICY, [])}
    versions = PolicyVersion.objects.filter(policy__team=team).select_related("policy")
    named = [(str(one.pk), str(one)) for one in versions.defer("document") if str(one) in used]
    listed: list[tuple[str, str, list[tuple[str, str]]]] = [
        ("verdict", "Any verdict", [(one, one) for one in Review.Verdict.values]),
        ("reason", "Any reason", [(one.value, one.label) for one in ReviewItem.Reason]),
        ("policy", "Any policy", named),
    ]
    return [
        {"name": name, "any": label, "values": values, "chosen": getattr(filters, name)}
        for name, label, values in listed
        if values
    ]
