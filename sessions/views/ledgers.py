"""The fact ledger of a compaction and what came after it, as its page shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest

from compaction.facts.ledger import ENGINE
from compaction.facts.weighty import WHY
from compaction.summaries.asked import TODOS
from sessions.actions.after_effects import AfterEffects, Sign, after_effects
from sessions.actions.fact_ledgers import judge
from sessions.models import FactLedger, Revision, Run, Session
from sessions.views import quality
from sessions.views.places import entry_url, step_url

SHOWN = 50
"""Signs that a page lists."""

FIRST = 40
"""Facts that a page lists until more are asked for."""

STATES = {
    "lost": ("✕", "lost", "nothing that stands after it says it"),
    "unsupported": ("!", "unsupported", "the summary says it; nothing that it could know does"),
    "retrievable": ("↩", "retrievable", "a reference to a block that holds it stands there"),
    "kept": ("✓", "kept", "the summary says it, or a block that stands beside it"),
}
"""Glyph, word and meaning of what became of a fact, what a reader must look at first."""

WHAT = {
    "reread": "File read again",
    "repeat": "Same call",
    "error": "Same error",
    "correction": "User corrects",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One fact as a row: where it stood, why it counts, and where it was named later."""

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


@dataclass(frozen=True, slots=True)
class Choice:
    """A state to filter by; the first stands for all."""

    glyph: str
    word: str
    means: str
    count: int
    url: str
    on: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """A section that the summary's form asks for, or people's messages, or open todos."""

    glyph: str
    title: str
    state: str
    counted: str


def shown(request: HttpRequest, session: Session, revision: Revision) -> dict[str, Any]:
    """What the page of a revision says of facts and after-effects; nothing of either where the
    history went back.

    A stored ledger is shown as it is; where there is none, for what only a simulation made and
    what no job has come to yet, it is made while the reader waits.
    """
    if revision.trigger == "rewind":
        return {}
    ledger = FactLedger.objects.filter(revision=revision, engine=ENGINE).first()
    if ledger is not None:
        counts = {name: getattr(ledger, name) for name in STATES}
        found = _ledger(request, session, revision, ledger.facts, counts)
        found |= _summed(ledger.sections, ledger.score, ledger.looked_until)
        return {
            "ledger": found,
            "quality": quality.shown(session, revision, ledger.quality, ledger.facts),
            **aftermath(session, revision, after_effects(session, revision)),
        }
    judged = judge(session, revision)
    if judged is None:
        return aftermath(session, revision, after_effects(session, revision))
    counts = {name: getattr(judged.ledger, name) for name in STATES}
    found = _ledger(request, session, revision, judged.facts, counts)
    parts = [asdict(part) for part in judged.parts]
    found |= _summed(parts, judged.score, judged.looked_until)
    measured = [asdict(one) for one in judged.quality]
    return {
        "ledger": found,
        "quality": quality.shown(session, revision, measured, judged.facts),
        **aftermath(session, revision, judged.after),
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
    wanted.sort(key=lambda fact: order.index(fact["state"]))
    lines = wanted if chosen in ("all", *STATES) else wanted[:FIRST]
    listed = Counter(fact["state"] for fact in facts)
    return {
        "choices": _choices(request, counts, chosen),
        "lines": [_line(session, revision, fact) for fact in lines],
        "in_all": len(wanted),
        "all_url": _url(request, "all"),
        "unlisted": sum(counts.values()) - sum(listed.values()),
        "total": sum(counts.values()),
    }


def _url(request: HttpRequest, state: str) -> str:
    return f"?{urlencode({'facts': state})}#ledger" if state else f"{request.path}#ledger"


def _choices(request: HttpRequest, counts: Mapping[str, int], chosen: str) -> list[Choice]:
    whole = Choice("", "all", "", sum(counts.values()), _url(request, ""), chosen not in STATES)
    return [whole] + [
        Choice(glyph, word, means, counts[name], _url(request, name), chosen == name)
        for name, (glyph, word, means) in STATES.items()
    ]


def _line(session: Session, revision: Revision, fact: Mapping[str, Any]) -> Line:
    glyph, word, _ = STATES[fact["state"]]
    entry, needed = fact["block"], fact["needed"]
    run = revision.run
    return Line(
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
    )


def _parts(parts: Sequence[Mapping[str, Any]]) -> list[Asked]:
    glyphs = {"present": "✓", "none": "–", "missing": "✕", "unasked": ""}
    found = []
    for part in parts:
        what = "open todos named" if part["name"] == TODOS else "replaced messages of people told"
        counted = f"{part['told']} of {part['of']} {what}" if part["of"] else ""
        title = part["title"] if part["state"] != "unasked" else ""
        found.append(Asked(glyphs[part["state"]], title, part["state"], counted))
    return found


def aftermath(session: Session, revision: Revision, found: AfterEffects) -> dict[str, Any]:
    """Signs that what was taken out was needed again, with links into the replay."""
    return {
        "effects": found,
        "signs": [_sign(session, revision, sign) for sign in found.signs[:SHOWN]],
    }


def _sign(session: Session, revision: Revision, sign: Sign) -> dict[str, Any]:
    # A call is seen by the model from the step after the one that made it.
    return {
        "what": WHAT[sign.kind],
        "kind": sign.kind,
        "step": sign.step,
        "preview": sign.block.preview,
        "url": entry_url(session, sign.block),
        "earlier_step": sign.earlier.born - 1 if sign.earlier else None,
        "earlier_url": entry_url(session, sign.earlier, run=revision.run) if sign.earlier else "",
    }
