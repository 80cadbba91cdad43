"""Agreement between reviewers, and between reviewers and the fact ledger.

Uses finished items only: a figure that changed with the first of two blind reviews would reveal
something to the second reviewer.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from statistics import fmean
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import QuerySet

from sessions.models import PolicyVersion, Review, ReviewItem, Session, Team
from sessions.models.web.happened import StatementIn, happened_in
from sessions.models.web.statements import Given, given_uuid

FEWEST = 5
"""Double reviews below which agreement is unknown."""

FEWEST_FACTS = 10
"""Judged facts below which a share of them is unknown."""

ORDINAL = ("goal", "constraints", "state", "next")
NOMINAL = ("invention", "verdict")
PARTS = (*ORDINAL, *NOMINAL)

Delta = Callable[[Hashable, Hashable, Mapping[Any, float]], float]


def nominal(a: Hashable, b: Hashable, counts: Mapping[Any, float]) -> float:  # noqa: ARG001
    """Squared difference of two nominal values: 0 or 1."""
    return float(a != b)


def ordinal(a: Any, b: Any, counts: Mapping[Any, float]) -> float:
    """Squared difference of two ranks: the number of values between them."""
    low, high = min(a, b), max(a, b)
    between = sum(count for value, count in counts.items() if low <= value <= high)
    return (between - (counts[low] + counts[high]) / 2) ** 2


def alpha(units: Iterable[Sequence[Any]], delta: Delta) -> float | None:
    """Krippendorff's alpha of units, each a sequence of ratings.

    1 is full agreement, 0 is chance; None without pairs, or if all values are equal. After K.
    Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011).
    """
    coincidences: Counter[tuple[Any, Any]] = Counter()
    for values in units:
        for pair in permutations(values, 2):
            coincidences[pair] += 1 / (len(values) - 1)  # type: ignore[assignment]
    counts: defaultdict[Any, float] = defaultdict(float)
    for (value, _), amount in coincidences.items():
        counts[value] += amount
    total = sum(counts.values())
    observed = sum(amount * delta(a, b, counts) for (a, b), amount in coincidences.items())
    expected = sum(
        counts[a] * counts[b] * delta(a, b, counts) for a in counts for b in counts if a != b
    )
    return 1 - (total - 1) * observed / expected if expected else None


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement in double reviews: alpha and share of identical ratings, by part of the rubric.

    `known` is False with fewer than 5 double reviews; an alpha is None if all ratings are equal.
    """

    doubles: int
    alphas: dict[str, float | None]
    same: dict[str, float]

    @property
    def known(self) -> bool:
        """Whether there are enough double reviews."""
        return self.doubles >= FEWEST


@dataclass(frozen=True, slots=True)
class Reviewed:
    """Results of finished reviews: shares 0..1, mean scores 1..5; None without reviews."""

    reviews: int
    items: int
    verdicts: dict[str, int]
    means: dict[str, float]
    invents_nothing: float | None
    agreement: Agreement

    def share(self, verdict: str) -> float | None:
        """The share of reviews with that verdict."""
        return self.verdicts.get(verdict, 0) / self.reviews if self.reviews else None

    @property
    def shares(self) -> list[tuple[str, float | None]]:
        """Each verdict with its share."""
        return [(verdict, self.share(verdict)) for verdict in Review.Verdict.values]


class SubmittedReview(NamedTuple):
    """What agreement is computed from of a submitted review."""

    verdict: str
    scores: dict[str, int]


_AS_READ = ("item", "verdict", "scores")


def _submitted(items: QuerySet[Any]) -> QuerySet[Review]:
    """The submitted reviews of finished items."""
    finished = items.filter(finished__isnull=False).values("pk")
    given = Review.objects.filter(submitted__isnull=False, item__in=finished)
    return given.order_by("submitted", "pk")


def _by_item(rows: Iterable[tuple[UUID, str, dict[str, int]]]) -> list[list[SubmittedReview]]:
    found: dict[UUID, list[SubmittedReview]] = {}
    for item, verdict, scores in rows:
        found.setdefault(item, []).append(SubmittedReview(verdict, scores))
    return list(found.values())


def _finished(items: QuerySet[ReviewItem]) -> list[list[SubmittedReview]]:
    """The submitted reviews of each finished item."""
    return _by_item(_submitted(items).values_list(*_AS_READ))


