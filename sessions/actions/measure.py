"""Measure: what a session's records add up to, once they are stored.

Work is linear in what is new for a live session, and in the session for an imported one, whose
counting is learned from all of it. For that, the steps of a live session settle: what the older
ones add up to is kept (`Run.bases`, `Run.columns`), and only those after are read and computed.
Where something older changes after all, it goes on from the last base before that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from compaction import composition, prices, tokens
from compaction.session import Call
from sessions.actions import tally as tallies
from sessions.actions.events import sub_agents
from sessions.actions.news import RECORDED, SERVED, News, read_news
from sessions.actions.tally import Part, Table, Tally
from sessions.live import hint
from sessions.models import ModelCall, Revision, Run, Session, delta, manifest, tail
from sessions.models.manifest import Extent
from sessions.models.values import block_id, recorded_session

SPARKLINE_COLUMNS = 60

SETTLE_ABOVE, LEAVE_OPEN = 128, 32
"""When more steps than the first are open, all but about the second settle: usage that comes late
rarely comes later, and columns are written anew once in a hundred steps."""

STORED_ENCODING = "o200k_base"
"""What blocks are counted in; a model of another vocabulary gets an estimate."""

Columns = Mapping[str, Sequence[int]]


class Bases(msgspec.Struct):
    """Where measuring can go on from, oldest first, and the contexts of the steps up to the last
    (see `tally.packed`)."""

    found: list[Tally] = []
    table: bytes = b""

    @property
    def step(self) -> int:
        """The newest step that is settled."""
        return self.found[-1].step if self.found else 0

    def reopen(self, step: int) -> None:
        """Forget what depends on a step."""
        self.found = [base for base in self.found if base.step < step]
        self.table = tallies.cut(self.table, self.step)


@dataclass(slots=True)
class _Measuring:
    """One measuring: what it read, and what came out."""

    session: Session
    runs: dict[str, Run]
    bases: Bases
    tally: Tally
    news: News
    parts: list[Part] = field(default_factory=list)
    settled: list[Part] = field(default_factory=list)
    resized: list[Revision] = field(default_factory=list)


def measure(session: Session) -> None:
    """Bring a session's counting, sums and figures per step up to date with its records.

    Writes only derived values. Computes with no transaction open: what is stored meanwhile is left
    to the next measuring, and when another one was faster it begins again.
    """
    while not _keep(_compute(session)):
        pass
    session.refresh_from_db()


def reopen(session: Session, step: int) -> None:
    """Note that something of a step changed that may be settled: usage that came late, a message
    of an older call."""
    runs = Run.objects.filter(session=session, origin=Run.Origin.RECORDED, settled__gte=step)
    runs.filter(Q(reopened=None) | Q(reopened__gt=step)).update(reopened=step)


def scaled_columns(session: Session, columns: Columns) -> dict[str, Sequence[int]]:
    """Manifest columns with tokens in the session's counting."""
    return {**columns, "tokens": [session.scaled(count) for count in columns["tokens"]]}


def is_live(session: Session) -> bool:
    """Whether an agent sends it while it runs: then its counting stays what it was at first."""
    return session.source == "api"


# Reading and computing


def _compute(session: Session) -> _Measuring:
    session.refresh_from_db()
    rows = session.runs.filter(origin__in=(RECORDED, SERVED)).defer("columns", "entries_packed")
    runs = {row.origin: row for row in rows}
    bases = _bases(runs)
    while True:
        base = bases.found[-1].copy() if bases.found else tallies.start(runs)
        extents = {name: Extent(base.blocks, base.heads[name]) for name in runs}
        news = read_news(session, runs, base.step, extents, base.seq)
        made = _Measuring(session, runs, bases, base, news)
        if news.lowest <= base.step:
            bases.reopen(news.lowest)
            continue
        hidden_unknown = bool(bases.found) and base.hidden is None
        _go_on(made)
        if hidden_unknown and made.tally.hidden is not None:
            bases.reopen(0)  # every size of a revision holds the hidden part
            continue
        return made


def _bases(runs: Mapping[str, Run]) -> Bases:
    run = runs[RECORDED]
    bases = msgspec.msgpack.decode(run.bases, type=Bases) if run.bases else Bases()
    if run.reopened is not None:
        bases.reopen(run.reopened)
    if any(set(base.standing) != set(runs) for base in bases.found):
        bases.reopen(0)  # the served run is new
    return bases


