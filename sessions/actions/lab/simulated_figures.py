"""The figures of a session under a policy: one computation for the lab, the command and stored
runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from time import thread_time
from typing import Any

from compaction.cache.uses import CacheUse
from compaction.facts.recall import Need, Recall, recall
from compaction.losses.feasibility import feasibility
from compaction.policies.policy import Policy
from compaction.prices.prices import PACKAGE_READ_ON
from compaction.simulation.charged import charged
from compaction.simulation.defined import Defined, defined
from compaction.simulation.recording import Recording, peak_of
from compaction.simulation.run import CacheRun, simulate_cache
from compaction.simulation.simulate import Run as RunValue
from sessions.actions.archives.unpack import open_all
from sessions.actions.record.measure import least_gap
from sessions.actions.reviews.losses import seen_run
from sessions.models import Run, Session
from sessions.models.record.lived import lived_run
from sessions.models.record.values import recorded_session

ENGINE = 10
"""Increment whenever the same records and policy give different figures, so that earlier results
are not reused."""

WORST_KEPT = 12
"""Number of needs stored with a result: lost ones first, then retrievable, then named."""

NOT_COMPACTIONS = ("clear", "rewind", "setup")
"""Triggers of recorded revisions that did not summarize."""


def recording_of(session: Session) -> Recording:
    """Read a stored session completely, counted as its usage shows. Raises MissingBlob,
    DamagedBlob."""
    open_all([session])
    learned = session.learned_ratio
    if learned is not None:
        session = copy(session)
        session.count_with(learned)
    value = recorded_session(session, window=session.window_taken)
    seen = seen_run(session)
    assert seen is not None, "a session that is simulated has a recorded run"
    lived = lived_run(session, seen)
    if learned is not None:
        totals = {step.step: step.total for step in lived.steps}
        prompts = {
            call.step: call.usage.opening.prompt for call in value.calls if call.usage is not None
        }
        hidden = least_gap((), prompts, totals)
        value, lived = replace(value, hidden=hidden), replace(lived, hidden=hidden)
    copied = bool(session.meta.get("copied_calls"))
    managed = seen.origin == Run.Origin.MANAGED
    return Recording(value, lived, session.token_ratio, copied=copied, managed=managed)


@dataclass(frozen=True, slots=True)
class Simulated:
    """A session under a policy: the run, its cache use, and needed-later recall."""

    run: RunValue
    cache: CacheRun
    recall: Recall
    figures: dict[str, Any]
    worst: list[dict[str, Any]]


def figures_of(recording: Recording, policy: Policy) -> Simulated:
    """Simulate a session under a policy and compute its figures.

    Tokens are in the session's counting, hidden prompt included (`hidden_tokens_sent` is its
    share); `definition_tokens_sent` are those of tool definitions in the log, null if it has none,
    `unused_definition_tokens_sent` of these the ones of tools that no step used: without them from
    the start, their cost would be saved. Money is micro-dollars, null without a price. The recorded
    baseline is what the model saw: the session as logged, with its own compactions and clearings,
    or its managed contexts if it ran under a policy, at what its calls reported (`cost_reported`),
    else priced by the same rules. Simulated costs are scaled to that
    (`Recording`). `cost_recorded_ttl_microusd` is its cost with the policy's TTL, so the rest of a
    saving is that of edits. `needs` and the four shares are needed-later recall; `read_back_tokens`
    is what the agent would have to read again for needs that are only retrievable (both:
    docs/sources.md). `edits_feasible` is the share of edits whose old text is in the context,
    `read_backs_microusd` what reading again all that was needed and not in context would add to the
    cost. `said` counts facts in the agent's own words that it had seen before, `said_in_context` is
    the share still in context. `compactions` counts revisions with a summary. `costliest` is the
    revision whose cache break cost most: {step, rewritten tokens, cost_microusd}, or null.
    `ms_per_step` is the measured CPU time of the fold.
    """
    value = recording.value
    began = thread_time()
    run = recording.run_under(policy)
    taken = (thread_time() - began) * 1000
    cache = simulate_cache(run, value.calls, recording.terms)
    found = recall(value, run, recording.index)
    figures = {
        "steps": len(run.steps),
        "tokens_sent": run.sent + run.preludes,
        "tokens_sent_recorded": recording.lived_sent,
        "hidden_tokens_sent": run.preludes,
        **_of_definitions(defined(value, run, cache.uses, recording.counter())),
        "peak_tokens": peak_of(run),
        "window": value.window,
        **_of_costs(recording, policy, cache, found),
        "cache_read_share": cache.cache_read_share,
        "compactions": _compactions(run),
        "revisions": len(run.revisions),
        "read_back_tokens": found.read_back,
        **_of_edits(recording, run),
        **_of_recall(found),
        "retrievable": found.retrievable,
        "lost": found.lost,
        "costliest": _costliest(recording, cache),
        "ms_per_step": round(taken / max(len(run.steps), 1), 3),
    }
    return Simulated(run, cache, found, figures, _worst(found.worst))


def _of_costs(
    recording: Recording, policy: Policy, cache: CacheRun, found: Recall
) -> dict[str, Any]:
    price, paid = recording.terms.price, recording.paid(cache.uses)
    again = charged(paid, found.readings, price) if price is not None else None
    return {
        "cost_microusd": recording.cost_of(cache.uses),
        "cost_recorded_microusd": recording.lived_cost,
        "cost_reported": recording.billed is not None,
        "cost_recorded_ttl_microusd": recording.lived_cost_under(policy),
        "read_backs_microusd": recording.scaled(again),
    }


def recorded_figures(recording: Recording) -> dict[str, Any]:
    """`lived_figures`, and `oracle_microusd`: what a policy that knows the future would have cost
    (`compaction.simulation.oracle`)."""
    return {**lived_figures(recording), "oracle_microusd": recording.oracle_cost}


def lived_figures(recording: Recording) -> dict[str, Any]:
    """The figures of the recorded baseline, as far as they apply."""
    value, run = recording.value, recording.lived
    found = recall(value, run, recording.index)
    compactions = [one for one in run.revisions if one.trigger not in NOT_COMPACTIONS]
    return {
        "steps": len(run.steps),
        "tokens_sent": recording.lived_sent,
        "peak_tokens": recording.lived_peak,
        "window": value.window,
        "cost_microusd": recording.lived_cost,
        "cost_reported": recording.billed is not None,
        "cache_read_share": _read_share(recording.lived_uses),
        "compactions": len(compactions),
        **_of_recall(found),
        "lost": found.retrievable + found.lost,
        **_of_edits(recording, run),
    }


def _of_edits(recording: Recording, run: RunValue) -> dict[str, Any]:
    found = feasibility(recording.edits, run)
    return {"edits": found.edits, "edits_feasible": found.share}


def _of_recall(found: Recall) -> dict[str, Any]:
    return {
        "needs": found.needs,
        "in_context": found.in_context,
        "named": found.named,
        "said": found.said,
        "said_in_context": found.said_in_context,
    }


def _of_definitions(tools: Defined) -> dict[str, Any]:
    return {
        "hidden_microusd": tools.hidden_microusd,
        "definition_tokens_sent": tools.tokens,
        "definitions_microusd": tools.microusd,
        "unused_definition_tokens_sent": tools.unused_tokens,
        "unused_definitions_microusd": tools.unused_microusd,
    }


def _compactions(run: RunValue) -> int:
    return sum(
        any(edit.replacement is not None and edit.replacement.kind == "summary" for edit in edits)
        for edits in (revision.edits for revision in run.revisions)
    )


def _read_share(uses: Sequence[CacheUse]) -> float | None:
    prompt = sum(use.prompt for use in uses)
    return sum(use.read for use in uses) / prompt if prompt else None


def _costliest(recording: Recording, cache: CacheRun) -> dict[str, int] | None:
    priced = [one for one in cache.revisions if one.cost]
    if not priced:
        return None
    most = max(priced, key=lambda one: one.cost or 0)
    cost = recording.scaled(most.cost) or 0
    return {"step": most.step, "rewritten": most.rewritten, "cost_microusd": cost}


def _worst(needs: Sequence[Need]) -> list[dict[str, Any]]:
    """The worst needs: {step, fact, state, block, entry}; `entry` names the block in URLs.

    A fact is content: store it and show it to members, but never log it.
    """
    return [
        {
            "step": need.step,
            "fact": need.fact,
            "state": need.state,
            "block": need.block,
            "entry": need.block.removeprefix("m").removesuffix(".0"),
        }
        for need in needs[:WORST_KEPT]
    ]


def state_of(session: Session, head: int) -> str:
    """A digest that changes whenever the session's figures may: with its records, counting, window,
    hidden prompt, the engine, or the price list. `head` is that of its recorded run."""
    said = [
        ENGINE,
        PACKAGE_READ_ON,
        session.message_count,
        session.block_count,
        session.step_count,
        head,
        session.usage_calls,
        session.uncached_tokens,
        session.cache_read_tokens,
        session.cache_write_tokens,
        session.output_tokens,
        session.learned_ratio or session.token_ratio,
        session.hidden_tokens,
        session.window_taken,
        session.model,
    ]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()