def agreement_in(team: Team, since: int, until: int) -> Agreement:
    """The agreement of the finished reviews of compactions in the team's sessions of a time [since,
    until) in ms; looks only at those that wanted two or more."""
    return _agreement(_by_item(_DOUBLES.rows([(since, until)], team=team.pk)))


def _doubles(times: Sequence[tuple[Given, Given]]) -> QuerySet[Any, Any]:
    its = given_uuid("team")
    sessions = Session.objects.filter(happened_in(times), team_id=its)
    items = ReviewItem.objects.filter(team_id=its, wanted__gt=1)
    items = items.filter(revision__run__session__in=sessions)
    return _submitted(items).values_list(*_AS_READ)


_DOUBLES = StatementIn(_doubles)


def _value(review: SubmittedReview, part: str) -> Any:
    return review.verdict if part == "verdict" else review.scores[part]


def _agreement(found: list[list[SubmittedReview]]) -> Agreement:
    doubles = [reviews for reviews in found if len(reviews) > 1]
    if len(doubles) < FEWEST:
        return Agreement(len(doubles), {}, {})
    alphas: dict[str, float | None] = {}
    same: dict[str, float] = {}
    for part in PARTS:
        units = [[_value(review, part) for review in reviews] for reviews in doubles]
        alphas[part] = alpha(units, ordinal if part in ORDINAL else nominal)
        same[part] = fmean(len(set(values)) == 1 for values in units)
    return Agreement(len(doubles), alphas, same)


def agreement(team: Team) -> Agreement:
    """Agreement between the team's reviewers."""
    return _agreement(_finished(ReviewItem.objects.for_team(team).filter(wanted__gt=1)))


def reviewed(items: QuerySet[ReviewItem]) -> Reviewed:
    """Results of the finished reviews of these items."""
    found = _finished(items)
    reviews = [review for of_item in found for review in of_item]
    return Reviewed(
        reviews=len(reviews),
        items=len(found),
        verdicts=dict(Counter(review.verdict for review in reviews)),
        means={part: fmean(one.scores[part] for one in reviews) for part in ORDINAL}
        if reviews
        else {},
        invents_nothing=fmean(one.scores["invention"] for one in reviews) if reviews else None,
        agreement=_agreement(found),
    )


def of_version(version: PolicyVersion) -> Reviewed:
    """Results of reviews of compactions made by a policy version."""
    return reviewed(ReviewItem.objects.filter(revision__policy_version=version))


@dataclass(frozen=True, slots=True)
class LedgerCheck:
    """The ledger compared with reviewers, for one state.

    `suggested` counts facts the ledger gave that state and reviewers judged, `confirmed` those they
    agreed with, `said` all facts reviewers gave that state.
    """

    state: str
    suggested: int
    confirmed: int
    said: int

    @property
    def precision(self) -> float | None:
        """Share of the ledger's facts in this state that reviewers confirm; None below ten."""
        return self.confirmed / self.suggested if self.suggested >= FEWEST_FACTS else None

    @property
    def recall(self) -> float | None:
        """Share of the reviewers' facts in this state that the ledger found; None below ten."""
        return self.confirmed / self.said if self.said >= FEWEST_FACTS else None


def ledger_checks(team: Team) -> list[LedgerCheck]:
    """Compare the ledger with reviewers' marks, for each state that occurs."""
    reviews = Review.objects.filter(
        item__team=team, item__finished__isnull=False, submitted__isnull=False
    ).exclude(marks={})
    suggested: Counter[str] = Counter()
    confirmed: Counter[str] = Counter()
    said: Counter[str] = Counter()
    for review in reviews.select_related("item__revision__fact_ledger"):
        ledger = getattr(review.item.revision, "fact_ledger", None)
        states = {fact["key"]: fact["state"] for fact in ledger.facts} if ledger else {}
        for key, mark in review.marks.items():
            said[mark] += 1
            if key in states:
                suggested[states[key]] += 1
                confirmed[mark] += mark == states[key]
    order = ("kept", "retrievable", "lost", "unsupported")
    return [
        LedgerCheck(state, suggested[state], confirmed[state], said[state])
        for state in order
        if suggested[state] or said[state]
    ]
