"""What happened elsewhere, as occurrences; `contextlab/live/followers.py` connects these receivers.

The demo's sessions notify no one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.urls import reverse

from compaction.cache import causes
from compaction.cache.uses import Break
from sessions.actions.accounts import chain
from sessions.actions.budgets import uses
from sessions.actions.notifications.announce import KIND, announce, announce_to, is_awaited
from sessions.actions.notifications.events import Occurrence
from sessions.actions.reviews.compaction_verdicts import is_missed
from sessions.actions.web.verdicts import counted
from sessions.figures import percent
from sessions.models import (
    Approval,
    AuditEntry,
    FactLedger,
    Job,
    Notification,
    NotificationChannel,
    Session,
    Use,
)
from sessions.models.record.sessions import SOURCE_LIVE


def approval_asked(instance: Approval, created: bool, **_: Any) -> None:
    """A call waits for approval."""
    session, use = instance.session, instance.use
    if not created or session.demo:
        return
    what = Occurrence(
        "approval",
        f"approval:{instance.pk}",
        f"use:{use.pk}",
        f"Approval waiting: {uses.called(use)}",
        reverse("budgets"),
        facts={
            "session": session.external_id,
            "call": instance.call,
            "asked_tokens": instance.tokens,
            "asked_microusd": instance.microusd,
        },
    )
    announce(session.team, what)


def budget_passed(use: Use, mark: int, session: Session, **_: Any) -> None:
    """A use passed its warning or its limit; `mark` in permille."""
    if session.demo:
        return
    share = use.account.share()
    at = "at its limit" if mark >= 1000 else "near its limit"
    what = Occurrence(
        "budget",
        f"budget:{use.pk}:{mark}:{use.used_tokens}:{use.used_microusd}",
        f"use:{use.pk}:{mark}",
        f"Budget {at}: {uses.called(use)}, {percent(share)} used",
        reverse("budgets"),
        mark // 10,
        {
            "session": session.external_id,
            "used_share": share,
            "used_tokens": use.used_tokens,
            "used_microusd": use.used_microusd,
        },
    )
    announce(session.team, what)


def rollout_changed(instance: AuditEntry, created: bool, **_: Any) -> None:
    """The guardrail paused a rollout, or one was rolled back; both have an audit entry."""
    paused = instance.action == "rollout.paused" and instance.via == AuditEntry.Via.RULE
    if not created or not (paused or instance.action == "rollout.rolled_back"):
        return
    rollout, detail = instance.detail["rollout"], instance.detail
    facts = {"policy": instance.named, "share_percent": detail.get("share")}
    if paused:
        facts["reason"] = detail.get("reason", "")
    else:
        facts |= {"former_policy": detail.get("before") or "none", "by": instance.actor}
    what = Occurrence(
        "guardrail" if paused else "rollback",
        f"audit:{instance.pk}",
        f"rollout:{rollout}",
        f"Guardrail broken: rollout of {instance.named} paused"
        if paused
        else f"Rollout of {instance.named} rolled back",
        reverse("rollout", args=[rollout]),
        facts=facts,
    )
    announce(instance.team, what)


def entry_added(instance: AuditEntry, created: bool, **_: Any) -> None:
    """An entry of the audit log was written."""
    if created and is_awaited(instance.team, "audit"):
        announce(instance.team, _entry(instance))


def send_entry(channel: NotificationChannel, entry: AuditEntry) -> bool:
    """Send an entry of the audit log to a channel, whatever its rules. Returns False if the channel
    has it."""
    return announce_to(channel, _entry(entry))


def _entry(row: AuditEntry) -> Occurrence:
    """An entry, as `contextlab audit export` writes it."""
    name = f"entry:{row.number}"
    title = f"{row.action}: {row.named or row.actor}"
    return Occurrence("audit", name, name, title, reverse("audit"), facts=chain.line_of(row))


def breaks_found(session: Session, breaks: Mapping[int, Break], **_: Any) -> None:
    """Calls of a live session broke the cache; by step. The same ones may be reported again."""
    if session.demo or session.source != SOURCE_LIVE or not is_awaited(session.team, "break"):
        return
    for step, broken in breaks.items():
        facts = {
            "session": session.external_id,
            "step": step,
            "written_again_tokens": broken.rewritten,
            "cost_microusd": broken.cost,
        }
        what = Occurrence(
            "break",
            f"break:{session.pk}:{step}",
            f"session:{session.pk}:{broken.cause}",
            f"Cache break at step {step}: {causes.title(broken)}",
            reverse("replay_step", args=[session.pk, step]),
            broken.cost,
            facts,
        )
        announce(session.team, what)


def ledger_kept(instance: FactLedger, **_: Any) -> None:
    """A fact ledger was computed: lost facts may have been needed again."""
    needed = sorted(fact["needed"] for fact in instance.facts if is_missed(fact))
    if not needed:
        return
    revision = instance.revision
    session = revision.run.session
    if session.demo or session.source != SOURCE_LIVE:
        return
    what = Occurrence(
        "lost",
        f"ledger:{revision.pk}:{len(needed)}",
        f"revision:{revision.pk}",
        f"{counted(len(needed), 'lost fact')} needed again after the summary at step "
        f"{revision.step}",
        reverse("revision", args=[session.pk, revision.run.origin, revision.number]),
        len(needed),
        {
            "session": session.external_id,
            "lost_facts_needed": len(needed),
            "first_needed_at_step": needed[0],
        },
    )
    announce(session.team, what)


def job_failed(job: Job, **_: Any) -> None:
    """A job failed. The failure of a delivery is a line in the delivery log."""
    problem = job.problem or {}
    if job.kind == KIND:
        Notification.objects.filter(
            pk=job.payload["notification"], state=Notification.State.WAITING
        ).update(state=Notification.State.FAILED, problem=problem.get("detail", "")[:300])
        return
    what = Occurrence(
        "job",
        f"job:{job.pk}:{job.version}",
        f"job:{job.dedupe or job.kind}",
        f"Job failed: {job.kind}",
        reverse("job", args=[job.pk]),
        facts={"problem": problem.get("title", "")},
    )
    announce(job.team, what)
