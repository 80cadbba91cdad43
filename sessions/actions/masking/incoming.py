"""Mask what comes in before it is stored, and recognize what was stored under other rules.

Masks follow from the secrets, so that a history that is sent again is the same one. When rules
change, it is masked otherwise: the same message is recognized by its former digests, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import F
from django.utils import timezone

from compaction.redaction.team_rules import TeamRule
from sessions.importers import records
from sessions.models import IncomingMasking, MaskedCount, MaskingRule, Session
from sessions.models.masking.rule_sets import RuleSet
from sessions.models.web.statements import Statement, given_uuid

FORMER = 8
"""Former sets of rules by which stored messages are recognized, the newest."""


class IncomingMasks:
    """How a team's messages are stored now, and how they were before."""

    def __init__(self, now: RuleSet, former: Sequence[RuleSet]) -> None:
        self.now, self._former = now, former

    def stored(self, record: records.Message) -> tuple[records.Message, dict[str, int]]:
        """The message as it is stored now, and the number masked by rule."""
        counts: dict[str, int] = {}
        return self.now.masked(record, counts), counts

    def before(self, record: records.Message) -> Iterator[records.Message]:
        """The message as it may be stored since earlier, newest rules first."""
        for rules in self._former:
            yield rules.masked(record, {})


_PERIODS = Statement(lambda: IncomingMasking.objects.filter(team_id=given_uuid("team")))
_RULES = Statement(lambda: MaskingRule.objects.filter(team_id=given_uuid("team")))


def incoming(team: UUID) -> IncomingMasks | None:
    """How a team masks what comes in; None if it never did."""
    periods: list[IncomingMasking] = _PERIODS.rows(team=team)
    if not periods:
        return None
    rules: list[MaskingRule] = sorted(_RULES.rows(team=team), key=lambda row: (row.added, row.pk))
    times = {at for one in periods for at in (one.began, one.ended)}
    times |= {at for one in rules for at in (one.added, one.removed)}
    sets: list[tuple[TeamRule, ...] | None] = [None]
    for at in sorted(at for at in times if at is not None):
        found = _at(at, periods, rules)
        sets = [one for one in sets if one != found] + [found]
    now = sets.pop()
    former = sets[::-1][:FORMER]
    if None not in former and now is not None:
        former.append(None)
    return IncomingMasks(RuleSet(team, now), [RuleSet(team, one) for one in former])


def _at(
    at: datetime, periods: Iterable[IncomingMasking], rules: Iterable[MaskingRule]
) -> tuple[TeamRule, ...] | None:
    if not any(one.began <= at and (one.ended is None or at < one.ended) for one in periods):
        return None
    return tuple(
        row.rule for row in rules if row.added <= at and (row.removed is None or at < row.removed)
    )


def count_masked(session: Session, counts: Mapping[str, int]) -> None:
    """Add to what was masked in a session; within the transaction that stores it."""
    now = timezone.now()
    for name, many in sorted(counts.items()):
        rows = MaskedCount.objects.filter(session=session, name=name)
        if not rows.update(count=F("count") + many, at=now):
            MaskedCount.objects.create(
                team_id=session.team_id, session=session, name=name, count=many, at=now
            )
