"""Change a team's masking rules, and whether it masks what comes in and what is shown."""

from __future__ import annotations

from typing import get_args

from django.db import IntegrityError, transaction
from django.utils import timezone

from compaction.redaction.rules import MaskKind
from compaction.redaction.team_rules import MOST_RULES, BadRule, TeamRule, check
from sessions.actions.accounts import audit
from sessions.models import IncomingMasking, MaskingRule, Team

KINDS: tuple[str, ...] = get_args(MaskKind)
"""Names that a rule cannot have: what is masked anyway is counted by them."""


def add(team: Team, rule: TeamRule, actor: audit.Actor) -> MaskingRule:
    """Add a rule; it is in force at once. Raises BadRule."""
    _check(rule)
    with transaction.atomic():
        Team.objects.select_for_update(no_key=True).only("pk").get(pk=team.pk)
        _check_room(team, rule.name)
        made = _insert(team, rule, actor)
        audit.note(team, actor, "masking.added", rule.name, kind=rule.kind)
    return made


def change(row: MaskingRule, rule: TeamRule, actor: audit.Actor) -> MaskingRule:
    """Replace a rule in force by another. Raises BadRule."""
    _check(rule)
    with transaction.atomic():
        Team.objects.select_for_update(no_key=True).only("pk").get(pk=row.team_id)
        _end(row)
        _check_room(row.team, rule.name)
        made = _insert(row.team, rule, actor)
        was = {"was": row.name} if row.name != rule.name else {}
        audit.note(row.team, actor, "masking.changed", rule.name, kind=rule.kind, **was)
    return made


def remove(row: MaskingRule, actor: audit.Actor) -> None:
    """End a rule: what is stored masked stays so. Raises BadRule if it had ended."""
    with transaction.atomic():
        _end(row)
        audit.note(row.team, actor, "masking.removed", row.name, kind=row.kind)


def mask_incoming(team: Team, wanted: bool, actor: audit.Actor) -> bool:
    """Mask what comes in from now on, or no longer; return whether that is a change."""
    with transaction.atomic():
        now = timezone.now()
        running = IncomingMasking.objects.filter(team=team, ended=None)
        if wanted:
            try:
                with transaction.atomic():
                    IncomingMasking.objects.create(team=team, began=now)
            except IntegrityError:
                return False
        elif not running.update(ended=now):
            return False
        audit.note(team, actor, "masking.incoming", team.slug, on=wanted)
    return True


def show_masked(team: Team, wanted: bool, actor: audit.Actor) -> bool:
    """Show content masked from now on, or as it is stored; return whether that is a change."""
    with transaction.atomic():
        rows = Team.objects.filter(pk=team.pk).exclude(show_masked=wanted)
        if not rows.update(show_masked=wanted):
            return False
        audit.note(team, actor, "masking.shown", team.slug, on=wanted)
    team.show_masked = wanted
    return True


def masks_incoming(team: Team) -> bool:
    """Whether what comes in is masked before it is stored."""
    return IncomingMasking.objects.filter(team=team, ended=None).exists()


def _check(rule: TeamRule) -> None:
    check(rule)
    if rule.name in KINDS:
        raise BadRule("name", f"{rule.name} is masked without a rule. Use another name.")


def _check_room(team: Team, name: str) -> None:
    rows = MaskingRule.objects.filter(team=team, removed=None)
    if rows.filter(name=name).exists():
        raise BadRule("name", f"There is a rule {name}. Change it, or use another name.")
    if rows.count() >= MOST_RULES:
        raise BadRule("", f"A team has at most {MOST_RULES} rules. Remove one first.")


def _insert(team: Team, rule: TeamRule, actor: audit.Actor) -> MaskingRule:
    return MaskingRule.objects.create(
        team=team,
        name=rule.name,
        kind=rule.kind,
        text=rule.text,
        replacement=rule.replacement,
        by=actor.name[:150],
        added=timezone.now(),
    )


def _end(row: MaskingRule) -> None:
    in_force = MaskingRule.objects.filter(pk=row.pk, removed=None)
    if not in_force.update(removed=timezone.now()):
        raise BadRule("", "This rule is not in force any more. Load the page again.")
