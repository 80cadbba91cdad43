"""A recorded session, and all that its simulations share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from compaction import tokens
from compaction.cache.uses import CacheUse
from compaction.context.session import Session
from compaction.facts.facts import FactIndex
from compaction.losses.feasibility import EditIndex
from compaction.outlines.outline import outline_of
from compaction.policies.policy import Policy
from compaction.prices.billed import cost_of
from compaction.prices.prices import micros, nanos, price
from compaction.simulation.oracle import oracle
from compaction.simulation.run import Terms, estimate_cache, simulate_cache, terms_of
from compaction.simulation.simulate import Run, simulate
from compaction.summaries.extract import extractive


@dataclass(frozen=True)
class Recording:
    """A session read once, for simulation under any number of policies.

    `lived` holds the contexts that the model saw, `managed`: of a policy, whose breakpoints are
    ours; `permille` scales o200k counts to its counting. `counted` caches o200k counts of texts
    made by policies, which often repeat. `copied`: calls of another session are among its calls,
    without their usage, as that session paid for them.

    Costs count the calls that reported usage, or all if none did. The recorded contexts cost what
    those calls were billed; simulated costs are scaled by the bill over what the rules of a
    simulation give for the recorded contexts, so that both compare.
    """

    value: Session
    lived: Run
    permille: int
    counted: dict[str, int] = field(default_factory=dict)
    copied: bool = False
    managed: bool = False
    _lived_costs: dict[Terms, int | None] = field(default_factory=dict)

    @cached_property
    def index(self) -> FactIndex:
        """Index of the blocks that contain each fact."""
        return FactIndex(self.value.blocks)

    @cached_property
    def edits(self) -> EditIndex:
        """Index of the lines that edits replaced."""
        return EditIndex(self.value)

    @cached_property
    def terms(self) -> Terms:
        """Prices and cache rules."""
        return terms_of(self.value)

    @cached_property
    def lived_uses(self) -> tuple[CacheUse, ...]:
        """The recorded contexts priced by the rules of a simulation, which sees nothing after the
        last call, including that call's output if it was not reported."""
        return self._lived_under(self.terms)

    def _lived_under(self, terms: Terms) -> tuple[CacheUse, ...]:
        last = len(self.lived.steps)
        seen = tuple(entry for entry in self.lived.entries if entry.from_step <= last)
        lived = replace(self.lived, entries=seen)
        return estimate_cache(lived, self.value.calls, replace(terms, frontier=self.managed))

    @cached_property
    def billed(self) -> int | None:
        """Micro-dollars of the calls that reported usage, rounded once per call as everywhere; None
        if none did, or a model has no price."""
        costs = [cost_of(call, price) for call in self.value.calls if call.usage is not None]
        known = [micros(cost) for cost in costs if cost is not None]
        return sum(known) if costs and len(known) == len(costs) else None

    @cached_property
    def reported(self) -> bool:
        """Whether any call reported usage."""
        return any(call.usage is not None for call in self.value.calls)

    @cached_property
    def _paid(self) -> frozenset[int]:
        """Steps that costs count."""
        every = self.reported or self.copied
        calls = self.value.calls
        return frozenset(one.step for one in calls if one.usage is not None or not every)

    @cached_property
    def lived_cost(self) -> int | None:
        """Micro-dollars of the recorded contexts: as billed, or estimated if that is unknown; None
        without a price."""
        return self._rated(self.lived_uses) if self.billed is None else self.billed

    def lived_cost_under(self, policy: Policy) -> int | None:
        """Cost of the recorded contexts with a policy's TTL: what no edit has saved."""
        terms = self.terms.under(policy)
        if terms == self.terms:
            return self.lived_cost
        if terms not in self._lived_costs:
            self._lived_costs[terms] = self.cost_of(self._lived_under(terms))
        return self._lived_costs[terms]

    def cost_of(self, uses: Sequence[CacheUse]) -> int | None:
        """Micro-dollars of a simulated run, comparable with `lived_cost`; None without a price."""
        return self.scaled(self._rated(uses))

    def scaled(self, cost: int | None) -> int | None:
        """A cost by the rules of a simulation, scaled to the bill."""
        if cost is None or self.billed is None:
            return cost
        base = self._lived_rated
        return round(cost * self.billed / base) if base else None

    def paid(self, uses: Sequence[CacheUse]) -> tuple[CacheUse, ...]:
        """The uses that costs count."""
        return tuple(use for use in uses if use.step in self._paid)

    @cached_property
    def _lived_rated(self) -> int | None:
        return self._rated(self.lived_uses)

    def _rated(self, uses: Sequence[CacheUse]) -> int | None:
        """Micro-dollars by the rules of a simulation, rounded once."""
        rates, paid = self.terms.price, self.paid(uses)
        return micros(sum(nanos(use.usage, rates) for use in paid)) if rates and paid else None

    @cached_property
    def oracle_cost(self) -> int | None:
        """Micro-dollars of the oracle's run; None without a price."""
        run = oracle(self.value, self.index, self.edits, self.terms)
        if run is None:
            return None
        return self.cost_of(simulate_cache(run, self.value.calls, self.terms).uses)

    @cached_property
    def lived_peak(self) -> int:
        """Tokens of the largest recorded prompt: as reported, or counted if no call reported it."""
        reported = [call.usage.prompt for call in self.value.calls if call.usage is not None]
        return max(reported, default=0) or peak_of(self.lived)

    @property
    def lived_sent(self) -> int:
        """Tokens of all recorded prompts as we count them, hidden tokens included."""
        return self.lived.sent + self.value.hidden * len(self.lived.steps)

    def counter(self) -> Callable[[str], int]:
        """A function that counts tokens in the session's counting."""

        def count(text: str) -> int:
            known = self.counted.get(text)
            if known is None:
                known = self.counted[text] = tokens.count(text)
            return (known * self.permille + 500) // 1000

        return count

    def run_under(self, policy: Policy) -> Run:
        """The session simulated under a policy, with summaries of code."""
        return simulate(
            self.value, policy, self.counter(), extractive, outline_of, self.index.facts_of
        )


def peak_of(run: Run) -> int:
    """Tokens of the largest context of a run, as we count them."""
    return max((run.hidden + step.added + step.total for step in run.steps), default=0)
