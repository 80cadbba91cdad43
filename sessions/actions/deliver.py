"""Deliver: what a live agent sends enters the store, and is answered with where it now stands."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from compaction import tokens
from compaction.state import EVEN
from sessions.actions import openings, tend
from sessions.actions.append import first_words
from sessions.actions.conversation import Conversation, Incoming, known_of, memory_of
from sessions.actions.intake import Intake, Taken
from sessions.actions.live_sessions import (
    choose_for_new,
    fix_counting,
    learn_model,
    standing_of,
)
from sessions.actions.measure import reopen
from sessions.actions.once import AnotherRequest, Once, answer_of
from sessions.actions.reports import check_context, report_call
from sessions.actions.retries import check_retries
from sessions.actions.spending import Settled, settle, spent_before
from sessions.importers import records
from sessions.importers.delivered import Delivery, Unacceptable, delivery
from sessions.live import hint
from sessions.models import Job, Run, Session

__all__ = [
    "AnotherRequest",
    "Delivered",
    "Delivery",
    "Once",
    "Unacceptable",
    "deliver",
    "delivery",
    "report_call",
]

CREATED = 201

NAMED_ORPHANS = 5

_TEXTS = {
    "ok": "There is room.",
    "warn": "The context nears its limit: take the managed context before the next call.",
    "trigger": "The policy compacts the context at the next call: take the managed context for it.",
    "over": "The context is larger than its room: the next call needs the managed context.",
}


@dataclass(frozen=True, slots=True)
class Delivered:
    """What an append is answered: the JSON of the API, and whether it is the answer of a retry."""

    answer: dict[str, Any]
    again: bool = False


def deliver(
    session: Session,
    batch: Delivery,
    *,
    once: Once | None = None,
    now: int | None = None,
    notes: Sequence[str] = (),
) -> Delivered:
    """Append a batch in one transaction: rows, the answer to a retry, and the job that tends.

    All of it or nothing is stored; when this returns, it is committed. `now` (ms since the epoch;
    default: the clock) is the time of messages that state none; `notes` are answered before our
    own. Raises Unacceptable, and AnotherRequest for a key that was used before.
    """
    if known := _answered(session, once):
        return known
    _date(batch, now if now is not None else time.time_ns() // 1_000_000)
    incoming = _incoming(session, batch)
    try:
        return _in_one_go(session, batch, incoming, once, notes)
    except IntegrityError:
        # Another request of the same key was faster, or it has nothing to do with keys.
        if known := _answered(session, once):
            return known
        raise


def _answered(session: Session, once: Once | None) -> Delivered | None:
    stored = once.answered(session.team) if once else None
    return Delivered(answer_of(stored), again=True) if stored else None


def _date(batch: Delivery, now: int) -> None:
    for message in batch.messages:
        if message.at is None:
            message.at = now


def _incoming(session: Session, batch: Delivery) -> Incoming:
    """The batch, counted and packed as far as it seems to be new, with no transaction open."""
    runs = Run.objects.filter(session=session, origin=Run.Origin.RECORDED)
    stored = runs.values_list("fold", "session__message_count").first()
    # What we were given may have been loaded long ago.
    fold, session.message_count = stored or ({}, 0)
    incoming = Incoming(session, batch, tokens.counted)
    memory = memory_of(session, fold)
    incoming.prepare_new(memory, known_of(session, memory, incoming))
    return incoming


def _in_one_go(
    session: Session,
    batch: Delivery,
    incoming: Incoming,
    once: Once | None,
    notes: Sequence[str],
) -> Delivered:
    with transaction.atomic():
        locked = (
            Session.objects.select_for_update(of=("self",))
            .select_related("policy_version__policy")
            .get(pk=session.pk)
        )
        if known := _answered(locked, once):
            return known
        if locked.message_count != incoming.stored:
            # Somebody else appended meanwhile, perhaps the calls that this batch answers.
            incoming = Incoming(locked, batch, tokens.counted)
        check_context(locked, _contexts(batch))
        check_retries(locked, batch.messages)
        _begin(locked, batch)
        intake = Intake(locked, live=True)
        memory = memory_of(locked, intake.recorded.run.fold)
        Conversation(intake, memory).take(incoming)
        before = spent_before(intake.calls)
        intake.write()
        settled = settle(locked, before, timezone.now())
        served = _served(locked)
        _note_use(locked, served, memory.visible)
        job = _announce(locked, intake)
        answer = _answer(locked, intake, served, job)
        answer |= _spending(settled, answer["advice"])
        answer["notes"] = [*notes, *_notes(intake.fresh)]
        if once is not None:
            once.keep(locked.team, CREATED, answer)
    return Delivered(answer)


def _contexts(batch: Delivery) -> list[str]:
    return [one.context for one in batch.records if isinstance(one, records.Call) and one.context]


def _begin(session: Session, batch: Delivery) -> None:
    """What is settled before the first message: the model, how to count, the policy."""
    if batch.model and batch.model != session.model:
        learn_model(session, batch.model)
    if not session.message_count:
        fix_counting(session)
    if session.policy_version is None:
        choose_for_new(session)
    if not session.message_count:
        openings.fix(session)


def _served(session: Session) -> Run | None:
    runs = Run.objects.only("id", "fold", "taken", "head", "session_id")
    return runs.filter(session=session, origin=Run.Origin.SERVED).first()


def _note_use(session: Session, served: Run | None, visible: int) -> None:
    """Keep `used_tokens`: the prompt that the next call would send, as far as is known now."""
    session.used_tokens = session.counted_tokens = session.hidden_tokens + visible
    if served is not None and "counted" in served.fold:
        since = session.blocks.filter(position__gte=served.taken).values_list("tokens", flat=True)
        session.counted_tokens = int(served.fold["counted"]) + sum(map(session.scaled, since))
        scale = served.fold.get("scale") or EVEN
        session.used_tokens = tokens.scaled(session.counted_tokens, scale)
    session.peak_tokens = max(session.peak_tokens, session.used_tokens)


def _announce(session: Session, intake: Intake) -> Job | None:
    """Save the session under its next version, tell open pages, and ask for it to be tended."""
    if not intake.changed:
        return None
    if not session.title:
        session.title = first_words(intake.fresh)
    session.measured = False
    session.version += 1
    session.save(update_fields=_KEPT)
    hint(f"session:{session.pk}", session.version)
    hint(f"sessions:{session.team_id}", session.version)
    if intake.reopened is not None:
        reopen(session, intake.reopened)
    return tend.ask(session)


_KEPT = (
    *("model", "window", "title", "token_ratio", "token_basis"),
    *("policy_version", "policy_from", "rollout"),
    *("message_count", "block_count", "step_count", "turn_count", "tool_call_count"),
    *("error_count", "compaction_count", "used_tokens", "peak_tokens", "measured"),
    "counted_tokens",
    *("started_at", "ended_at", "changed", "version"),
)
"""Columns of a session that an append may change."""


# The answer


def _answer(
    session: Session, intake: Intake, served: Run | None, job: Job | None
) -> dict[str, Any]:
    fresh = intake.fresh
    messages = [_message(session, one) for one in fresh]
    budget = standing_of(session)
    return {
        "appended": len(fresh),
        "known": intake.known,
        "first_seq": fresh[0].seq if fresh else None,
        "last_seq": fresh[-1].seq if fresh else None,
        "messages": messages,
        "steps": session.step_count,
        "tokens": sum(message["tokens"] for message in messages),
        "budget": asdict(budget),
        "advice": {
            "delay_ms": budget.delay_ms,
            "level": budget.state,
            "text": _TEXTS[budget.state],
        },
        "policy": _policy(session, served, due=budget.state in ("trigger", "over")),
        "job": str(job.pk) if job else None,
    }


_SPENT = "A budget is nearly or wholly spent: ask `budgets/check` before the next call."


def _spending(settled: Settled, advice: dict[str, Any]) -> dict[str, Any]:
    """What the budgets of the session add, and the longer of both delays."""
    if settled.delay_ms > advice["delay_ms"]:
        advice = advice | {"delay_ms": settled.delay_ms, "text": _SPENT}
    advice = advice | {"retry_after": advice["delay_ms"] / 1000}
    told = {"budgets": list(settled.budgets), "warnings": list(settled.warnings)}
    return {"advice": advice} | told


def _message(session: Session, taken: Taken) -> dict[str, Any]:
    return {
        "seq": taken.seq,
        "tokens": sum(session.scaled(block.tokens) for block in taken.blocks),
        "estimated": any(block.estimated for block in taken.blocks),
        "blocks": len(taken.blocks),
    }


def _policy(session: Session, served: Run | None, *, due: bool) -> dict[str, Any]:
    head = served.head if served else 0
    last = served.revisions.filter(number=head).first() if served and head else None
    return {
        "name": str(session.policy_version),
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


def _notes(fresh: list[Taken]) -> list[str]:
    """What was taken as it is, and is odd."""
    notes = [
        f"Message {one.seq}, a user's, holds nothing."
        for one in fresh
        if one.message.record.role == "user"
        and all(block.type == "text" and not block.chars for block in one.blocks)
    ]
    orphans = [id for taken in fresh for id in taken.message.orphans]
    if not orphans:
        return notes
    named = ", ".join(id or "(without an id)" for id in orphans[:NAMED_ORPHANS])
    more = f" and {len(orphans) - NAMED_ORPHANS} more" if len(orphans) > NAMED_ORPHANS else ""
    return [*notes, f"No tool call is known that these results answer: {named}{more}."]
