"""Dry run: how many places of stored sessions a team's rules would mask."""

from __future__ import annotations

from collections import Counter
from typing import Any

from compaction.context import wire
from sessions.actions.accounts import audit
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import JobOutcome, Running
from sessions.actions.masking.incoming import RuleSet
from sessions.models import Block, Job, Session, Team
from sessions.models.masking.masking import rules_of
from sessions.models.record.values import readable

KIND = "masking"
MOST_SESSIONS = 2_000
"""The newest sessions are searched."""
NAMED = 20
"""Sessions named by rule: the newest with a match."""
AT_ONCE = 200


def begin(team: Team, actor: audit.Actor) -> Job:
    """Ask for a dry run, unless one is under way."""
    audit.note(team, actor, "masking.dry_run", team.slug)
    return jobs.enqueue(team, KIND, {}, KIND)


def newest(team: Team) -> Job | None:
    """The team's newest dry run."""
    return Job.objects.filter(team=team, kind=KIND).order_by("-created").first()


def dry_run(running: Running) -> JobOutcome:
    """Run the `masking` job: count the places by rule, in how many sessions, and name some."""
    team = running.team
    masks = RuleSet(team.pk, rules_of(team.pk))
    rows = Session.objects.for_team(team).filter(erasing=None, content_erased=None)
    sessions = list(rows.order_by("-changed")[: MOST_SESSIONS + 1])
    more, sessions = len(sessions) > MOST_SESSIONS, sessions[:MOST_SESSIONS]
    found: dict[str, dict[str, Any]] = {
        rule.name: {"matches": 0, "sessions": 0, "named": []} for rule in masks.rules or ()
    }
    for done, session in enumerate(sessions):
        running.progress(done, len(sessions), "sessions")
        for name, many in _counted(session, masks).items():
            of = found.setdefault(name, {"matches": 0, "sessions": 0, "named": []})
            of["matches"] += many
            of["sessions"] += 1
            if len(of["named"]) < NAMED:
                of["named"].append(str(session.pk))
    return JobOutcome({"sessions": len(sessions), "more": more, "rules": found})


def _counted(session: Session, masks: RuleSet) -> dict[str, int]:
    """How many places of a session would be masked, by rule."""
    shas = list(Block.objects.filter(session=session).values_list("sha", flat=True))
    uses, order = Counter(shas), list(dict.fromkeys(shas))
    counts: Counter[str] = Counter()
    for start in range(0, len(order), AT_ONCE):
        for sha, data in readable(session.team_id, order[start : start + AT_ONCE]).items():
            masker = masks.masker()
            masks.block(masker, wire.decode(data))
            for name, many in masker.masked.items():
                counts[name] += many * uses[sha]
    return dict(counts)
