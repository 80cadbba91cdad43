"""The measures of a compaction that need no model, as its page shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compaction.facts.ledger import Fact
from compaction.stubs import digest
from compaction.summaries.quality import Fit, Measure, fit
from compaction.wire import decode, text_of
from sessions.models import Artefact, Revision, Session
from sessions.models.replaced import SUMMARISING
from sessions.models.values import contents
from sessions.templatetags.figures import percent

TITLES = {
    "pairs": ("Calls without their one result", "none"),
    "roles": ("Roles out of order", "none"),
    "pins": ("Pinned blocks taken out", "none"),
    "messages": ("Replaced messages of people told", "all"),
    "verbatim": ("Messages of people that stand word for word", ""),
    "todos": ("Open todos named", "all"),
    "changed": ("Changed files named", "all"),
    "read": ("Files that were read named", "95 %"),
    "open_errors": ("Open errors told", "all"),
    "identifiers": ("Names kept", "95 %"),
    "numbers": ("Numbers and links kept", "90 %"),
    "errors": ("Errors told", "95 %"),
    "sections": ("Sections there", "all"),
    "unsupported": ("Facts that nothing supports", "none"),
    "smaller": ("Context after, of before", "under 100 %"),
    "gain": ("Context won", "10 % at least"),
    "target": ("Context after, of the window", "37.5 % at most"),
    "summary": ("Summary, of what it replaced", ""),
    "growth": ("Summary, of the one before", "1.2 × at most"),
    "references": ("References that lead to their original", "all"),
    "secrets": ("Secrets in the summary", "none"),
}
"""What each measure is called, and its target."""

FITS: Mapping[Fit, tuple[str, str]] = {
    "over": ("✕", "too much was taken out"),
    "under": ("!", "too little was taken out"),
    "right": ("✓", "neither too much nor too little"),
}

CUT_OUT = 20
"""Made up facts that a page lists."""


@dataclass(frozen=True, slots=True)
class Row:
    """One measure: its value in words, its target, and whether that is met."""

    title: str
    value: str
    target: str
    glyph: str
    state: str


def shown(
    session: Session,
    revision: Revision,
    measured: Sequence[Mapping[str, Any]],
    facts: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Rows of a compaction's measures, what they come to, and who wrote the summary."""
    found = [Measure(**one) for one in measured]
    if not found:
        return {}
    glyph, said = FITS[fit(found, [_fact(one) for one in facts])]
    rows = [_row(one) for one in found if one.name in TITLES]
    known = [one for one in found if one.met is not None]
    return {
        "rows": rows,
        "glyph": glyph,
        "fit": said,
        "met": sum(bool(one.met) for one in known),
        "of": len(known),
        "writer": _writer(session, revision),
    }


def _fact(one: Mapping[str, Any]) -> Fact:
    names = ("key", "fact", "kind", "state", "weight", "block", "needed")
    return Fact(**{name: one[name] for name in names})


def _row(one: Measure) -> Row:
    title, target = TITLES[one.name]
    glyph, state = {True: ("✓", "kept"), False: ("✕", "lost"), None: ("", "")}[one.met]
    return Row(title, _value(one), target, glyph, state)


def _value(one: Measure) -> str:
    if one.value is None:
        return "nothing to count" if one.of == 0 else "unknown"
    if one.unit == "ratio":
        return f"{one.value / 1000:.2f} ×"
    if one.unit == "count":
        return f"{one.value:,}"
    share = percent(one.value / one.of, 1) if one.of else ""
    return f"{share} ({one.value:,} of {one.of:,})".strip()


def _writer(session: Session, revision: Revision) -> dict[str, Any] | None:
    """Who wrote the summary that stands, where that was stored with it."""
    edit = revision.edits.filter(SUMMARISING, replacement__isnull=False).first()
    if edit is None or edit.replacement is None:
        return None
    sha = edit.replacement.sha
    text = text_of(decode(contents(session, [sha])[sha]))
    made = Artefact.objects.filter(session=session, kind="summary", sha=digest(text)).first()
    if made is None:
        return None
    return {
        "maker": made.maker,
        "model": made.model,
        "note": made.note,
        "cut_out": made.unsupported[:CUT_OUT],
        "masked": sum(made.masked.values()),
        "cost_microusd": made.cost_microusd,
    }
