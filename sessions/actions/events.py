"""Event marks on the timeline of a run: what changed its context, and what went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compaction.cache import CacheUse
from compaction.session import Call
from sessions.models import Revision, Run, Session

SHRANK_TOKENS, SHRANK_SHARE = 1024, 0.05
"""A reported prompt that is smaller by more than both, for no reason in the log, is marked."""

Uses = Mapping[int, CacheUse]
Event = dict[str, Any]

_KIND = {"batch": "offload", "clear": "clear", "rewind": "rewind"}


def event_marks(
    session: Session, run: Run, calls: Sequence[Call], uses: Uses, causes: Sequence[Event]
) -> list[Event]:
    """All marks of a run in the order of their steps; sizes are whole prompts, in tokens."""
    marks = [
        *(_revision(row, uses) for row in run.revisions.prefetch_related("edits")),
        *_silent(run, uses),
        *(_event(card["step"], "break", card["title"]) for card in causes),
        *_model_switches(calls),
        *_errors(session),
        *_sub_agents(session),
    ]
    return sorted(marks, key=lambda mark: (mark["step"], mark["revision"] or 0))


def _event(step: int, kind: str, label: str) -> Event:
    return {
        "step": step,
        "kind": kind,
        "revision": None,
        "label": label,
        "before": None,
        "after": None,
        "basis": None,
    }


def _revision(row: Revision, uses: Uses) -> Event:
    strategies = {edit.strategy for edit in row.edits.all()}
    kind = _KIND.get(row.trigger, "compaction")
    if "window" in strategies:
        kind = "window"
    elif strategies == {"offload"}:
        kind = "offload"
    event = _event(row.step, kind, f"{kind} ({row.trigger})") | {"revision": row.number}
    before, after = uses.get(row.step - 1), uses.get(row.step)
    if before is not None and after is not None:
        # Both sizes from one source, as on the page of the revision.
        sizes: Event = {"before": before.prompt, "after": after.prompt, "basis": after.basis}
        return event | sizes
    return event | {"before": row.tokens_before, "after": row.tokens_after, "basis": "estimated"}


def _silent(run: Run, uses: Uses) -> list[Event]:
    """Steps at which a reported prompt shrank, and the log says nothing of it."""
    if run.origin != Run.Origin.RECORDED:
        return []
    known = set(run.revisions.values_list("step", flat=True))
    events: list[Event] = []
    before: CacheUse | None = None
    for step in sorted(uses):
        use = uses[step]
        if before is not None and not known.intersection(range(before.step + 1, step + 1)):
            fallen = before.prompt - use.prompt
            if fallen > max(SHRANK_TOKENS, before.prompt * SHRANK_SHARE) and use.prompt:
                label = f"the prompt shrank by {fallen:,} tokens, and the log does not say why"
                sizes = {"before": before.prompt, "after": use.prompt, "basis": "measured"}
                events.append(_event(step, "clear", label) | sizes)
        before = use if use.prompt else before
    return events


def _model_switches(calls: Sequence[Call]) -> list[Event]:
    events, last = [], ""
    for call in calls:
        if last and call.model and call.model != last:
            events.append(_event(call.step, "model", f"{last} → {call.model}"))
        last = call.model or last
    return events


def _errors(session: Session) -> list[Event]:
    """One mark per step, naming what failed first in it."""
    failed: dict[int, str] = {}
    rows = session.blocks.filter(error=True).order_by("position")
    for born, preview in rows.values_list("born", "preview"):
        failed.setdefault(max(born - 1, 1), preview)
    return [_event(step, "error", f"failed: {what}") for step, what in failed.items()]


def _sub_agents(session: Session) -> list[Event]:
    children = session.children.exclude(parent_step=None)
    return [_event(child.parent_step or 1, "subagent", str(child)) for child in children]
