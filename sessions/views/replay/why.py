"""The page "Why did it forget?": the life of a text in a session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_GET

from compaction.facts.facts import as_written, texts_of
from compaction.facts.paths import path_of
from compaction.losses.ledger import ENGINE
from compaction.losses.life import Life, Shown, Sight, Stay, place_of
from compaction.losses.repairs import WINDOW
from compaction.simulation.kept import KeptText
from sessions.access import run_named, session_of
from sessions.actions.assessments.lost_facts import dropped_by
from sessions.actions.replay.kept_texts import MOST_STEPS, compared
from sessions.actions.replay.why import LONGEST, Need, TooCommon, TooLong, Why, why
from sessions.actions.reviews.compaction_verdicts import is_missed
from sessions.actions.reviews.losses import loss_sentence, seen_run
from sessions.actions.web.apart import FailedApart, NotInTime
from sessions.actions.web.verdicts import Tone, listed
from sessions.models import FactLedger, Run, Session
from sessions.models.record.blobs import DamagedBlob
from sessions.models.record.shown_runs import shown_origin
from sessions.models.record.values import MissingBlob
from sessions.views.reviews.loss_advice import asked_text
from sessions.views.web.names import run_name
from sessions.views.web.pages import Page
from sessions.views.web.places import step_url

STATES: dict[Shown, str] = {
    "unseen": "Not seen yet",
    "in_context": "In context",
    "named": "Named in a stub",
    "retrievable": "Retrievable",
    "lost": "Lost",
}
EVIDENCE = 8
"""Most blocks shown with their lines."""
WHAT: dict[Need, str] = {
    "used": "Used without seeing it",
    "read again": "Read again",
    "repeated": "Call repeated",
    "failed": "Failed",
    "said again": "Said again",
    "shown again": "Shown again",
}
WIDEST = 240
"""Code points shown of a line before and after the text."""


@dataclass(frozen=True, slots=True)
class StayPart:
    """A stay as a part of a bar that is 1,000 wide."""

    x: float
    width: float
    state: Shown
    label: str


@dataclass(frozen=True, slots=True)
class Proof:
    """A block that shows the text: what happened, its step and address, and the lines around it."""

    step: int
    url: str
    what: str
    source: str
    before: str
    found: str
    after: str
    missed: bool


def parts(stays: tuple[Stay, ...], steps: int) -> list[StayPart]:
    """The stays of a session as a bar."""
    scale = 1000 / max(steps, 1)
    return [
        StayPart(
            round((one.since - 1) * scale, 1),
            round(max(one.steps * scale, 2), 1),
            one.state,
            f"{STATES[one.state]}, {one.where}",
        )
        for one in stays
    ]


def _proofs(found: Why) -> Iterator[Proof]:
    """The first sight, what was needed, and later sights, in order."""
    life = found.life
    needed = {id(sight) for sight in (*life.missed, *life.again)}
    wanted = [*life.seen[:1], *(s for s in (*life.seen, *life.used) if id(s) in needed)]
    for sight in sorted(wanted, key=lambda one: one.step)[:EVIDENCE]:
        yield _proof(found, sight, first=sight is life.seen[0])


def _proof(found: Why, sight: Sight, *, first: bool) -> Proof:
    block, text = sight.block, found.life.text
    before, after = "", ""
    found_at = place_of(text, block.text)
    if found_at is not None:
        place, text = found_at[0], block.text[slice(*found_at)]
        start = max(block.text.rfind("\n", 0, place) + 1, place - WIDEST)
        end = block.text.find("\n", place)
        end = min(len(block.text) if end < 0 else end, place + len(text) + WIDEST)
        before, after = block.text[start:place], block.text[place + len(text) : end]
    begins = "First shown" if found.life.fleeting(sight) else "First seen"
    what = begins if first else WHAT[found.need(sight)]
    file = block.file.path if block.file is not None else ""
    source = " ".join(filter(None, (block.tool or "", file))) or block.kind
    name = block.id.removeprefix("m").removesuffix(".0")
    run = found.run
    at = sight.at
    if found.life.fleeting(sight):
        source += f", removed at step {sight.step} before the model call"
    elif at != sight.step:
        source += f", in context from step {sight.step}"
    return Proof(
        at,
        step_url(found.session, sight.step, run, name),
        what,
        source,
        before,
        text,
        after,
        missed=not first,
    )


def _asked(request: HttpRequest, session_id: UUID) -> tuple[Session, Run, str]:
    session = session_of(request, session_id)
    run = run_named(session, request.GET.get("run") or shown_origin(session))
    return session, run, request.GET.get("text", "").strip()[:LONGEST]


@require_GET
def why_page(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Show where a text was first seen, what removed it, when it was needed, and what that cost."""
    session, run, text = _asked(request, session_id)
    context: dict[str, Any] = {
        "section": "sessions",
        "team": session.team,
        "session": session,
        "session_name": str(session),
        "text": text,
        "run": run,
        "replay_url": step_url(session, session.step_count, run),
        "longest": LONGEST,
        "step": (step := _step(request, session)),
    }
    if text:
        try:
            context |= _shown(why(session, run, text, step))
        except (TooCommon, TooLong, MissingBlob, DamagedBlob) as error:
            context["problem"] = str(error)
    return render(request, "replay/why.html", context)


