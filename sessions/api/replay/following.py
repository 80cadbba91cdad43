"""Manifests for pages that show a session: complete, or the changes since an earlier state.

A delta can be merged into the page's columns (all columns as in the complete manifest):

    {"v": 1, "delta": true, "since": V, "next": W,
     "session": {…}, "run": {…}, "runs": […], "lines": {…}, "pins": […],      complete
     "entries": {"at": […], "from": […], …},     new ones; `at`: index in context order afterwards
     "changed": {"at": […], "to": […], "closed": […]},      older ones, by the index afterwards
     "from_step": k, "steps": {…}, "causes": […], "models": […], "events": […]}

Steps, causes and events of step k and later replace the page's; `models` is complete. Figures may
end some steps before the session does, because the last calls are not measured yet.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from django.http import Http404
from msgspec import structs

from compaction.context.blocks import KINDS
from sessions.access import run_named
from sessions.api.replay.heads import heads_of, ratio_of
from sessions.models import Run, Session
from sessions.models.masking.masked_views import ReaderView
from sessions.models.record import delta, manifest, packing, tail
from sessions.models.web import shown

ANSWERS_KEPT = 64
LABELED = 100
"""Events that have their label in a packed manifest, the last ones: a page shows few at once."""


class ClientState(NamedTuple):
    """A client's state: its run, extent (see `manifest.Extent`), number of entries, number of steps
    with their generation, and the token ratio they are scaled by."""

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
    def of(cls, text: str) -> ClientState | None:
        """Parse `next` of an earlier answer; None for anything else."""
        run, *numbers = text.split(".")
        if len(numbers) != len(cls._fields) - 1:
            return None
        if not all(number.isdecimal() and len(number) < 10 for number in numbers):
            return None
        return cls(run, *map(int, numbers))


def version_of(session: Session, run: Run) -> str:
    """An identifier of the manifest's state."""
    live = int(session.live)
    # An assessment changes which breaks are avoidable, but not the version.
    hour = tail.hour_saved_in(session)
    judged = "u" if hour is None else int(hour > 0)
    masks = f"-{seal}" if (seal := shown.seal()) else ""
    return f"{session.version}-{run.pk.hex}-{run.head}-{run.generation}-{live}-{judged}{masks}"


# Answers by state: a hundred pages that follow one session request the same. They do not depend on
# the requester.
_answers: dict[tuple[str, str], bytes] = {}


def manifest_json(session: Session, run: Run, since: str = "", *, packed: bool = False) -> bytes:
    """The manifest of a run: the changes after `since`, or all of it if that is unknown or most of
    it changed; `packed` as pages read it."""
    whole = _packed if packed else _whole
    known = ClientState.of(since)
    if known is None:
        return whole(session, run)
    key = version_of(session, run), f"{since} {packed}"
    if key not in _answers:
        while len(_answers) >= ANSWERS_KEPT:
            _answers.pop(next(iter(_answers)), None)
        _answers[key] = _delta(session, run, known) or whole(session, run)
    return _answers[key]


class FollowedRun(NamedTuple):
    """The run of a session that a page follows, and the state it has."""

    session: str
    run: str
    since: str


class RunDelta(NamedTuple):
    """A delta as JSON, the state it leads to, and the next `since`."""

    version: int
    state: str
    next: str
    json: bytes


class _Next(msgspec.Struct):
    next: str
    delta: bool = False


def news_of(follow: FollowedRun) -> RunDelta | None:
    """The delta for a page with access to the session; None if the session or run does not exist,
    or a delta is not possible."""
    session = _followed(follow)
    if session is None or not session.team.show_masked:
        return _news_of(session, follow)
    team = session.team
    # Pages are watched by members: none gets back what it sent.
    with shown.shown_to(ReaderView(lambda: [team])):
        return _news_of(_followed(follow), follow)


def _followed(follow: FollowedRun) -> Session | None:
    rows = Session.objects.filter(pk=follow.session)
    return rows.select_related("team", "policy_version__policy").first()


def _news_of(session: Session | None, follow: FollowedRun) -> RunDelta | None:
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
    return RunDelta(session.version, version_of(session, run), said.next, data)


def _whole(session: Session, run: Run) -> bytes:
    entries = delta.columns_of(session, run)
    row = tail.stored(run)
    figures = tail.figures_json(row)
    if shown.view() is not None:
        figures = msgspec.json.encode(_seen(tail.figures(row)))
    body = _body(session, run, len(entries["from"]), tail.count_of(figures), row.generation)
    return _spliced(body | {"entries": entries}, figures)


def _seen(figures: tail.Figures) -> tail.Figures:
    """Figures with labels of events and cards as the reader sees them."""
    if shown.view() is None:
        return figures
    events, causes = map(shown.cut_value, (figures.events, figures.causes))
    return structs.replace(figures, events=events, causes=causes)


def _packed(session: Session, run: Run) -> bytes:
    """All of a manifest, its columns packed. Labels and cards of cache breaks of all but the last
    events are left to `events_json`."""
    entries = delta.entries(session, run)
    row = tail.stored(run)
    figures = _seen(tail.figures(row))
    body = _body(session, run, entries.total, figures.count, row.generation)
    labeled = figures.events[-LABELED]["step"] if len(figures.events) > LABELED else 1
    body |= {
        "entries": msgspec.Raw(entries.json),
        "later": delta.later_of(entries),
        "steps": packing.packed_steps(figures.steps),
        "count": figures.count,
        "events": packing.packed_events(figures.events, figures.steps["prompt"], labeled),
        "causes": [card if card["step"] >= labeled else {"step": card["step"]}
                   for card in figures.causes],
        "labeled_from": labeled,
        "models": figures.models,
    }  # fmt: skip
    return msgspec.json.encode(body)


def _body(session: Session, run: Run, entries: int, steps: int, generation: int) -> dict[str, Any]:
    extent = manifest.extent_of(session, run)
    known = ClientState(_mark(run), *extent, entries, steps, generation, ratio_of(session))
    return {
        "v": 1,
        "next": str(known),
        **heads_of(session, run),
        "kinds": KINDS,
    }


def events_json(run: Run) -> bytes:
    """What packed manifests of many events leave out."""
    figures = _seen(tail.figures(tail.stored(run)))
    return msgspec.json.encode({"events": figures.events, "causes": figures.causes})


def _delta(session: Session, run: Run, old: ClientState) -> bytes | None:
    extent = manifest.extent_of(session, run)
    if old.run != _mark(run) or old.ratio != ratio_of(session):
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
    known = ClientState(
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
        **heads_of(session, run),
        "entries": found.entries,
        "changed": found.changed,
        "from_step": news.step,
    }
    return _spliced(body, msgspec.json.encode(_seen(news.figures)))


def _spliced(body: dict[str, Any], figures: bytes) -> bytes:
    return msgspec.json.encode(body)[:-1] + b"," + figures[1:]


def _mark(run: Run) -> str:
    """Identifies the rows that a client has: later ones only add to them, and end some."""
    return f"{run.pk.hex[:12]}{run.rewritten or ''}"
