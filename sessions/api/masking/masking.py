"""Masking: a team's own rules, what they would mask, and what was masked when it came in."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router

from compaction.redaction.team_rules import BadRule, TeamRule, check, masked_by
from sessions.access import actor_of, require, session_of, team_to, teams_of
from sessions.actions.masking import dry_runs, rules
from sessions.api.jobs.jobs import job_asked
from sessions.api.jobs.shapes import JobAsked
from sessions.api.masking import shapes
from sessions.api.web.exchange import json_answer
from sessions.api.web.once import done_once
from sessions.api.web.problems import Refusal
from sessions.models import Job, MaskingRule, Team
from sessions.models.masking import counted

REPORTED = timedelta(days=30)

router = Router(tags=["Masking"])


def rule_of(wanted: shapes.MaskingRuleIn) -> TeamRule:
    """The rule that was asked for."""
    replacement = wanted.replacement or f"[{wanted.name}]"
    return TeamRule(wanted.name, wanted.kind, wanted.text, replacement)


def named_rule(request: HttpRequest, masking_rule_id: UUID) -> MaskingRule:
    """A rule in force that the requester may change. Raises Http404, NotAllowed."""
    rows = MaskingRule.objects.filter(team__in=teams_of(request), pk=masking_rule_id, removed=None)
    row = rows.select_related("team").first()
    if row is None:
        raise Http404("no such rule")
    require(request, row.team, "erase")
    return row


def describe(row: MaskingRule) -> dict[str, Any]:
    """A rule as JSON."""
    return {
        "id": str(row.pk),
        "name": row.name,
        "kind": row.kind,
        "text": row.text,
        "replacement": row.replacement,
        "by": row.by,
        "added": row.added.isoformat(),
    }


def describe_all(team: Team) -> dict[str, Any]:
    """What a team masks as JSON."""
    rows = MaskingRule.objects.filter(team=team, removed=None).order_by("name")
    found = counted.of_team(team, timezone.now() - REPORTED)
    return {
        "rules": [describe(row) for row in rows],
        "incoming": rules.masks_incoming(team),
        "show_masked": team.show_masked,
        "masked": [
            {"name": name, "places": places, "sessions": many} for name, places, many in found
        ],
    }


def describe_dry_run(job: Job | None) -> dict[str, Any]:
    """A dry run as JSON."""
    result = (job.result if job else None) or {}
    found = {name: result.get(name) for name in ("sessions", "more", "rules")}
    return {"job": str(job.pk) if job else None, "state": job.state if job else None, **found}


def _refused(error: BadRule) -> Refusal:
    return Refusal(422, "Not a masking rule", str(error), field=f"/{error.field}".rstrip("/"))


@router.get("masking", response=shapes.MaskingOut, url_name="masking")
def masking(request: HttpRequest) -> HttpResponse:
    """Get the masking rules, with what they masked, and whether what comes in or is shown is
    masked. A key needs the scope `erase`."""
    return json_answer(describe_all(team_to(request, "erase")))


@router.put("masking", response=shapes.MaskingOut, url_name="masking")
@done_once
def put_masking(request: HttpRequest, wanted: shapes.MaskingIn) -> HttpResponse:
    """Mask what comes in or what is shown: before it is stored (models of managed sessions see the
    masks, too), or what is stored; or no longer. A key needs the scope `erase`."""
    team = team_to(request, "erase")
    if wanted.incoming is not None:
        rules.mask_incoming(team, wanted.incoming, actor_of(request))
    if wanted.show_masked is not None:
        rules.show_masked(team, wanted.show_masked, actor_of(request))
    return json_answer(describe_all(team))


@router.post("masking-rules", response={201: shapes.MaskingRuleOut}, url_name="masking_rules")
@done_once
def add(request: HttpRequest, wanted: shapes.MaskingRuleIn) -> HttpResponse:
    """Add a masking rule, in force at once. A key needs the scope `erase`."""
    team = team_to(request, "erase")
    try:
        made = rules.add(team, rule_of(wanted), actor_of(request))
    except BadRule as error:
        raise _refused(error) from None
    return json_answer(describe(made), 201)


@router.post("masking/samples", response=shapes.SampleOut, url_name="masking_samples")
def sample(request: HttpRequest, wanted: shapes.MaskingSampleIn) -> HttpResponse:
    """Try a rule on a sample of up to 10,000 characters; nothing is stored. A key needs the scope
    `erase`."""
    team_to(request, "erase")
    rule, counts = rule_of(wanted), dict[str, int]()
    try:
        check(rule)
    except BadRule as error:
        raise _refused(error) from None
    masked = masked_by((rule,), wanted.sample, counts)
    return json_answer({"masked": masked, "matches": sum(counts.values())})


@router.get("masking/dry-runs", response=shapes.DryRunOut, url_name="masking_dry_runs")
def dry_run(request: HttpRequest) -> HttpResponse:
    """Get the newest dry run: counts by rule, never content. A key needs the scope `erase`."""
    return json_answer(describe_dry_run(dry_runs.newest(team_to(request, "erase"))))


@router.post("masking/dry-runs", response={202: JobAsked}, url_name="masking_dry_runs")
@done_once
def begin_dry_run(request: HttpRequest) -> HttpResponse:
    """Count what the rules would mask of stored sessions, the 2,000 newest, as a job. A
    key needs the scope `erase`."""
    return job_asked(dry_runs.begin(team_to(request, "erase"), actor_of(request)))


@router.put(
    "masking-rules/{uuid:masking_rule_id}", response=shapes.MaskingRuleOut, url_name="masking_rule"
)
@done_once
def change(
    request: HttpRequest, masking_rule_id: UUID, wanted: shapes.MaskingRuleIn
) -> HttpResponse:
    """Replace a masking rule by another, which gets a new id. A key needs the scope `erase`."""
    row = named_rule(request, masking_rule_id)
    try:
        made = rules.change(row, rule_of(wanted), actor_of(request))
    except BadRule as error:
        raise _refused(error) from None
    return json_answer(describe(made))


@router.delete(
    "masking-rules/{uuid:masking_rule_id}",
    response=shapes.MaskingRuleOut,
    url_name="masking_rule",
)
@done_once
def remove(request: HttpRequest, masking_rule_id: UUID) -> HttpResponse:
    """Remove a masking rule. What was stored masked stays masked. A key needs the scope `erase`."""
    row = named_rule(request, masking_rule_id)
    try:
        rules.remove(row, actor_of(request))
    except BadRule as error:
        raise Refusal(409, "Not in force", str(error)) from None
    return json_answer(describe(row))


@router.get("sessions/{path:session_id}/masked", response=shapes.MaskedOut, url_name="masked")
def masked(request: HttpRequest, session_id: str) -> HttpResponse:
    """Count what was masked before it was stored, by rule."""
    return json_answer({"masked": counted.of_session(session_of(request, session_id))})