def _step(request: HttpRequest, session: Session) -> int | None:
    """The step whose need is asked about, as the link of a lost fact names it."""
    given = request.GET.get("step", "")[:9]
    step = int(given) if given.isascii() and given.isdecimal() else 0
    return step if 0 < step <= session.step_count else None


def _shown(found: Why) -> dict[str, Any]:
    life, revision, session, run = found.life, found.revision, found.session, found.run
    needs = ",".join(map(str, found.needs))
    asked = urlencode({"text": life.text, "needs": needs})
    shown: dict[str, Any] = {
        "found": found,
        "life": life,
        "tone": _tone(life),
        "named": _named(life),
        "shared": _shared(found),
        "parts": parts(life.stays, life.steps),
        "proofs": list(_proofs(found)),
        "loss": found.loss,
        "loss_sentence": loss_sentence(found.loss),
        "window": WINDOW,
        "policies_url": f"{reverse('why_policies', args=[session.pk])}?{asked}",
    }
    if revision is not None:
        shown["revision_url"] = reverse(
            "revision", args=[session.pk, run_name(run), revision.number]
        )
    return shown


def _named(life: Life) -> str:
    """The text, a path with the start that the first text which shows it writes."""
    if path_of(life.text) is None:
        return life.text
    shown = (text for sight in life.seen for text in texts_of(sight.block))
    return next((as_written(life.text, one) for one in shown if life.text in one), life.text)


def _shared(found: Why) -> int:
    """How many other lost facts were needed at the calls whose cost is shown."""
    if found.revision is None or not found.repaired:
        return 0
    ledger = FactLedger.objects.filter(revision=found.revision, engine=ENGINE).first()
    facts = ledger.facts if ledger else dropped_by(found.session, found.revision)
    needed = [fact for fact in facts if is_missed(fact) and fact["needed"] in found.repaired]
    return sum(asked_text(fact) != found.life.text for fact in needed)


def _tone(life: Life) -> Tone:
    if life.needed is not None:
        return "bad"
    return "good" if life.seen and life.left is None else "neutral"


@require_GET
def why_policies(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Simulate policies on the session and show what would have kept the text."""
    session, _, text = _asked(request, session_id)
    needs = _needs(request, session)
    context: dict[str, Any] = {"text": text, "needs": needs}
    try:
        rows = compared(session, text, needs)
        lived = next((row.cost for row in rows if row.policy == "recorded"), None)
        context |= {"session": session, "seen": seen_run(session)}
        context["rows"] = [_row(row, lived, session.step_count) for row in rows]
        context["avoidable"] = _avoidable(rows)
    except TooLong as error:
        context["problem"] = str(error)
    except (NotInTime, FailedApart) as error:
        if isinstance(error, FailedApart):
            said = "The simulation failed. Simulate a policy on this session in the lab."
        elif error.busy:
            said = "Other simulations are running. Load this page again in a few seconds."
        else:
            said = "The simulation took too long. Simulate a policy on this session in the lab."
        context["problem"] = said
    return render(request, "replay/why_policies.html", context)


def _needs(request: HttpRequest, session: Session) -> set[int]:
    """The steps that needed the text, as the page above found them."""
    given = request.GET.get("needs", "")[: 6 * MOST_STEPS].split(",")
    steps = {int(one) for one in given if one.isascii() and one.isdigit()}
    return {step for step in steps if step <= session.step_count}


def _avoidable(rows: Sequence[KeptText]) -> str:
    """Which of the simulated policies show or name the text whenever it was needed, that which
    loses least first; empty without needs."""
    tried = [row for row in rows if row.policy != "recorded" and row.at]
    if not tried:
        return ""
    tried.sort(key=lambda row: -row.in_context)
    kept = [row.policy for row in tried if {*row.at} <= {"in_context", "named"}]
    if not kept:
        return f"Not avoided by any of {len(tried)} policies (simulated)."
    keeps = "keeps" if len(kept) == 1 else "keep"
    return f"Avoidable: {listed(kept)} {keeps} it (simulated)."


def _row(row: KeptText, lived: int | None, steps: int) -> dict[str, Any]:
    worst: Shown = max(row.at, key=list(STATES).index, default="in_context")
    change = row.cost / lived - 1 if row.cost is not None and lived else None
    return {
        "policy": row.policy,
        "parts": parts(row.stays, steps),
        "state": STATES[worst],
        "worst": worst,
        "kept": sum(at == "in_context" for at in row.at),
        "needs": len(row.at),
        "cost": row.cost,
        "change": change,
        "in_context": row.in_context,
    }


PAGES = (
    Page(
        route="sessions/<uuid:session_id>/why/",
        query=("text", "run", "step"),
        view=why_page,
        name="why",
    ),
    Page(
        route="sessions/<uuid:session_id>/why/policies/",
        query=("text", "needs"),
        view=why_policies,
        name="why_policies",
    ),
)
