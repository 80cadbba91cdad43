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
from compaction.prices.prices import micros, nanos
from compaction.simulation.oracle import oracle
from compaction.simulation.run import Terms, estimate_cache, simulate_cache, terms_of
from compaction.simulation.simulate import Run, simulate
from compaction.summaries.extract import extractive


@dataclass(frozen=True)
class Recording:
    """A session read once, for simulation under any number of policies.

    `lived` holds its recorded contexts; `permille` scales o200k counts to its counting. `counted`
    caches o200k counts of texts made by policies, which often repeat.
    """

    value: Session
    lived: Run
    permille: int
    counted: dict[str, int] = field(default_factory=dict)
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
        return estimate_cache(lived, self.value.calls, replace(terms, frontier=False))

    @cached_property
    def lived_cost(self) -> int | None:
        """Cost of `lived_uses` in micro-dollars, rounded once; None without a price."""
        return self._cost_of(self.lived_uses)

    def lived_cost_under(self, policy: Policy) -> int | None:
        """Cost of the recorded contexts with a policy's TTL: what no edit has saved."""
        terms = self.terms.under(policy)
        if terms == self.terms:
            return self.lived_cost
        if terms not in self._lived_costs:
            self._lived_costs[terms] = self._cost_of(self._lived_under(terms))
        return self._lived_costs[terms]

    def _cost_of(self, uses: Sequence[CacheUse]) -> int | None:
        price = self.terms.price
        if price is None or not uses:
            return None
        return micros(sum(nanos(use.usage, price) for use in uses))

    @cached_property
    def oracle_cost(self) -> int | None:
        """Micro-dollars of the oracle's run; None without a price."""
        run = oracle(self.value, self.index, self.edits, self.terms)
        return simulate_cache(run, self.value.calls, self.terms).cost if run is not None else None

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