def _go_on(made: _Measuring) -> None:
    session, tally, news = made.session, made.tally, made.news
    last = session.step_count
    if is_live(session):
        calls = [call for call, *_ in news.calls]
        _learn_model(session, calls)
        if last - tally.step > SETTLE_ABOVE:
            place = news.divide(tally.step, last - LEAVE_OPEN)
            if place is not None:
                step, tally.blocks, tally.seq = place
                made.settled.append(_take(made, step))
                made.bases.found.append(tally.copy())
                made.bases.table += tallies.packed(made.settled[0].table)
    else:
        _choose_counting(session, [call for call, *_ in news.calls])
    made.parts.append(_take(made, last + 1))


def _take(made: _Measuring, last: int) -> Part:
    tally, news = made.tally, made.news
    part = tallies.go_on(tally, made.session, news, last)
    if not is_live(made.session):
        tally.hidden = _hidden(part, news)
    _size_revisions(made, part, last)
    tallies.conclude(tally, news, part, last)
    return part


def _learn_model(session: Session, calls: Sequence[Call]) -> None:
    models = [call.model for call in calls if call.model]
    session.model = session.model or (models[-1] if models else "")
    session.window = session.window or prices.window(session.model)


def _choose_counting(session: Session, calls: Sequence[Call]) -> None:
    """Exact where o200k is the model's own vocabulary, else a ratio learned from reported usage."""
    _learn_model(session, calls)
    value = recorded_session(session, window=0, with_text=False)
    rows = session.blocks.values_list("message__seq", "index", "tokens")
    counting = tokens.counting_for(value, {block_id(seq, i): count for seq, i, count in rows})
    session.token_ratio, session.token_basis = counting.permille, counting.basis
    if counting.encoding != STORED_ENCODING:
        session.token_basis = Session.Basis.ESTIMATED


def _hidden(part: Part, news: News) -> int:
    """Prompt tokens that no record shows (system prompt, tool schemas), inferred.

    What the first reported prompt had beyond its records, and the first after each compaction;
    the least of these, as a log that goes on from another also lacks that one's messages. Of a
    live session it is the first, and stays that.
    """
    revisions = news.revisions[RECORDED]
    begins = [1, *(revision.step for revision in revisions if revision.trigger != "clear")]
    gaps = []
    for begin in begins:
        step = next((step for step in part.uses if step >= begin), None)
        if step is not None:
            gaps.append(max(part.uses[step].prompt - part.seen_at(step), 0))
    return min(gaps, default=0)


def _size_revisions(made: _Measuring, part: Part, last: int) -> None:
    """What revisions did: recorded ones in tokens where the log states none, all of them to the
    cache as usage shows it."""
    session, hidden = made.session, made.tally.hidden or 0
    opened: dict[int, int] = {}
    closed: dict[int, int] = {}
    for opener, closer, count in made.news.moved():
        opened[opener] = opened.get(opener, 0) + session.scaled(count)
        closed[closer] = closed.get(closer, 0) + session.scaled(count)
    for origin, rows in made.news.revisions.items():
        for row in rows:
            if not part.first <= row.step <= last:
                continue
            before = _sizes(row)
            if origin == RECORDED and not row.tokens_stated:
                came = opened.get(row.number, 0) + sum(
                    session.scaled(edit.summary.tokens) for edit in row.edits.all() if edit.summary
                )
                after = hidden + part.visible[RECORDED][row.step - part.first]
                row.tokens_before = max(after - came + closed.get(row.number, 0), 0)
                row.tokens_after = after
            seen = SERVED if row.step in part.served else RECORDED
            use = part.uses.get(row.step) if seen == origin else None
            broken = use.broken if use is not None else None
            if broken is not None and broken.revision == row.number:
                row.cache_rewritten, row.cost_microusd = broken.rewritten, broken.cost
            if _sizes(row) != before:
                made.resized.append(row)


def _sizes(row: Revision) -> tuple[int | None, ...]:
    return row.tokens_before, row.tokens_after, row.cache_rewritten, row.cost_microusd


# Writing


def _keep(made: _Measuring) -> bool:
    """Store what came out; False when another measuring was faster."""
    session, runs = made.session, made.runs
    fields = _session_fields(made)
    rows = {origin: _run_fields(made, origin) for origin in runs}
    with transaction.atomic():
        now = Session.objects.select_for_update().values_list("version", flat=True)
        measured = now.get(pk=session.pk) == session.version
        if not _write_run(runs[RECORDED], rows.pop(RECORDED)):
            return False
        for origin, values in rows.items():
            Run.objects.filter(pk=runs[origin].pk).update(**values)
        reopened = runs[RECORDED].reopened
        if reopened is not None:
            Run.objects.filter(pk=runs[RECORDED].pk, reopened=reopened).update(reopened=None)
        _write_costs(made)
        Session.objects.filter(pk=session.pk).update(
            **fields, measured=measured, version=F("version") + 1, changed=timezone.now()
        )
        version = Session.objects.values_list("version", flat=True).get(pk=session.pk)
        hint(f"session:{session.pk}", version)
    return True


