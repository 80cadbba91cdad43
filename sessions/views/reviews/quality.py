"""Quality measures of a compaction that need no model, for its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compaction.context.stubs import digest
from compaction.context.wire import decode, text_of
from compaction.losses.ledger import Fact
from compaction.losses.quality import Fit, Measure, fit
from compaction.summaries.summary import board_apart
from sessions.actions.web.verdicts import EventVerdict, Tone
from sessions.figures import percent
from sessions.models import Artefact, Revision, Session
from sessions.models.record.replaced import SUMMARISING
from sessions.models.record.values import contents

TITLES = {
    "pairs": ("Tool calls without exactly one result", "none"),
    "roles": ("Roles out of order", "none"),
    "pins": ("Pinned blocks removed", "none"),
    "messages": ("Replaced user messages covered", "all"),
    "verbatim": ("User messages kept verbatim", ""),
    "todos": ("Open todos named", "all"),
    "changed": ("Changed files named", "all"),
    "read": ("Read files named", "95 %"),
    "open_errors": ("Open errors covered", "all"),
    "identifiers": ("Names kept", "95 %"),
    "numbers": ("Numbers and links kept", "90 %"),
    "errors": ("Errors covered", "95 %"),
    "sections": ("Sections present", "all"),
    "unsupported": ("Unsupported facts", "none"),
    "smaller": ("Context after ÷ before", "under 100 %"),
    "gain": ("Context saved", "at least 10 %"),
    "target": ("Context after ÷ window", "at most 37.5 %"),
    "summary": ("Summary ÷ what it replaced", ""),
    "growth": ("Summary ÷ previous summary", "at most 1.2 ×"),
    "references": ("References that resolve", "all"),
    "secrets": ("Secrets in the summary", "none"),
}
"""Label and target of each measure."""

FITS: Mapping[Fit, tuple[str, str]] = {
    "over": ("✕", "too much was removed"),
    "under": ("!", "too little was removed"),
    "right": ("✓", "neither too much nor too little"),
}

MISSED = 3
"""Most missed targets named in a verdict."""

CUT_OUT = 20
"""Most invented facts listed."""


@dataclass(frozen=True, slots=True)
class MeasureRow:
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
    """Rows of a compaction's measures, its overall fit, and the summary's author."""
    found = [Measure(**one) for one in measured]
    if not found:
        return {}
    glyph, said = FITS[fit(found, facts_of(facts))]
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


def with_targets(
    verdict: EventVerdict,
    measured: Sequence[Mapping[str, Any]],
    facts: Sequence[Mapping[str, Any]],
) -> EventVerdict:
    """The verdict on a compaction: whether it was good, why, and how many of the targets of its
    measures are met."""
    found = [Measure(**one) for one in measured]
    known = [one.met for one in found if one.met is not None]
    if not known:
        return verdict
    fitting = fit(found, facts_of(facts))
    weak = fitting == "over" or verdict.tone == "bad"
    good = fitting == "right" and verdict.tone == "good"
    word = "Weak" if weak else "Good" if good else "Fair"
    why = "" if fitting == "right" else f"{FITS[fitting][1]}; "
    said = verdict.sentence[0].lower() + verdict.sentence[1:]
    met = f"{sum(known)} of {len(known)} targets for a good compaction met{_missed(found)}."
    tone: Tone = "bad" if weak else "good" if good else "neutral"
    return EventVerdict(tone, f"{word}: {why}{said}", f"{met} {verdict.detail}".strip())


def _missed(found: Sequence[Measure]) -> str:
    """The measures whose target is missed, by name."""
    titles = [TITLES[one.name][0] for one in found if one.met is False and one.name in TITLES]
    named = [title[0].lower() + title[1:] for title in titles[:MISSED]]
    more = f", {len(titles) - MISSED} more" if len(titles) > MISSED else ""
    return f"; missed: {', '.join(named)}{more}" if named else ""


def facts_of(lines: Sequence[Mapping[str, Any]]) -> list[Fact]:
    """The lines of a stored ledger as facts."""
    return [_fact(one) for one in lines]


def _fact(one: Mapping[str, Any]) -> Fact:
    names = ("key", "fact", "kind", "state", "weight", "block", "needed")
    return Fact(**{name: one[name] for name in names})


def _row(one: Measure) -> MeasureRow:
    title, target = TITLES[one.name]
    glyph, state = {True: ("✓", "kept"), False: ("✕", "lost"), None: ("", "")}[one.met]
    return MeasureRow(title, _value(one), target, glyph, state)


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
    """The author of the current summary, if stored."""
    edit = revision.edits.filter(SUMMARISING, replacement__isnull=False).first()
    if edit is None or edit.replacement is None:
        return None
    sha = edit.replacement.sha
    text, _ = board_apart(text_of(decode(contents(session, [sha])[sha])))
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
