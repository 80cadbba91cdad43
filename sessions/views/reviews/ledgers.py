"""Fact ledger and after-effects of a compaction, for its page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest

from compaction.losses.ledger import ENGINE
from compaction.losses.loss_cost import loss_cost
from compaction.losses.repairs import WINDOW
from compaction.losses.weighty import WHY
from compaction.summaries.model.asked import TODOS
from sessions.access import allowed
from sessions.actions.assessments.lost_facts import dropped_by
from sessions.actions.replay.why import is_too_long
from sessions.actions.reviews.after_effects import AfterEffects, Sign, after_effects
from sessions.actions.reviews.compaction_verdicts import is_missed, verdict_on
from sessions.actions.reviews.fact_ledgers import judge
from sessions.actions.reviews.losses import paid_from, written_at
from sessions.models import FactLedger, Revision, Run, Session
from sessions.views.reviews import quality
from sessions.views.reviews.loss_advice import loss_advice, why_url
from sessions.views.web.places import entry_url, step_url

SHOWN = 50
"""Most signs listed."""

FIRST = 40
"""Facts listed before expanding."""

STATES = {
    "lost": ("✕", "lost", "in no text of the context after it"),
    "unsupported": ("!", "unsupported", "in the summary, but in nothing it was made from"),
    "retrievable": ("↩", "retrievable", "in a block that the context still refers to"),
    "kept": ("✓", "kept", "in the summary, or in a block next to it"),
}
"""Glyph, label and meaning of each state of a fact, most important first."""

WHAT = {
    "reread": "File read again",
    "repeat": "Same call",
    "error": "Same error",
    "edit": "Edit failed",
    "correction": "User corrects",
}


@dataclass(frozen=True, slots=True)
class FactRow:
    """One fact as a row: its source, why it counts, where it was named later, and the page on why
    it was forgotten; empty unless it was lost and needed."""

    glyph: str
    word: str
    state: str
    fact: str
    kind: str
    why: str
    block: str
    source_url: str
    needed: int | None
    needed_url: str
    why_url: str


@dataclass(frozen=True, slots=True)
class StateChoice:
    """A state to filter by; the first is all states."""

    glyph: str
    word: str
    means: str
    count: int
    url: str
    on: bool


@dataclass(frozen=True, slots=True)
class Requirement:
    """A section that the summary must have, or user messages, or open todos."""

    glyph: str
    title: str
    state: str
    counted: str


def shown(request: HttpRequest, session: Session, revision: Revision) -> dict[str, Any]:
    """The template context for facts and after-effects; empty after a rewind.

    Shows the stored ledger. Without one, as for simulations and unassessed compactions, it is
    computed on the fly.
    """
    if revision.trigger == "rewind":
        return {}
    ledger = FactLedger.objects.filter(revision=revision, engine=ENGINE).first()
    if ledger is not None:
        counts = {name: getattr(ledger, name) for name in STATES}
        after = after_effects(session, revision)
        facts, parts, measured = ledger.facts, ledger.sections, ledger.quality
        score, until = ledger.score, ledger.looked_until
    else:
        judged = judge(session, revision)
        if judged is None:
            return _without_summary(session, revision)
        counts = {name: getattr(judged.ledger, name) for name in STATES}
        after, facts = judged.after, judged.facts
        parts = [asdict(part) for part in judged.parts]
        measured = [asdict(one) for one in judged.quality]
        score, until = judged.score, judged.looked_until
    found = _ledger(request, session, revision, facts, counts) | _summed(parts, score, until)
    replaced = any(counts[state] for state in STATES if state != "unsupported")
    lacking = replaced and score is None
    return {
        "ledger": found,
        "missed": found["missed"],
        "advice": loss_advice(
            session, revision, facts, may_write=allowed(request, session.team, "write")
        ),
        "verdict": quality.with_targets(
            verdict_on(revision, after, facts, until, lacking=lacking), measured, facts
        ),
        "quality": quality.shown(session, revision, measured, facts),
        **aftermath(session, revision, after),
    }


def _without_summary(session: Session, revision: Revision) -> dict[str, Any]:
    """What a removal without a summary lost, as the assessment of its session found it."""
    after = after_effects(session, revision)
    facts = dropped_by(session, revision)
    lines: dict[str, Any] = {}
    if facts:
        may_ask = not is_too_long(session)
        lines["missed"] = [_line(session, revision, fact, may_ask=may_ask) for fact in facts]
    return {
        **lines,
        "verdict": verdict_on(revision, after, facts or None),
        **aftermath(session, revision, after),
    }


def _summed(parts: Sequence[Mapping[str, Any]], score: int | None, until: int) -> dict[str, Any]:
    share = None if score is None else score / 1000
    return {"parts": _parts(parts), "share": share, "looked_until": until}


def _ledger(
    request: HttpRequest,
    session: Session,
    revision: Revision,
    facts: Sequence[Mapping[str, Any]],
    counts: Mapping[str, int],
) -> dict[str, Any]:
    chosen = request.GET.get("facts", "")
    wanted = [fact for fact in facts if chosen in ("", "all", fact["state"])]
    order = list(STATES)
    wanted.sort(key=lambda fact: (not is_missed(fact), order.index(fact["state"])))
    lines = wanted if chosen in ("all", *STATES) else wanted[:FIRST]
    listed = Counter(fact["state"] for fact in facts)
    missed = sorted(filter(is_missed, facts), key=itemgetter("needed"))
    may_ask = bool(missed) and not is_too_long(session)
    return {
        "missed": [_line(session, revision, fact, may_ask=may_ask) for fact in missed],
        "lost": counts["lost"],
        "kept": counts["kept"],
        "replaced": sum(counts.values()) - counts["unsupported"],
        "choices": _choices(request, counts, chosen),
        "lines": [_line(session, revision, fact, may_ask=may_ask) for fact in lines],
        "in_all": len(wanted),
        "all_url": _url(request, "all"),
        "unlisted": sum(counts.values()) - sum(listed.values()),
        "total": sum(counts.values()),
    }


def _url(request: HttpRequest, state: str) -> str:
    return f"?{urlencode({'facts': state})}#ledger" if state else f"{request.path}#ledger"


def _choices(request: HttpRequest, counts: Mapping[str, int], chosen: str) -> list[StateChoice]:
    whole = StateChoice(
        "", "all", "", sum(counts.values()), _url(request, ""), chosen not in STATES
    )
    return [whole] + [
        StateChoice(glyph, word, means, counts[name], _url(request, name), chosen == name)
        for name, (glyph, word, means) in STATES.items()
    ]


def _line(
    session: Session, revision: Revision, fact: Mapping[str, Any], *, may_ask: bool
) -> FactRow:
    glyph, word, _ = STATES[fact["state"]]
    entry, needed = fact["block"], fact["needed"]
    run = revision.run
    return FactRow(
        glyph,
        word,
        fact["state"],
        fact["fact"],
        fact["kind"],
        WHY.get(fact["weight"], ""),
        f"#{entry}" if entry else "",
        step_url(session, revision.step - 1, run, entry) if entry else "",
        needed,
        step_url(session, needed, run if run.origin != Run.Origin.SIMULATED else None)
        if needed
        else "",
        why_url(session, run, fact)
        if may_ask and is_missed(fact) and fact["kind"] != "error"
        else "",
    )


def _parts(parts: Sequence[Mapping[str, Any]]) -> list[Requirement]:
    glyphs = {"present": "✓", "none": "–", "missing": "✕", "unasked": ""}
    found = []
    for part in parts:
        what = "open todos named" if part["name"] == TODOS else "replaced user messages covered"
        counted = f"{part['covered']} of {part['of']} {what}" if part["of"] else ""
        title = part["title"] if part["state"] != "unasked" else ""
        found.append(Requirement(glyphs[part["state"]], title, part["state"], counted))
    return found


def aftermath(session: Session, revision: Revision, found: AfterEffects) -> dict[str, Any]:
    """Signs that removed entries were needed again, with links to the replay."""
    signs = [_sign(session, revision, sign) for sign in found.signs[:SHOWN]]
    if found.cost is not None:
        steps = {sign.step for sign in found.signs}
        paid = paid_from(session, min(steps, default=None))
        new = written_at(session, steps)
        for sign in signs:
            step = sign["step"]
            sign["cost"] = loss_cost([step], paid).calls
            sign["written"] = new.get(step)
            sign["cache_break"] = paid[step].cache_break if step in paid else 0
    return {"effects": found, "window": WINDOW, "signs": signs}


def _sign(session: Session, revision: Revision, sign: Sign) -> dict[str, Any]:
    # The model sees a call from the step after the one that made it.
    return {
        "what": WHAT[sign.kind],
        "kind": sign.kind,
        "step": sign.step,
        "preview": sign.block.preview,
        "url": entry_url(session, sign.block),
        "earlier_step": sign.earlier.born - 1 if sign.earlier else None,
        "earlier_url": entry_url(session, sign.earlier, run=revision.run) if sign.earlier else "",
    }
