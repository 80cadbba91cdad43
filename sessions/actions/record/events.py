"""Event marks on a run's timeline: context changes and failures."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compaction.cache.uses import CacheUse
from compaction.context.edits import amount
from compaction.context.session import Call
from compaction.policies.trigger_words import words
from compaction.strategies import STRATEGIES
from sessions.figures import tokens
from sessions.models import Retry, Revision, Run, Session
from sessions.models.web.statements import Statement, given_uuid

UNLOGGED_TOKENS, UNLOGGED_SHARE = 4_000, 0.2
"""By how many tokens, and by what share of the change, a reported prompt must change more or less
than the log to be marked; both must be exceeded (decision 73)."""

SHRANK_TOKENS, SHRANK_SHARE = 1024, 0.05
"""Minimum decrease of a prompt that is marked although nothing left the log; both must be
exceeded."""

Event = dict[str, Any]

_KIND = {
    "batch": "offload",
    **{trigger: trigger for trigger in ("clear", "rewind", "setup", "pin", "undo", "entry")},
}


@dataclass(frozen=True, slots=True)
class Marked:
    """The sources of marks: calls and their cache uses by step; revisions, cause cards and errors
    (step of birth, preview) of these steps; steps with a managed context; `counted` tokens of the
    recorded context by step; and from the steps before: the last model, the last use, the last
    with a prompt, by how much that exceeded its counted tokens, and whether a revision
    followed."""

    run: Run
    calls: Sequence[Call]
    uses: Mapping[int, CacheUse]
    revisions: Sequence[Revision]
    errors: Sequence[tuple[int, str]]
    causes: Sequence[Event]
    managed: Container[int] = ()
    counted: Mapping[int, int] = field(default_factory=dict)
    model: str = ""
    use: CacheUse | None = None
    prompted: CacheUse | None = None
    excess: int = 0
    revised: bool = False


def event_marks(marked: Marked) -> list[Event]:
    """All marks except sub-agents; sizes are whole prompts, in tokens."""
    return [
        *(_revision(row, marked) for row in marked.revisions),
        *_unlogged(marked),
        *(mark(card["step"], "break", card["title"]) for card in marked.causes),
        *_model_switches(marked),
        *_dropped(marked),
        *_errors(marked.errors),
    ]


def mark(step: int, kind: str, label: str) -> Event:
    """A mark without revision and size."""
    return {
        "step": step,
        "kind": kind,
        "revision": None,
        "label": label,
        "before": None,
        "after": None,
        "basis": None,
    }


def _revision(row: Revision, marked: Marked) -> Event:
    # Edits that no strategy made follow from others, or are what the trigger says.
    made_by = [STRATEGIES.get(edit.strategy) for edit in row.edits.all()]
    events = {strategy.event for strategy in made_by if strategy}
    kind: str = _KIND.get(row.trigger, "compaction")
    if "window" in events:
        kind = "window"
    elif events == {"offload"}:
        kind = "offload"
    why = "" if kind == row.trigger else words(row.trigger, marked.run.session.agent).name
    label = ": ".join(one for one in (why, row.reason) if one)
    event = mark(row.step, kind, label) | {"revision": row.number}
    before, after = marked.uses.get(row.step - 1), marked.uses.get(row.step)
    if before is None and marked.use is not None and marked.use.step == row.step - 1:
        before = marked.use
    if before is not None and after is not None:
        # Both sizes from the same source, as on the revision's page.
        sizes: Event = {"before": before.prompt, "after": after.prompt, "basis": after.basis}
        return event | sizes
    return event | {"before": row.tokens_before, "after": row.tokens_after, "basis": "estimated"}


def excess_at(use: CacheUse, counted: Mapping[int, int]) -> int:
    """By how many tokens a reported prompt exceeds the log's; negative if the log has more."""
    return use.opening - counted.get(use.step, use.opening)


def _unlogged(marked: Marked) -> list[Event]:
    """Steps at which a reported prompt changed by more than the log accounts for."""
    if marked.run.origin != Run.Origin.RECORDED:
        return []
    known = {row.step for row in marked.revisions}
    events: list[Event] = []
    before, excess, revised = marked.prompted, marked.excess, marked.revised
    for step in sorted(marked.uses):
        use = marked.uses[step]
        if not use.prompt or step in marked.managed:
            continue
        here = excess_at(use, marked.counted)
        first = before.step + 1 if before else 0
        explained = revised or bool(known.intersection(range(first, step + 1)))
        # What the log hid may leave with what it says has left.
        difference = max(here - excess, min(here, 0)) if explained else here - excess
        if label := _unlogged_label(before, use, difference, explained=explained):
            events.append(mark(step, "unlogged", label))
        before, excess, revised = use, here, False
    return events


def _unlogged_label(
    before: CacheUse | None, use: CacheUse, difference: int, *, explained: bool
) -> str:
    """What the prompt says of a step that the log does not; empty if they agree. `difference` is by
    how many tokens the prompt grew more than the log."""
    then = before.opening if before else 0
    grown, fallen = use.opening - then, then - use.opening
    left = "something left that the log does not state"
    if not explained and fallen > max(SHRANK_TOKENS, then * SHRANK_SHARE):
        return f"The prompt shrank by {tokens(fallen)} tokens: {left}"
    change = max(abs(grown), abs(grown - difference))
    if abs(difference) <= max(UNLOGGED_TOKENS, change * UNLOGGED_SHARE):
        return ""
    if difference > 0:
        return f"The log hides ≈{tokens(difference)} tokens here"
    return f"The prompt is ≈{tokens(-difference)} tokens smaller than the log says: {left}"


def _model_switches(marked: Marked) -> list[Event]:
    events, last = [], marked.model
    for call in marked.calls:
        if last and call.model and call.model != last:
            events.append(mark(call.step, "model", f"{last} → {call.model}"))
        last = call.model or last
    return events


def _dropped(marked: Marked) -> list[Event]:
    """Steps from whose request the provider took thinking that was not valid, on the run whose
    context it was."""
    managed = marked.run.origin == Run.Origin.MANAGED
    said = "dropped by the provider: something before changed"
    calls = (one for one in marked.calls if (one.step in marked.managed) == managed)
    return [
        mark(call.step, "clear", f"{amount(call.dropped, 'thinking block')} {said}")
        for call in calls
        if call.dropped
    ]


def _errors(errors: Sequence[tuple[int, str]]) -> list[Event]:
    """One mark per step, with the first failure."""
    failed: dict[int, str] = {}
    for born, preview in errors:
        failed.setdefault(max(born - 1, 1), preview)
    return [mark(step, "error", f"failed: {what}") for step, what in failed.items()]


def retries(session: Session) -> list[Event]:
    """Steps at which a response retried a failed step."""
    rows = _RETRIES.rows(session=session.pk)
    return [mark(step, "retry", f"retries step {of_step}") for step, of_step in rows]


_RETRIES = Statement(
    lambda: (
        Retry.objects.filter(session_id=given_uuid("session"))
        .order_by("step")
        .values_list("step", "of_step")
    )
)


def sub_agents(session: Session) -> list[Event]:
    """Steps at which other sessions were started."""
    children = _CHILDREN.rows(session=session.pk)
    return [mark(step or 1, "subagent", title or name) for step, title, name in children]


_CHILDREN = Statement(
    lambda: (
        Session.objects.filter(parent_id=given_uuid("session"))
        .exclude(parent_step=None)
        .values_list("parent_step", "title", "external_id")
    )
)
