"""Figures per step of a run, as the browser gets them: uses, causes, events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Min

from compaction.cache import Break, CacheUse
from compaction.session import Call
from sessions.actions.events import event_marks
from sessions.models import Run, Session

BASIS = {"measured": 0, "estimated": 1, "simulated": 2}
"""Codes of where a figure comes from; the browser repeats them."""


def is_break(broken: Break | None) -> bool:
    """Whether cached tokens were lost; a first call has none to lose."""
    return broken is not None and broken.cause != "cold_start"


@dataclass(slots=True)
class _Step:
    at: int | None
    prompt: int | None
    fresh: int | None
    read: int | None
    write: int | None
    output: int | None
    cost: int | None
    basis: int
    turn: int
    cause: int
    model: int


def figures(
    session: Session, run: Run, calls: Sequence[Call], uses: Mapping[int, CacheUse]
) -> dict[str, Any]:
    """Columns by step, cause cards of breaks, model names and event marks; JSON-ready."""
    models = list(dict.fromkeys(call.model for call in calls))
    starts = _turn_starts(session)
    causes: list[dict[str, Any]] = []
    steps: list[_Step] = []
    turn = 0
    for call in calls:
        turn = max([turn, *starts.get(call.step, [])])
        use = uses.get(call.step)
        cause = -1
        if use is not None and use.broken is not None and is_break(use.broken):
            cause = len(causes)
            causes.append(cause_card(call.step, use.broken))
        steps.append(_step(call, use, turn, cause, models.index(call.model)))
    return {
        "steps": {name: [getattr(step, name) for step in steps] for name in _Step.__slots__},
        "causes": causes,
        "models": models,
        "events": event_marks(session, run, calls, uses, causes),
    }


def _step(call: Call, use: CacheUse | None, turn: int, cause: int, model: int) -> _Step:
    if use is None:
        return _Step(
            call.at, None, None, None, None, None, None, BASIS["estimated"], turn, cause, model
        )
    return _Step(
        at=call.at,
        prompt=use.prompt,
        fresh=use.fresh,
        read=use.read,
        write=use.write_5m + use.write_1h,
        output=use.output,
        cost=use.cost,
        basis=BASIS[use.basis],
        turn=turn,
        cause=cause,
        model=model,
    )


def _turn_starts(session: Session) -> dict[int, list[int]]:
    rows = session.messages.filter(human=True).values("turn").annotate(first=Min("born"))
    starts: dict[int, list[int]] = {}
    for row in rows:
        starts.setdefault(row["first"], []).append(row["turn"])
    return starts


_ADVICE = {
    "lifetime": "Answer within the lifetime, or write these prefixes for one hour.",
    "model": "Each model has a cache of its own: switch at a task boundary, where the context is "
    "small.",
    "edit": "An edit rewrites what follows it: make edits in batches, or when the cache is cold.",
    "rewind": "Going back drops what was cached after that point; nothing to mend.",
    "unexplained": "Nothing on our side of the log changed; the provider may have dropped it.",
    "tools": "Keep the list of tools and its order the same through a session.",
    "system": "Keep clocks and counters out of the system prompt.",
}


_AGAIN = "paid again that had been cached"
_WRITTEN = {
    "edit": "written anew after the edit",
    "rewind": "written anew after the session went back",
}


def cause_card(step: int, broken: Break) -> dict[str, Any]:
    """What a page says about one cache break: cause, tokens paid again, dollars, what to do."""
    return {
        "step": step,
        "kind": broken.cause,
        "title": str(broken),
        "detail": f"{broken.rewritten:,} tokens were {_WRITTEN.get(broken.cause, _AGAIN)}.",
        "tokens": broken.rewritten,
        "cost_microusd": broken.cost,
        "advice": _ADVICE.get(broken.cause, ""),
    }
