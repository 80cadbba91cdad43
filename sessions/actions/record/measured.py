"""Store a measurement, unless another one was faster."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import msgspec
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from compaction.context import composition
from compaction.tokens import default_counting
from sessions.actions.memory.openings import opening_tokens
from sessions.actions.record import tally as tallies
from sessions.actions.record.events import Event, retries, sub_agents
from sessions.actions.record.figures import is_break
from sessions.actions.record.news import RECORDED, News
from sessions.actions.record.tally import Table, Tally, TallyPart, UsageSums
from sessions.live import hint
from sessions.models import ModelCall, Revision, Run, Session
from sessions.models.record import delta, manifest, tail
from sessions.models.web.statements import (
    Statement,
    Update,
    given_columns,
    given_int,
    given_uuid,
)
from sessions.signals import breaks_found

SPARKLINE_COLUMNS = 60

BASES_APART = 128
"""Steps between bases that are kept for long: what changes late is rare."""

ENGINE = 11
"""Increment when a rule of figures changes: older figures are then recomputed."""


def is_live(session: Session) -> bool:
    """Whether an agent sends it while running: its counting then stays fixed."""
    return session.source == "api"


class Base(msgspec.Struct, array_like=True):
    """A tally in stored form, and its step."""

    step: int
    tally: bytes


class Bases(msgspec.Struct):
    """States from which measuring can continue, oldest first, and the contexts of the steps up to
    the last (see `tally.packed`)."""

    found: list[Base] = []
    table: bytes = b""
    engine: int = 0

    @classmethod
    def stored(cls, data: bytes | memoryview | None) -> Bases:
        """Those of a run; none if another release wrote them."""
        try:
            found = msgspec.msgpack.decode(data, type=Bases) if data else cls(engine=ENGINE)
        except msgspec.ValidationError:
            found = cls(engine=ENGINE)
        return found if found.engine == ENGINE else cls(engine=ENGINE)

    @property
    def step(self) -> int:
        """The newest settled step."""
        return self.found[-1].step if self.found else 0

    @property
    def newest(self) -> Tally | None:
        """A copy of the newest state."""
        return msgspec.msgpack.decode(self.found[-1].tally, type=Tally) if self.found else None

    def keep(self, tally: Tally) -> None:
        """Add a newest base; of older ones, keep some."""
        self.found.append(Base(tally.step, msgspec.msgpack.encode(tally)))
        if len(self.found) > 3 and self.found[-2].step - self.found[-4].step < BASES_APART:
            del self.found[-3]

    def reopen(self, step: int) -> None:
        """Drop everything that depends on a step."""
        self.found = [base for base in self.found if base.step < step]
        self.table = tallies.cut(self.table, self.step)


@dataclass(slots=True)
class Measuring:
    """One measurement: input and results."""

    session: Session
    runs: dict[str, Run]
    bases: Bases
    tally: Tally
    news: News
    parts: list[TallyPart] = field(default_factory=list)
    settled: list[TallyPart] = field(default_factory=list)
    resized: list[Revision] = field(default_factory=list)
    beside: list[Event] = field(default_factory=list)


def keep(made: Measuring) -> bool:
    """Store the results. Returns False if another measurement was faster, or the session was
    written again."""
    session, runs = made.session, made.runs
    made.beside = [*sub_agents(session), *retries(session)]
    fields = _session_fields(made)
    rows = {origin: _run_fields(made, origin) for origin in runs}
    with transaction.atomic():
        row = _VERSION.first(session=session.pk)
        if row is None:
            return False  # PostgreSQL waited for one that wrote it again, which is another row
        (now,) = row
        measured = now == session.version
        if not _write_run(runs[RECORDED], rows.pop(RECORDED)):
            return False
        for origin, values in rows.items():
            _write_run(runs[origin], values)
        reopened = runs[RECORDED].reopened
        if reopened is not None:
            Run.objects.filter(pk=runs[RECORDED].pk, reopened=reopened).update(reopened=None)
        _write_costs(made)
        _report_breaks(made)
        if not measured:  # the agent may have set them since
            fields = {name: fields[name] for name in fields if name not in ("model", "window")}
        fields |= {"measured": measured, "changed": timezone.now()}
        _write_session(tuple(fields)).run(session=session.pk, **fields)
        hint(f"session:{session.pk}", now + 1)
    return True


_VERSION = Statement(
    lambda: (
        Session.objects.select_for_update().filter(pk=given_uuid("session")).values_list("version")
    )
)


def _write_run(run: Run, values: dict[str, Any]) -> bool:
    # One statement: of two measurements that read the same generation, only the first writes.
    return bool(_write_to(tuple(values)).run(run=run.pk, now=run.generation, **values))


@cache
def _write_session(names: tuple[str, ...]) -> Update:
    return Update(
        lambda: (
            Session.objects.filter(pk=given_uuid("session")),
            given_columns(Session, names) | {"version": F("version") + 1},
        )
    )


@cache
def _write_to(names: tuple[str, ...]) -> Update:
    return Update(
        lambda: (
            Run.objects.filter(pk=given_uuid("run"), generation=given_int("now")),
            given_columns(Run, names),
        )
    )


def _write_costs(made: Measuring) -> None:
    uses = {step: use for part in (*made.settled, *made.parts) for step, use in part.uses.items()}
    changed = [
        {"call": pk, "cost_microusd": uses[call.step].cost}
        for call, pk, cost in made.news.calls
        if call.step in uses and uses[call.step].cost != cost
    ]
    if len(changed) > 1:
        _COST.run_all(changed)
    elif changed:
        _COST.run(**changed[0])
    if made.resized:
        _SIZES.run_all(
            {"revision": one.pk, **{name: getattr(one, name) for name in _SIZED}}
            for one in made.resized
        )


def _report_breaks(made: Measuring) -> None:
    parts = (*made.settled, *made.parts)
    breaks = {
        step: use.broken
        for part in parts
        for step, use in part.uses.items()
        if is_break(use.broken)
    }
    if breaks:
        breaks_found.send(Session, session=made.session, breaks=breaks)


_SIZED = ("tokens_before", "tokens_after", "cache_rewritten", "cost_microusd")
_SIZES = Update(
    lambda: (
        Revision.objects.filter(pk=given_int("revision")),
        given_columns(Revision, _SIZED),
    )
)
_COST = Update(
    lambda: (
        ModelCall.objects.filter(pk=given_int("call")),
        given_columns(ModelCall, ("cost_microusd",)),
    )
)


def _session_fields(made: Measuring) -> dict[str, Any]:
    session, tally, sums = made.session, made.tally, made.tally.sums
    fields = {
        "hidden_tokens": tally.hidden or opening_tokens(session),
        "sparkline": _sparkline(made),
        "peak_measured": sums.prompt > 0,
        "peak_tokens": sums.prompt or max(tally.largest[0], 0),
        "usage_calls": sums.calls,
        "uncached_tokens": sums.uncached,
        "cache_read_tokens": sums.read,
        "cache_write_tokens": sums.write,
        "output_tokens": sums.output,
        "cost_microusd": sums.cost if sums.priced and sums.priced == sums.calls else None,
        "break_count": sums.breaks,
        # Some clients log a placeholder while a response streams; costs are then a lower bound.
        "cost_at_least": sums.output * 1.5 < sums.written,
        **_forecast_fields(sums),
        "model": session.model,
        "window": session.window,
    }
    if is_live(session):
        return fields | {"learned_ratio": _learned_ratio(made)}
    return fields | {"token_ratio": session.token_ratio, "token_basis": session.token_basis}


def _learned_ratio(made: Measuring) -> int | None:
    exact = default_counting(made.session.model).basis == "exact"
    return None if exact else made.tally.growth.ratio


def _forecast_fields(sums: UsageSums) -> dict[str, int]:
    """How our cache rules did; nothing if no call reports a read or a write, as there is nothing to
    compare with then."""
    known = sums.read or sums.write
    return {
        "forecast_calls": sums.forecast_calls if known else 0,
        "forecast_tokens": sums.forecast if known else 0,
        "forecast_prompt_tokens": sums.forecast_prompt if known else 0,
        "forecast_reported_tokens": sums.forecast_reported if known else 0,
        "forecast_off_tokens": sums.off if known else 0,
    }


def _sparkline(made: Measuring) -> Table:
    steps = made.session.step_count + 1
    open_table, first = made.parts[-1].table, made.parts[-1].first
    return [
        open_table[index + 1 - first]
        if index + 1 >= first
        else tallies.row_of(made.bases.table, index + 1)
        for index in composition.places(steps, SPARKLINE_COLUMNS, made.tally.largest[1] - 1)
    ]


def _run_fields(made: Measuring, origin: str) -> dict[str, Any]:
    session, run = made.session, made.runs[origin]
    values: dict[str, Any] = {"generation": run.generation + 1, "engine": ENGINE}
    new = made.parts[-1].figures[origin]
    new.events = tail.in_order([*new.events, *made.beside])
    if is_live(session):
        values |= _tail_fields(made, origin, new)
    else:
        values |= {"columns": manifest.pack(msgspec.json.encode(new)), "tail": None, "settled": 0}
    if not is_live(session) or delta.is_stale(session, run):
        delta.keep_entries(session, run)
        values |= {"entries_packed": run.entries_packed, "entries_key": run.entries_key}
    return values


def _tail_fields(made: Measuring, origin: str, new: tail.Figures) -> dict[str, Any]:
    run = made.runs[origin]
    settled = made.bases.step
    begins = made.settled[0].first if made.settled else settled + 1
    whole = tail.joined(made.settled[0].figures[origin], new) if made.settled else new
    row = tail.StoredFigures(b"", run.tail, run.settled, run.generation)
    old = tail.tail_of(row)
    if run.tail is None or begins <= run.settled:
        lowest = min(begins, run.settled + 1)
    else:
        lowest = tail.first_change(old.figures, whole, begins)
    values: dict[str, Any] = {
        "tail": msgspec.json.encode(tail.Tail(new, tail.rewritten(old, run.generation + 1, lowest)))
    }
    # Reopened steps may settle at the same step again, with other figures.
    if made.settled or settled != run.settled or run.tail is None:
        values |= {"settled": settled, "columns": _settled_columns(made, origin, begins - 1)}
    if origin == RECORDED and (made.settled or settled != run.settled or run.bases is None):
        values["bases"] = msgspec.msgpack.encode(made.bases)
    return values


def _settled_columns(made: Measuring, origin: str, kept: int) -> bytes:
    """Settled figures that remain, up to a step, and those that settle now."""
    found = tail.Figures()
    if kept:
        columns = Run.objects.values_list("columns", flat=True).get(pk=made.runs[origin].pk)
        found = tail.until(msgspec.json.decode(manifest.unpack(columns), type=tail.Figures), kept)
    if made.settled:
        found = tail.joined(found, made.settled[0].figures[origin])
    return manifest.pack(msgspec.json.encode(found))
