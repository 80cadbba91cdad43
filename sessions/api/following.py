"""What a page that shows a session gets: the manifest of a run whole, or what came since.

A delta is told so that columns can be laid into the page's (all columns as in the whole manifest):

    {"v": 1, "delta": true, "since": V, "next": W,
     "session": {…}, "run": {…}, "runs": […], "lines": {…}, "pins": […],      whole
     "entries": {"at": […], "from": […], …},     new ones; `at`: index in context order afterwards
     "changed": {"at": […], "to": […], "closed": […]},      older ones, by the index afterwards
     "from_step": k, "steps": {…}, "causes": […], "models": […], "events": […]}

Steps, causes and events of step k and later take the place of the page's; models are all. Figures
may end some steps before the session does: the last calls are not measured yet.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NamedTuple

import msgspec
from django.http import Http404

from compaction.context import KINDS
from compaction.policies.presets import PRESETS
from sessions.actions.live_sessions import standing_of
from sessions.api.access import run_named
from sessions.models import Job, Pin, Run, Session, delta, manifest, tail

ANSWERS_KEPT = 64


class Known(NamedTuple):
    """What an asker has of a run: its entries (see `manifest.Extent`) and how many these are,
    figures of so many steps as a generation wrote them, and the token ratio they are scaled by."""

    run: str
    blocks: int
    head: int
    entries: int
    steps: int
    generation: int
    ratio: int

    def __str__(self) -> str:
        return ".".join(map(str, self))

    @classmethod
    def of(cls, text: str) -> Known | None:
        """What `next` of an earlier answer says; None for anything else."""
        run, *numbers = text.split(".")
        if len(numbers) != len(cls._fields) - 1:
            return None
        if not all(number.isdecimal() and len(number) < 10 for number in numbers):
            return None
        return cls(run, *map(int, numbers))


def version_of(session: Session, run: Run) -> str:
    """What tells one state of a manifest from another."""
    live = int(session.live)
    return f"{session.version}-{run.pk.hex}-{run.head}-{run.generation}-{live}"


# Answers by what they are of: a hundred pages that follow one session ask the same. Nothing in
# them depends on who asks.
_answers: dict[tuple[str, str], bytes] = {}


def manifest_json(session: Session, run: Run, since: str = "") -> bytes:
    """The manifest of a run: what came after `since`, or all of it where that is not known, or
    is most of it."""
    key = version_of(session, run), since
    known = Known.of(since)
    if known is None:
        return _whole(session, run)
    if key not in _answers:
        while len(_answers) >= ANSWERS_KEPT:
            _answers.pop(next(iter(_answers)), None)
        _answers[key] = _delta(session, run, known) or _whole(session, run)
    return _answers[key]


class Follow(NamedTuple):
    """What a page follows: a run of a session, which it has as `since` says."""

    session: str
    run: str
    since: str


class News(NamedTuple):
    """A delta as JSON, the state of the manifest that it leads to, and what to ask next."""

    version: int
    state: str
    next: str
    json: bytes


class _Next(msgspec.Struct):
    next: str
    delta: bool = False


def news_of(follow: Follow) -> News | None:
    """What came since, for a page that may see the session; None where there is no such thing, or
    a delta does not say it."""
    rows = Session.objects.filter(pk=follow.session)
    session = rows.select_related("team", "policy_version__policy").first()
    try:
        run = run_named(session, follow.run) if session else None
    except Http404:
        return None
    if session is None or run is None:
        return None
    data = manifest_json(session, run, follow.since)
    said = msgspec.json.decode(data, type=_Next)
    if not said.delta:
        return None
    return News(session.version, version_of(session, run), said.next, data)


def _whole(session: Session, run: Run) -> bytes:
    entries = delta.entries(session, run)
    row = tail.stored(run)
    figures = tail.figures_json(row)
    extent = manifest.extent_of(session, run)
    steps = tail.count_of(figures)
    known = Known(_mark(run), *extent, entries.total, steps, row.generation, _ratio(session))
    body = {
        "v": 1,
        "next": str(known),
        **_heads(session, run),
        "presets": [name for name in PRESETS if name != "unmanaged"],
        "kinds": KINDS,
        "entries": msgspec.Raw(entries.json),
    }
    return _spliced(body, figures)


def _delta(session: Session, run: Run, old: Known) -> bytes | None:
    extent = manifest.extent_of(session, run)
    if old.run != _mark(run) or old.ratio != _ratio(session):
        return None
    if old.blocks > extent.blocks or old.head > extent.head:
        return None
    row = tail.stored(run)
    news = tail.since(row, old.steps, old.generation)
    if news is None:
        return None
    before = manifest.Extent(old.blocks, old.head)
    found = delta.delta(run, before, extent, old.entries)
    fresh = len(found.entries["at"])
    if fresh > max(old.entries, 100):
        return None
    known = Known(
        old.run,
        *extent,
        old.entries + fresh,
        news.step - 1 + news.figures.count,
        row.generation,
        old.ratio,
    )
    body = {
        "v": 1,
        "delta": True,
        "since": str(old),
        "next": str(known),
        **_heads(session, run),
        "entries": found.entries,
        "changed": found.changed,
        "from_step": news.step,
    }
    return _spliced(body, msgspec.json.encode(news.figures))


def _spliced(body: dict[str, Any], figures: bytes) -> bytes:
    return msgspec.json.encode(body)[:-1] + b"," + figures[1:]


def _mark(run: Run) -> str:
    return run.pk.hex[:12]


def _ratio(session: Session) -> int:
    return session.token_ratio


def _heads(session: Session, run: Run) -> dict[str, Any]:
    return {
        "session": _session(session),
        "run": {
            "id": _name(run),
            "origin": run.origin,
            "label": run_label(run),
            "policy": str(run.policy_version) if run.policy_version else None,
            "summary": run.figures,
            "recites": _recites(session, run),
            "recited_next": run.fold.get("recited", 0),
        },
        "runs": _runs(session),
        "lines": {"trigger": run.figures.get("trigger_tokens")},
        "pins": list(
            Pin.objects.filter(session=session)
            .order_by("message__seq")
            .values_list("message__seq", flat=True)
        ),
    }


def _recites(session: Session, run: Run) -> bool:
    version = run.policy_version
    if version is None:
        return False
    served = run.origin == Run.Origin.SERVED
    document = (session.policy_document if served else None) or version.document
    return document.get("recite") is not None


def _name(run: Run) -> str:
    return "recorded" if run.origin == Run.Origin.RECORDED else str(run.pk)


def run_label(run: Run) -> str:
    """How a run is called on pages."""
    if run.policy_version is None:
        return "as recorded" if run.origin == Run.Origin.RECORDED else run.origin
    return run.policy_version.policy.name


def _session(session: Session) -> dict[str, Any]:
    children = session.children.order_by("parent_step", "started_at")
    parent = session.parent
    return {
        "id": str(session.pk),
        "external_id": session.external_id,
        "title": str(session),
        "agent": session.agent,
        "source": session.source,
        "model": session.model,
        "window": session.window_taken,
        "window_assumed": session.window is None,
        "ratio": session.token_ratio,
        "basis": session.token_basis,
        "steps": session.step_count,
        "hidden": session.hidden_tokens,
        "cost_at_least": session.cost_at_least,
        "version": session.version,
        "live": session.live,
        "used": session.used_tokens,
        "outcome": session.outcome,
        "policy": str(session.policy_version) if session.policy_version else None,
        "policy_from": session.policy_from,
        "budget": asdict(standing_of(session)),
        "parent": {"id": str(parent.pk), "title": str(parent), "step": session.parent_step}
        if parent
        else None,
        "children": [
            {
                "id": str(child.pk),
                "title": str(child),
                "step": child.parent_step,
                "steps": child.step_count,
                "tokens_peak": child.peak_tokens,
            }
            for child in children
        ],
    }


def _runs(session: Session) -> list[dict[str, Any]]:
    runs = [
        {
            "id": _name(run),
            "origin": run.origin,
            "label": run_label(run),
            "state": "ready",
            "job": None,
        }
        for run in session.runs.select_related("policy_version__policy")
        .defer(*Run.LARGE)
        .order_by("created")
    ]
    pending = Job.objects.filter(
        team_id=session.team_id,
        kind="simulate",
        payload__session=str(session.pk),
        state__in=[Job.State.QUEUED, Job.State.RUNNING],
    )
    runs.extend(
        {
            "id": job.payload["policy"],
            "origin": "simulated",
            "label": job.payload["policy"],
            "state": "running",
            "job": str(job.pk),
        }
        for job in pending
    )
    return runs
