"""Simulate: what a policy would have made of a recorded session, stored as a run of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from compaction import composition, tokens
from compaction.cache import CacheUse
from compaction.cache_run import CacheRun, estimate_cache, simulate_cache, terms_of
from compaction.extract import extractive
from compaction.outline import outline_of
from compaction.policy import Policy, from_dict
from compaction.recall import Recall, recall
from compaction.session import Session as SessionValue
from compaction.simulate import Run as RunValue
from compaction.simulate import simulate
from sessions.actions.attempts import Outcome, Refused, Running
from sessions.actions.figures import figures
from sessions.actions.measure import scaled_columns
from sessions.actions.policies import preset_version
from sessions.actions.runs import store_run
from sessions.live import hint
from sessions.models import Revision, Run, Session, delta, manifest
from sessions.models.lived import recorded_run
from sessions.models.values import recorded_session


def simulate_session(session: Session, preset: str) -> Run:
    """Simulate a preset over a stored session and store the run with its figures.

    Everything is computed with no transaction open. Raises KeyError for an unknown preset.
    """
    version = preset_version(session.team, preset)
    policy = from_dict(version.document)
    value = recorded_session(session, window=session.window_taken)
    unscaled: dict[str, int] = {}
    simulated = simulate(value, policy, _counter(session, unscaled), extractive, outline_of)
    terms = terms_of(value)
    cache = simulate_cache(simulated, value.calls, terms)
    lived = estimate_cache(recorded_run(session), value.calls, replace(terms, frontier=False))
    facts = recall(value, simulated)
    run = store_run(session, version, simulated, unscaled)
    uses = {use.step: use for use in cache.uses}
    run.figures = _sums(session, value, policy, simulated, cache, facts) | {
        "cost_recorded_microusd": _whole_cost(lived)
    }
    recited = {step.step: step.recited for step in simulated.steps}
    told = figures(session, run, value.calls, uses, recited)
    run.columns = manifest.pack(msgspec.json.encode(told))
    delta.keep_entries(session, run)
    run.save(update_fields=["figures", "columns", "entries_packed", "entries_key"])
    _note_paybacks(run, cache)
    session.refresh_from_db(fields=["version"])
    hint(f"session:{session.pk}", session.version)
    return run


def simulate_job(running: Running) -> Outcome:
    """The job kind `simulate`: payload {session, policy}; the result names the run."""
    session = Session.objects.for_team(running.team).filter(pk=running.payload["session"]).first()
    if session is None:
        raise Refused("The session is gone", "It was deleted meanwhile.", "Nothing to do.")
    running.progress(0, 1, "session")
    run = simulate_session(session, running.payload["policy"])
    running.progress(1, 1, "session")
    return Outcome({"session": str(session.pk), "run": str(run.pk)})


def _counter(session: Session, unscaled: dict[str, int]) -> Callable[[str], int]:
    """Counts in the session's counting, and notes the o200k count of each text it saw."""

    def count(text: str) -> int:
        known = unscaled.get(text)
        if known is None:
            known = unscaled[text] = tokens.count(text)
        return session.scaled(known)

    return count


def _trigger_tokens(policy: Policy, value: SessionValue) -> int | None:
    """Tokens of prompt at which a policy compacts, for the line on the timeline."""
    for step in policy.steps:
        share = getattr(step.parameters, "trigger", None)
        if share is not None:
            budget = getattr(step.parameters, "budget", 0)
            # A budget is for the conversation alone; the line is drawn on whole prompts.
            return int(share * (budget or value.window - policy.kept_free(value.window))) + (
                value.hidden if budget else 0
            )
    return None


def _sums(
    session: Session,
    value: SessionValue,
    policy: Policy,
    simulated: RunValue,
    cache: CacheRun,
    facts: Recall,
) -> dict[str, Any]:
    hidden = value.hidden * len(simulated.steps)
    return {
        "basis": "simulated",
        "tokens_sent": simulated.sent + hidden,
        "tokens_sent_recorded": _sent_as_recorded(session, value, hidden),
        "tokens_sent_measured": session.usage_calls == session.step_count,
        "peak_tokens": max((step.total for step in simulated.steps), default=0) + value.hidden,
        "cost_microusd": cache.cost,
        "cost_unmanaged_microusd": cache.unmanaged_cost,
        "cache_read_share": cache.cache_read_share,
        "needs": facts.needs,
        "in_place": facts.in_place,
        "named": facts.named,
        "retrievable": facts.retrievable,
        "lost": facts.lost,
        "revisions": len(simulated.revisions),
        "refusals": len(simulated.refusals),
        "trigger_tokens": _trigger_tokens(policy, value),
        "window": value.window,
        "window_assumed": session.window is None,
    }


def _sent_as_recorded(session: Session, value: SessionValue, hidden: int) -> int:
    """Prompt tokens of all calls: as reported, or counted by us where any call reported none."""
    if session.usage_calls == session.step_count:
        return sum(call.usage.prompt for call in value.calls if call.usage)
    recorded = Run.objects.get(session=session, origin=Run.Origin.RECORDED)
    columns = scaled_columns(session, manifest.columns(recorded))
    return sum(composition.totals(composition.by_step(columns, session.step_count))) + hidden


def _whole_cost(uses: Sequence[CacheUse]) -> int | None:
    """What the recorded contexts cost by the rules of the simulation, so that both compare."""
    costs = [use.cost for use in uses]
    return None if not costs or None in costs else sum(cost or 0 for cost in costs)


def _note_paybacks(run: Run, cache: CacheRun) -> None:
    rows = {row.number: row for row in run.revisions.all()}
    for payback in cache.revisions:
        row = rows.get(payback.revision)
        if row is not None:
            row.cache_rewritten = payback.rewritten
            row.cost_microusd = payback.cost
            row.payback_steps = payback.steps
    Revision.objects.bulk_update(
        rows.values(), ["cache_rewritten", "cost_microusd", "payback_steps"], batch_size=200
    )
