"""Answer an append: the standing of the next prompt, advice, and notes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from compaction import tokens
from compaction.budget.budget import ContextFill, ContextLimits, budget_of, standing
from compaction.fold.state import EVEN
from compaction.policies.policy import InvalidPolicy, Policy, from_dict
from sessions.actions.budgets.spending import Settled
from sessions.actions.live.requests.pausing import RETRY_SECONDS, paused_text
from sessions.actions.record.numbering import Numbering, Taken
from sessions.models import Block, Job, Revision, Run, Session
from sessions.models.web.statements import Statement, given_int, given_uuid

NAMED_ORPHANS = 5

_TEXTS = {
    "ok": "There is room.",
    "warn": "The context is near its limit. Get the managed context before the next call.",
    "trigger": "The next call triggers a compaction. Get the managed context for it.",
    "over": "The context exceeds its limit. The next call needs the managed context.",
}

_SPENT = "A budget is nearly or fully used. Call `budgets/check` before the next call."


def standing_of(session: Session) -> ContextFill:
    """How the next prompt of a session compares with its policy's budget."""
    return standing(budget_for(session), session.used_tokens or 0, session.counted_tokens)


def budget_for(session: Session) -> ContextLimits:
    """The budget of a session's context; without a policy only the window limits it."""
    window = session.window_taken
    policy = policy_of(session)
    if policy is None:
        return ContextLimits(window)
    used = session.used_tokens or 0
    counted = session.counted_tokens if session.counted_tokens is not None else used
    beside = used - counted + session.hidden_tokens
    return budget_of(policy, window, beside)


def policy_of(session: Session) -> Policy | None:
    """The policy of a session; None without one, or if it cannot be read."""
    if session.policy_version is None:
        return None
    try:
        return _policy_of(json.dumps(session.policy_document))
    except InvalidPolicy:  # from another release; pages with many sessions must not fail
        return None


@lru_cache(maxsize=256)
def _policy_of(document: str) -> Policy:
    return from_dict(json.loads(document))


def note_use(session: Session, managed: Run | None, visible: int) -> None:
    """Update `used_tokens`: the expected size of the next prompt."""
    session.used_tokens = session.counted_tokens = session.hidden_tokens + visible
    if managed is not None and "counted" in managed.fold:
        since = _TOKENS_FROM.column(session=session.pk, position=managed.taken)
        session.counted_tokens = int(managed.fold["counted"]) + sum(map(session.scaled, since))
        scale = managed.fold.get("scale") or EVEN
        session.used_tokens = tokens.scaled(session.counted_tokens, scale)
    session.peak_tokens = max(session.peak_tokens, session.used_tokens)


_TOKENS_FROM = Statement(
    lambda: Block.objects.filter(
        session_id=given_uuid("session"), position__gte=given_int("position")
    ).values_list("tokens")
)


def answer(
    new: Numbering,
    managed: Run | None,
    settled: Settled,
    job: Job | None,
    notes: Sequence[str],
) -> dict[str, Any]:
    """The JSON answer to an append; `notes` precede our own."""
    session, fresh = new.session, new.fresh
    messages = [_message(session, one) for one in fresh]
    budget = standing_of(session)
    return {
        "appended": len(fresh),
        "known": new.known,
        "first_seq": fresh[0].seq if fresh else None,
        "last_seq": fresh[-1].seq if fresh else None,
        "recorded_revision": new.run.head,
        "messages": messages,
        "steps": session.step_count,
        "tokens": sum(message["tokens"] for message in messages),
        "budget": asdict(budget),
        "advice": _paused(session) or _advice(budget, settled),
        "policy": _policy(session, managed, due=budget.state in ("trigger", "over")),
        "job": str(job.pk) if job else None,
        "budgets": list(settled.budgets),
        "warnings": list(settled.warnings),
        "notes": [*notes, *_notes(fresh)],
    }


def _advice(budget: ContextFill, settled: Settled) -> dict[str, Any]:
    """The longer of the delays recommended by the window and by the budgets."""
    delay, text = budget.delay_ms, _TEXTS[budget.state]
    if settled.budgets and settled.delay_ms > delay:
        delay, text = settled.delay_ms, _SPENT
    return {"delay_ms": delay, "level": budget.state, "text": text, "retry_after": delay / 1000}


def _paused(session: Session) -> dict[str, Any] | None:
    """The advice to an agent that a person has paused."""
    if session.paused is None:
        return None
    wait = RETRY_SECONDS
    text = paused_text(session)
    return {"delay_ms": wait * 1000, "level": "paused", "text": text, "retry_after": float(wait)}


def _message(session: Session, taken: Taken) -> dict[str, Any]:
    return {
        "seq": taken.seq,
        "tokens": sum(session.scaled(block.tokens) for block in taken.blocks),
        "estimated": any(block.estimated for block in taken.blocks),
        "blocks": len(taken.blocks),
    }


def _policy(session: Session, managed: Run | None, *, due: bool) -> dict[str, Any]:
    version, head = session.policy_version, managed.head if managed else 0
    assert version is not None  # an append selects one for a session that has none
    last = _REVISION.first(run=managed.pk, number=head) if managed and head else None
    return {
        "name": str(version),
        "head": head,
        "due": due,
        "last": last
        and {
            "revision": last.number,
            "step": last.step,
            "trigger": last.trigger,
            "tokens_before": last.tokens_before,
            "tokens_after": last.tokens_after,
        },
    }


_REVISION = Statement(
    lambda: Revision.objects.defer("parameters").filter(
        run_id=given_uuid("run"), number=given_int("number")
    )
)


def _notes(fresh: list[Taken]) -> list[str]:
    """Notes on unusual input that was accepted."""
    notes = [
        f"Message {one.seq} from the user is empty."
        for one in fresh
        if one.message.record.role == "user"
        and all(block.type == "text" and not block.chars for block in one.blocks)
    ]
    results = (one for one in fresh if any(block.type == "tool_result" for block in one.blocks))
    orphans = [id for taken in results for id in taken.message.orphans]
    if not orphans:
        return notes
    named = ", ".join(id or "(without an id)" for id in orphans[:NAMED_ORPHANS])
    more = f" and {len(orphans) - NAMED_ORPHANS} more" if len(orphans) > NAMED_ORPHANS else ""
    return [*notes, f"These results belong to no known tool call: {named}{more}."]
