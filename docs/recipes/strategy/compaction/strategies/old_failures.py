"""Old failures: what failed some time ago becomes a stub."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.context.edits import Edit
from compaction.context.stubs import result_stub, stand_in
from compaction.proposals.plan import Proposal, View
from compaction.proposals.setting import setting
from compaction.proposals.strategy import Strategy


@dataclass(frozen=True, slots=True)
class OldFailures:
    """When the results of failed calls leave the context."""

    age: int = setting(
        10,
        "Remove a failed call after",
        "How long the result of a failed call stays in the context.",
        "Tool results",
        "steps",
        between=(1, 10_000),
        tries=(5, 10, 20),
        drawn=range(1, 5),
    )


def old_failures(view: View, parameters: OldFailures) -> Proposal:
    """Replace the results of failed calls by stubs, each when it is old enough."""
    edits, seen = [], view.mark["seen"]
    for position in view.arrivals[seen:]:
        block, now = view.originals[position], view.standing.get(position)
        if block.born + parameters.age > view.step or position >= view.guard.hot:
            break
        seen += 1
        if now is None or now.id != block.id or not block.error:
            continue
        text = result_stub(block, view.guard.groups.uses.get(block.tool_call or ""))
        if (tokens := view.means.count(text)) < block.tokens and view.guard.may_replace(block):
            stub = stand_in(block, text, tokens, "old_failures")
            edits.append(Edit("old_failures", (block.id,), stub, f"{block.tokens} tokens"))
    return Proposal(tuple(edits), {"seen": seen}, "batch", f"{len(edits)} old failures")


STRATEGY = Strategy(
    name="old_failures",
    order=65,
    title="Old failures",
    does="Results of failed calls become stubs after some steps.",
    event="offload",
    propose=old_failures,
    parameters=OldFailures,
    mark={"seen": 0},
)
