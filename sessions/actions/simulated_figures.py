"""The figures of a session under a policy: the one computation behind the lab, the command and
stored runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import thread_time
from typing import Any

from compaction import tokens
from compaction.cache.run import CacheRun, Terms, estimate_cache, simulate_cache, terms_of
from compaction.cache.simulator import CacheUse
from compaction.facts.facts import FactIndex
from compaction.facts.recall import Need, Recall, recall
from compaction.outlines.outline import outline_of
from compaction.policies.policy import Policy
from compaction.prices import PACKAGE_READ_ON, micros, nanos
from compaction.session import Session as SessionValue
from compaction.simulate import Run as RunValue
from compaction.simulate import simulate
from compaction.summaries.extract import extractive
from sessions.models import Session
from sessions.models.lived import recorded_run
from sessions.models.values import recorded_session

ENGINE = 3
"""Raise it when the same records under the same policy give other figures than before: results of
older simulations are then computed anew and not taken over."""

WORST_KEPT = 12
"""Needs that a result names: first those that were lost, then retrievable ones, then named."""

NOT_COMPACTIONS = ("clear", "rewind", "setup")
"""Triggers of recorded revisions that summarised nothing."""


@dataclass(frozen=True)
class Recording:
    """A session read once, to be put under any number of policies.

    `lived` are its contexts as they were recorded; `permille` scales o200k counts to its counting.
    `counted` remembers o200k counts of texts that policies make, which are often the same.
    """

    value: SessionValue
    lived: RunValue
    permille: int
    counted: dict[str, int] = field(default_factory=dict)

    @cached_property
    def index(self) -> FactIndex:
        """Which blocks hold which fact."""
        return FactIndex(self.value.blocks)

    @cached_property
    def terms(self) -> Terms:
        """Prices and rules of the cache."""
        return terms_of(self.value)

    @cached_property
    def lived_uses(self) -> tuple[CacheUse, ...]:
        """The recorded contexts in the cache, by the rules of a simulation, which sees nothing
        that came after the last call: also not what that call wrote, where it was not reported."""
        last = len(self.lived.steps)
        seen = tuple(entry for entry in self.lived.entries if entry.from_step <= last)
        lived = replace(self.lived, entries=seen)
        return estimate_cache(lived, self.value.calls, replace(self.terms, frontier=False))

    @cached_property
    def lived_cost(self) -> int | None:
        """Micro-dollars of these, rounded once; None without a price."""
        price = self.terms.price
        if price is None or not self.lived_uses:
            return None
        return micros(sum(nanos(use.usage, price) for use in self.lived_uses))

    @property
    def lived_sent(self) -> int:
        """Tokens of all prompts as recorded, hidden part included, as we count them."""
        return self.lived.sent + self.value.hidden * len(self.lived.steps)

    def counter(self) -> Callable[[str], int]:
        """Counts in the session's counting."""

        def count(text: str) -> int:
            known = self.counted.get(text)
            if known is None:
                known = self.counted[text] = tokens.count(text)
            return (known * self.permille + 500) // 1000

        return count


def recording_of(session: Session) -> Recording:
    """A stored session, read whole. Raises MissingBlob, DamagedBlob."""
    value = recorded_session(session, window=session.window_taken)
    return Recording(value, recorded_run(session), session.token_ratio)


@dataclass(frozen=True, slots=True)
class Simulated:
    """A session under a policy: the run, what the cache made of it, what was needed later."""

    run: RunValue
    cache: CacheRun
    recall: Recall
    figures: dict[str, Any]
    worst: list[dict[str, Any]]


def figures_of(recording: Recording, policy: Policy) -> Simulated:
    """Put a session under a policy.

    Of its `figures`, tokens are in the session's counting with the hidden prompt in each of them
    (`hidden_tokens_sent` says how much that is),
    money is micro-dollars, null without a price. *Unmanaged* is the session as it was recorded,
    with the compactions and clearings of its log, priced by the same rules. `needs` and the four
    shares are needed-later recall, `read_back_tokens` what the agent would have to read again for
    what is only retrievable (both: docs/sources.md). `compactions` are revisions that made a
    summary. `dearest` is the revision whose broken cache cost most: {step, rewritten tokens,
    cost_microusd}, or null. `ms_per_step` is the CPU time of the fold, here and now.
    """
    value = recording.value
    began = thread_time()
    run = simulate(value, policy, recording.counter(), extractive, outline_of)
    taken = (thread_time() - began) * 1000
    cache = simulate_cache(run, value.calls, recording.terms)
    found = recall(value, run, recording.index)
    steps = len(run.steps)
    figures = {
        "steps": steps,
        "tokens_sent": run.sent + value.hidden * steps,
        "tokens_sent_unmanaged": recording.lived_sent,
        "hidden_tokens_sent": value.hidden * steps,
        "peak_tokens": _peak(run, value),
        "window": value.window,
        "cost_microusd": cache.cost,
        "cost_unmanaged_microusd": recording.lived_cost,
        "cache_read_share": cache.cache_read_share,
        "compactions": _compactions(run),
        "revisions": len(run.revisions),
        "read_back_tokens": found.read_back,
        "needs": found.needs,
        "in_place": found.in_place,
        "named": found.named,
        "retrievable": found.retrievable,
        "lost": found.lost,
        "dearest": _dearest(cache),
        "ms_per_step": round(taken / max(steps, 1), 3),
    }
    return Simulated(run, cache, found, figures, _worst(found.worst))


def unmanaged_figures(recording: Recording) -> dict[str, Any]:
    """The same of the session as it was recorded, as far as they apply."""
    value, run = recording.value, recording.lived
    compactions = [one for one in run.revisions if one.trigger not in NOT_COMPACTIONS]
    return {
        "steps": len(run.steps),
        "tokens_sent": recording.lived_sent,
        "peak_tokens": _peak(run, value),
        "window": value.window,
        "cost_microusd": recording.lived_cost,
        "cache_read_share": _read_share(recording.lived_uses),
        "compactions": len(compactions),
    }


def _peak(run: RunValue, value: SessionValue) -> int:
    return max((step.total for step in run.steps), default=0) + value.hidden


def _compactions(run: RunValue) -> int:
    return sum(
        any(edit.replacement is not None and edit.replacement.kind == "summary" for edit in edits)
        for edits in (revision.edits for revision in run.revisions)
    )


def _read_share(uses: Sequence[CacheUse]) -> float | None:
    prompt = sum(use.prompt for use in uses)
    return sum(use.read for use in uses) / prompt if prompt else None


def _dearest(cache: CacheRun) -> dict[str, int] | None:
    priced = [one for one in cache.revisions if one.cost]
    if not priced:
        return None
    most = max(priced, key=lambda one: one.cost or 0)
    return {"step": most.step, "rewritten": most.rewritten, "cost_microusd": most.cost or 0}


def _worst(needs: Sequence[Need]) -> list[dict[str, Any]]:
    """The worst needs: {step, fact, state, block, entry}; `entry` is the block in an address.

    A fact is content: it is for the row and for who may see the session, never for a log.
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
    """A text that differs whenever figures of the session may: other records, another counting,
    window or hidden prompt, another engine or price list. `head` is that of its recorded run."""
    said = [
        ENGINE,
        PACKAGE_READ_ON,
        session.message_count,
        session.block_count,
        session.step_count,
        head,
        session.usage_calls,
        session.fresh_tokens,
        session.cache_read_tokens,
        session.cache_write_tokens,
        session.output_tokens,
        session.token_ratio,
        session.hidden_tokens,
        session.window_taken,
        session.model,
    ]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()
