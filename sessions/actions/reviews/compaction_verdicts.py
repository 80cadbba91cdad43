"""The verdict on a compaction or another removal: what was lost and needed, and what that cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compaction.losses.loss_cost import LossCost
from compaction.losses.repairs import Kind
from sessions.actions.reviews.after_effects import AfterEffects
from sessions.actions.reviews.losses import loss_sentence
from sessions.actions.web.verdicts import UNREPAIRED, EventVerdict, Tone, counted, listed
from sessions.figures import money, tokens
from sessions.models import Revision, Run
from sessions.models.record.replaced import UNREADABLE


@dataclass(frozen=True, slots=True)
class RemovalFacts:
    """What is known of a removal.

    `needed` are the later steps, in order, that first named each lost fact, up to step `until`;
    None without a ledger. `signs` counts after-effects up to step `watched`, which is before `step`
    if no call came after, and `files` the files read again; `cost` is that of their calls.
    `rewritten` and `rewrite_cost` are those of the cache break. `simulated`: its agent saw what was
    removed, so its signs say nothing. `lacking`: the log lacks most of the removed text;
    `unreadable`: its summary is encrypted. Costs in micro-dollars, None if unknown.
    """

    step: int
    watched: int
    until: int = 0
    needed: Sequence[int] | None = None
    signs: Mapping[Kind, int] = field(default_factory=dict)
    files: int = 0
    cost: LossCost | None = None
    rewritten: int | None = None
    rewrite_cost: int | None = None
    payback: int | None = None
    simulated: bool = False
    lacking: bool = False
    unreadable: bool = False


def removal_verdict(known: RemovalFacts) -> EventVerdict:
    """Say whether something was lost and needed again, then what followed and what it cost."""
    tone, sentence = _judged(known)
    details = [_followed(known), _written(known)]
    return EventVerdict(tone, sentence, " ".join(filter(None, details)))


def _judged(known: RemovalFacts) -> tuple[Tone, str]:
    signs = _signs(known)
    if needed := known.needed:
        facts = counted(len(needed), "lost fact")
        was = "was" if len(needed) == 1 else "were"
        if known.simulated:
            was = "is" if len(needed) == 1 else "are"
        at = f"at step {needed[0]}" if len(needed) == 1 else f"first at step {needed[0]}"
        joint = " " if len(needed) == 1 else ", "
        if not known.simulated and known.cost is not None and not known.cost.steps:
            return "neutral", f"{facts} {was} used again {at}{UNREPAIRED}."
        return "bad", f"{facts} {was} needed again{joint}{at}."
    if known.watched < known.step:
        return "neutral", "No model call came after it."
    if known.lacking:
        return "neutral", "What it lost is unknown: the log lacks most of the text it replaced."
    if known.unreadable:
        said = f", but then: {listed(signs)}" if signs else ""
        return "neutral", f"What it lost is unknown: its summary is encrypted{said}."
    if signs:
        before = "No lost fact was needed again, but " if known.needed is not None else ""
        said = f"{before}{listed(signs)}."
        return "neutral", said[0].upper() + said[1:]
    if known.needed is not None:
        what = "is" if known.simulated else "was"
        return "good", f"Nothing that it lost {what} needed again up to step {known.until}."
    if known.simulated:
        return "neutral", "No summary was written, so no fact was compared."
    return "good", f"Nothing that it removed was read or repeated up to step {known.watched}."


def _signs(known: RemovalFacts) -> list[str]:
    return [] if known.simulated else signs_said(known.signs, known.files)


def signs_said(signs: Mapping[Kind, int], files: int) -> list[str]:
    """After-effects in words, on every page: reads are calls, `files` the different paths that
    these read."""
    of = counted(files, "file")
    words = {
        "reread": (f"read of {of} repeated", f"reads of {of} repeated"),
        "repeat": ("call repeated", "calls repeated"),
        "error": ("error met again", "errors met again"),
        "edit": ("failed edit", "failed edits"),
        "correction": ("correction by the user", "corrections by the user"),
    }
    return [counted(count, *words[kind]) for kind, count in signs.items() if count]


def _followed(known: RemovalFacts) -> str:
    """What followed, unless the first sentence says so already, and its cost."""
    signs = _signs(known)
    if not signs:
        return ""
    cost = _paid(known.cost)
    if known.needed:
        return f"By step {known.watched}: {listed(signs)}.{f' {cost}' if cost else ''}"
    return cost


def _paid(cost: LossCost | None) -> str:
    return loss_sentence(cost) if cost is not None else ""


def _written(known: RemovalFacts) -> str:
    """The cache break, which is no part of the cost of the loss."""
    if not known.rewrite_cost:
        return ""
    amount = money(known.rewrite_cost)
    if known.rewritten:
        amount += f" ({tokens(known.rewritten)} tokens)"
    said = f"The cache break cost {amount}"
    if known.payback is None:
        return f"{said}."
    return f"{said}, paid back after {counted(known.payback, 'step')}."


def verdict_on(
    revision: Revision,
    after: AfterEffects,
    facts: Sequence[Mapping[str, Any]] | None = None,
    until: int = 0,
    *,
    lacking: bool = False,
) -> EventVerdict:
    """The verdict on a stored revision. `facts` are the lines of its ledger, or of those it dropped
    without one, looked for up to step `until`; None without either."""
    needed = None if facts is None else sorted(fact["needed"] for fact in facts if is_missed(fact))
    return removal_verdict(
        RemovalFacts(
            step=revision.step,
            watched=after.last_step,
            until=until,
            needed=needed,
            signs=after.counts,
            files=after.files,
            cost=after.cost,
            rewritten=revision.cache_rewritten,
            rewrite_cost=revision.cost_microusd,
            payback=revision.payback_steps,
            simulated=revision.run.origin == Run.Origin.SIMULATED,
            lacking=lacking,
            unreadable=facts is None and revision.edits.filter(UNREADABLE).exists(),
        )
    )


def is_missed(fact: Mapping[str, Any]) -> bool:
    """Whether a line of a ledger is of a lost fact that was needed again, as all count."""
    return fact["state"] == "lost" and fact["needed"] is not None
