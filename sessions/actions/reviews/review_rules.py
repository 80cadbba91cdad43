"""Rules that select compactions for review."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, fields

from django.db import transaction
from django.db.models import QuerySet

from sessions.actions.accounts import audit
from sessions.models import FactLedger, Membership, ReviewItem, ReviewRules, Team
from sessions.models.accounts.teams import ROLE_MAY
from sessions.models.record.replaced import REAL

Reason = ReviewItem.Reason

MOST_MINUTES = 240


class InvalidRules(ValueError):
    """Invalid review rules; `faults` maps each field to its error."""

    def __init__(self, faults: dict[str, str]) -> None:
        super().__init__(" ".join(faults.values()))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Rules:
    """The values of `ReviewRules`. Shares, `double` and `low_score` are percent."""

    share: int = 10
    low_score: int = 60
    after_effects: bool = True
    double: int = 10
    minutes: int = 20

    def __post_init__(self) -> None:
        faults = {
            name: "Enter a whole number from 0 to 100."
            for name in ("share", "low_score", "double")
            if not 0 <= getattr(self, name) <= 100
        }
        if not 1 <= self.minutes <= MOST_MINUTES:
            faults["minutes"] = f"Enter a whole number from 1 to {MOST_MINUTES}."
        if faults:
            raise InvalidRules(faults)


def rules_of(team: Team) -> Rules:
    """The team's review rules, or the defaults."""
    row = ReviewRules.objects.filter(team=team).first()
    return Rules(**{one.name: getattr(row, one.name) for one in fields(Rules)}) if row else Rules()


def save_rules(team: Team, rules: Rules, actor: audit.Actor) -> None:
    """Save the rules for future compactions; items already queued remain."""
    before = rules_of(team)
    values = {one.name: getattr(rules, one.name) for one in fields(Rules)}
    changed = {
        name: [getattr(before, name), value]
        for name, value in values.items()
        if getattr(before, name) != value
    }
    if not changed:
        return
    with transaction.atomic():
        ReviewRules.objects.update_or_create(team=team, defaults=values)
        audit.note(team, actor, "review_rules.changed", changed=changed)


def drawn(name: str, revision: int, percent: int) -> bool:
    """Whether a revision falls into a percentage sample: deterministic, by hash of its key."""
    digest = hashlib.sha256(f"{name}:{revision}".encode()).digest()
    return int.from_bytes(digest[:8]) % 10_000 < percent * 100


def picked(rules: Rules, revision: int, ledger: FactLedger) -> Reason | None:
    """Why the rules select a compaction, or None.

    Random selection comes first, so that "at random" is a fair sample of all compactions,
    independent of the other rules.
    """
    if drawn("share", revision, rules.share):
        return Reason.SHARE
    if ledger.score is not None and ledger.score < rules.low_score * 10:
        return Reason.LOW_SCORE
    if rules.after_effects and ledger.after_effects:
        return Reason.AFTER_EFFECTS
    return None


def wanted(rules: Rules, team: Team, revision: int) -> int:
    """How many people review it: two for the double-review share, if the team has two reviewers."""
    return 2 if drawn("double", revision, rules.double) and reviewers(team).count() > 1 else 1


def reviewers(team: Team) -> QuerySet[Membership]:
    """The members who may review."""
    roles = [role for role, rights in ROLE_MAY.items() if "review" in rights]
    return Membership.objects.filter(team=team, role__in=roles)


@dataclass(slots=True)
class Picked:
    """What the rules would have selected among the newest `looked` compactions, by reason."""

    looked: int = 0
    double: int = 0
    reasons: dict[Reason, int] = field(default_factory=dict)

    @property
    def together(self) -> int:
        """The total number selected."""
        return sum(self.reasons.values())


def would_pick(team: Team, rules: Rules, last: int = 100) -> Picked:
    """Apply the rules to the newest compactions that have a ledger."""
    rows = (
        FactLedger.objects.filter(revision__run__session__team=team, revision__run__origin__in=REAL)
        .only("score", "after_effects", "revision_id")
        .order_by("-revision_id")[:last]
    )
    found = Picked()
    for ledger in rows:
        found.looked += 1
        reason = picked(rules, ledger.revision_id, ledger)
        if reason is not None:
            found.reasons[reason] = found.reasons.get(reason, 0) + 1
            found.double += drawn("double", ledger.revision_id, rules.double)
    return found