def _write_run(run: Run, values: dict[str, Any]) -> bool:
    # One statement: of two measurings that read the same generation the first writes.
    return bool(Run.objects.filter(pk=run.pk, generation=run.generation).update(**values))


def _write_costs(made: _Measuring) -> None:
    uses = {step: use for part in (*made.settled, *made.parts) for step, use in part.uses.items()}
    changed = [
        ModelCall(pk=pk, cost_microusd=uses[call.step].cost)
        for call, pk, cost in made.news.calls
        if call.step in uses and uses[call.step].cost != cost
    ]
    ModelCall.objects.bulk_update(changed, ["cost_microusd"], batch_size=200)
    fields = ["tokens_before", "tokens_after", "cache_rewritten", "cost_microusd"]
    Revision.objects.bulk_update(made.resized, fields, batch_size=100)


def _session_fields(made: _Measuring) -> dict[str, Any]:
    session, tally, sums = made.session, made.tally, made.tally.sums
    fields = {
        "hidden_tokens": tally.hidden or 0,
        "sparkline": _sparkline(made),
        "peak_measured": sums.prompt > 0,
        "peak_tokens": sums.prompt or max(tally.largest[0], 0),
        "usage_calls": sums.calls,
        "fresh_tokens": sums.fresh,
        "cache_read_tokens": sums.read,
        "cache_write_tokens": sums.write,
        "output_tokens": sums.output,
        "cost_microusd": sums.cost if sums.priced and sums.priced == sums.calls else None,
        "break_count": sums.breaks,
        # Some clients log a placeholder while a response streams; costs are then a lower bound.
        "cost_at_least": sums.output * 1.5 < sums.written,
        "model": session.model,
        "window": session.window,
    }
    if is_live(session):
        return fields
    return fields | {"token_ratio": session.token_ratio, "token_basis": session.token_basis}


def _sparkline(made: _Measuring) -> Table:
    steps = made.session.step_count + 1
    open_table, first = made.parts[-1].table, made.parts[-1].first
    return [
        open_table[index + 1 - first]
        if index + 1 >= first
        else tallies.row_of(made.bases.table, index + 1)
        for index in composition.places(steps, SPARKLINE_COLUMNS, made.tally.largest[1] - 1)
    ]


def _run_fields(made: _Measuring, origin: str) -> dict[str, Any]:
    session, run = made.session, made.runs[origin]
    values: dict[str, Any] = {"generation": run.generation + 1}
    new = made.parts[-1].figures[origin]
    new.events = tail.in_order([*new.events, *sub_agents(session)])
    if is_live(session):
        values |= _tail_fields(made, origin, new)
    else:
        values |= {"columns": manifest.pack(msgspec.json.encode(new)), "tail": None, "settled": 0}
    if not is_live(session) or delta.is_stale(session, run):
        delta.keep_entries(session, run)
        values |= {"entries_packed": run.entries_packed, "entries_key": run.entries_key}
    return values


def _tail_fields(made: _Measuring, origin: str, new: tail.Figures) -> dict[str, Any]:
    run = made.runs[origin]
    settled = made.bases.step
    begins = made.settled[0].first if made.settled else settled + 1
    whole = tail.joined(made.settled[0].figures[origin], new) if made.settled else new
    row = tail.Stored(b"", run.tail, run.settled, run.generation)
    old = tail.tail_of(row)
    if run.tail is None or begins <= run.settled:
        lowest = min(begins, run.settled + 1)
    else:
        lowest = tail.first_change(old.figures, whole, begins)
    values: dict[str, Any] = {
        "tail": msgspec.json.encode(tail.Tail(new, tail.rewritten(old, run.generation + 1, lowest)))
    }
    if settled != run.settled or run.tail is None:
        values |= {"settled": settled, "columns": _settled_columns(made, origin, begins - 1)}
    if origin == RECORDED and (made.settled or settled != run.settled or run.bases is None):
        values["bases"] = msgspec.msgpack.encode(made.bases)
    return values


def _settled_columns(made: _Measuring, origin: str, kept: int) -> bytes:
    """Settled figures up to a step that stay, and those that settle now."""
    found = tail.Figures()
    if kept:
        columns = Run.objects.values_list("columns", flat=True).get(pk=made.runs[origin].pk)
        found = tail.until(msgspec.json.decode(manifest.unpack(columns), type=tail.Figures), kept)
    if made.settled:
        found = tail.joined(found, made.settled[0].figures[origin])
    return manifest.pack(msgspec.json.encode(found))
