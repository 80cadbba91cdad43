"""The verdict on two sessions: which costs less, which kept more, and where they part."""

from __future__ import annotations

from collections.abc import Mapping

from compaction.context.align import AlignedOp
from sessions.actions.replay.comparisons import ComparedFigure, Comparison
from sessions.actions.web.verdicts import EventVerdict, counted
from sessions.figures import money, percent


def comparison_verdict(found: Comparison) -> EventVerdict:
    """Say which session costs less and keeps more, and where they part."""
    cost, recall, steps = map(found.figure, ("cost", "recall", "steps"))
    side, said = _of_cost(cost)
    if not side:
        said = "; ".join(filter(None, [_of_steps(steps), said]))
    kept = _of_recall(recall, side)
    sentence = f"{said}{kept}; {_parting(found)}."
    return EventVerdict("neutral", sentence[:1].upper() + sentence[1:], _counts(found))


def _of_cost(cost: ComparedFigure) -> tuple[str, str]:
    """The cheaper side, empty without a known difference, and what is known of the costs."""
    a, b = cost.a, cost.b
    if a is None and b is None:
        return "", "the cost of both is unknown"
    if a is None or b is None or any(cost.at_least):
        parts = [
            f"{side} costs {'at least ' if least else ''}{money(round(value))}"
            if value is not None
            else f"the cost of {side} is unknown"
            for side, value, least in (("A", a, cost.at_least[0]), ("B", b, cost.at_least[1]))
        ]
        return "", " and ".join(parts)
    if a == b:
        return "", f"both cost {money(round(a))}"
    side, less, more = ("A", a, b) if a < b else ("B", b, a)
    return side, f"{side} costs {percent(1 - less / more)} less (−{money(round(more - less))})"


def _of_steps(steps: ComparedFigure) -> str:
    a, b = int(steps.a or 0), int(steps.b or 0)
    return f"both take {counted(a, 'step')}" if a == b else f"A takes {counted(a, 'step')}, B {b:,}"


def _of_recall(recall: ComparedFigure, side: str) -> str:
    """What the side named in the sentence kept, against the other; it may name none."""
    if recall.a is None or recall.b is None:
        return ""
    own, other = (recall.b, recall.a) if side == "B" else (recall.a, recall.b)
    if percent(own) == percent(other):
        return f"; both keep ≈{percent(own)} of needed facts in context"
    who = " and" if side else "; A"
    return f"{who} keeps ≈{percent(own)} of needed facts in context against ≈{percent(other)}"


def _parting(found: Comparison) -> str:
    if found.parting is None and found.runs:
        return "their contexts are the same at every step"
    if found.parting is None:
        reworded = found.counts["reworded"]
        return f"they {'make the same calls' if reworded else 'do the same'} at every step"
    row, rest = found.rows[found.parting], found.rows[found.parting :]
    if row.a is not None and row.b is not None and row.a != row.b:
        return f"they part at step {row.a} of A and step {row.b} of B"
    if found.parting and {one.op for one in rest} in ({"a"}, {"b"}):
        side, step = ("B", row.b) if row.a is None else ("A", row.a)
        return f"they do the same until {side} goes on at step {step}"
    return f"they part at step {row.a if row.a is not None else row.b}"


_COUNTED: Mapping[AlignedOp, str] = {
    "same": "the same",
    "reworded": "in other words",
    "changed": "changed",
    "a": "only in A",
    "b": "only in B",
}


_OF_RUNS: Mapping[AlignedOp, str] = {"same": "with the same context", "changed": "with another"}


def _counts(found: Comparison) -> str:
    names = _OF_RUNS if found.runs else _COUNTED
    parts = [f"{found.counts[op]:,} {name}" for op, name in names.items() if found.counts[op]]
    return f"Steps: {', '.join(parts)}." if parts else "Neither session has a step."
