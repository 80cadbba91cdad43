"""Facts that a policy takes out of a context until it has grown to its limit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from compaction import tokens
from compaction.context.blocks import Block
from compaction.context.edits import Entry
from compaction.context.session import Call, Session
from compaction.facts.facts import facts_of
from compaction.facts.paths import normal
from compaction.losses.weighty import Weighty, named_later, weighty
from compaction.policies.policy import Policy
from compaction.simulation.simulate import simulate
from compaction.summaries.extract import extractive

After = Literal["retrievable", "lost"]

LATELY = 20
"""Steps within which a tool input had a fact that counts as used (our choice)."""


@dataclass(frozen=True, slots=True)
class FactAtRisk:
    """A fact that leaves: the last step at which a tool input had it (0 for
    none), the last block that shows it, about when that leaves, and how it can be had
    afterwards."""

    fact: str
    used: int
    block: str
    step: int
    leaves: int
    after: After


@dataclass(frozen=True, slots=True)
class Leaving:
    """What a policy takes out of a context until it has grown to its limit: the tokens by which
    its edits shrink it, and the facts that leave with them, likeliest to be needed first. `count`
    is of all that matter."""

    removed: int
    count: int
    facts: tuple[FactAtRisk, ...]


def leaving(
    session: Session, policy: Policy, steps: int, growth: int, permille: int, most: int = 5
) -> Leaving | None:
    """Simulate a session, and `steps` more calls, each after `growth` more tokens without a fact.

    None if the policy then removes nothing that is there now. Summaries are made by code.
    `permille` scales o200k counts to the session's counting. Linear in the session.
    """

    def count(made: str) -> int:
        return (tokens.count(made) * permille + 500) // 1000

    if not session.blocks or not session.calls:
        return None
    last = session.calls[-1].step
    run = simulate(_grown(session, steps, growth), policy, count, extractive)
    now = [one for one in run.entries if one.from_step <= last + 1 and _is_real(one)]
    gone = [one.block for one in now if one.to_step is not None and one.to_step > last]
    if not gone:
        return None
    stays = [one for one in run.entries if one.to_step is None and _is_real(one)]
    made = [one.block.tokens for one in stays if one.from_step > last]
    removed = sum(block.tokens for block in gone) - sum(made)
    context = _Context(stays, {one.block.id: one.to_step for one in now if one.to_step is not None})
    lately = named_later(one for one in session.blocks if one.born > last - LATELY)
    counted = weighty([block for block in gone if block.replaces is None], lately)
    risky = [found for one in counted if (found := context.risk_of(one)) is not None]
    risky.sort(key=lambda one: (one.after != "lost", -one.used))
    return Leaving(max(removed, 0), len(risky), tuple(risky[:most]))


GROWTH = "growth"
"""How the ids of blocks begin that only make a context grow."""


def _is_real(entry: Entry) -> bool:
    return not entry.block.id.startswith(GROWTH)


def _grown(session: Session, steps: int, growth: int) -> Session:
    """The session with calls to come, each with a block of `growth` tokens before it."""
    newest, last = session.blocks[-1], session.calls[-1]
    blocks, calls = list(session.blocks), list(session.calls)
    for number in range(1, steps + 1):
        step = last.step + number
        blocks.append(
            replace(
                newest, id=f"{GROWTH}{number}", position=newest.position + number,
                message=newest.message + number, born=max(step, newest.born), role="user",
                type="text", kind="other", tokens=max(growth, 1), chars=0, text="", sha="",
                call=None, tool_call=None, tool=None, file=None, error=False,
            )
        )  # fmt: skip
        calls.append(Call(step, session.model, last.at))
    return replace(session, blocks=tuple(blocks), calls=tuple(calls))


class _Context:
    """The facts that a context shows, the blocks that it refers to, and the steps by which others
    have left."""

    def __init__(self, entries: list[Entry], ends: dict[str, int]) -> None:
        self._ends = ends
        blocks = [one.block for one in entries]
        self._shown = _facts(blocks)
        self._refs = {ref for block in blocks for ref in block.refs}

    def risk_of(self, one: Weighty) -> FactAtRisk | None:
        """The fact as at risk; None if a block in the context still has it, if only in a stub."""
        if normal(one.fact) in self._shown:
            return None
        newest = one.holders[-1]
        referred = any(block.id in self._refs for block in one.holders)
        after: After = "retrievable" if referred else "lost"
        used = max((born - 1 for born in one.named_at), default=0)
        leaves = max(self._ends[block.id] for block in one.holders)
        return FactAtRisk(one.fact, used, newest.id, newest.born, leaves, after)


def _facts(blocks: list[Block]) -> set[str]:
    return {normal(fact) for block in blocks for fact in facts_of(block)}
