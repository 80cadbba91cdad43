"""Measure: what a session's records add up to, once they are stored.

Work is linear in what is new for a live session, and in the session for an imported one, whose
counting is learned from all of it. For that, the steps of a live session settle: what the older
ones add up to is kept (`Run.bases`, `Run.columns`), and only those after are read and computed.
Where something older changes after all, it goes on from the last base before that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from django.db.models import Q

from compaction import prices, tokens
from compaction.session import Call
from sessions.actions import tally as tallies
from sessions.actions.measured import ENGINE, Bases, Measuring, is_live, keep
from sessions.actions.news import RECORDED, SERVED, News, read_news
from sessions.actions.tally import Part
from sessions.models import Revision, Run, Session
from sessions.models.manifest import Extent
from sessions.models.values import block_id, recorded_session

SETTLE_ABOVE, LEAVE_OPEN = 128, 32
"""When more steps than the first are open, all but about the second settle: usage that comes late
rarely comes later, and columns are written anew once in a hundred steps."""

Columns = Mapping[str, Sequence[int]]


def measure(session: Session) -> None:
    """Bring a session's counting, sums and figures per step up to date with its records.

    Writes only derived values. Computes with no transaction open: what is stored meanwhile is left
    to the next measuring, and when another one was faster it begins again.
    """
    while not keep(_compute(session)):
        pass
    session.refresh_from_db()


def is_outdated(session: Session) -> bool:
    """Whether its figures were measured by the rules of an older release."""
    runs = Run.objects.filter(session=session, origin=Run.Origin.RECORDED)
    return runs.filter(engine__lt=ENGINE).exists()


def reopen(session: Session, step: int) -> None:
    """Note that something of a step changed that may be settled: usage that came late, a message
    of an older call."""
    runs = Run.objects.filter(session=session, origin=Run.Origin.RECORDED, settled__gte=step)
    runs.filter(Q(reopened=None) | Q(reopened__gt=step)).update(reopened=step)


def scaled_columns(session: Session, columns: Columns) -> dict[str, Sequence[int]]:
    """Manifest columns with tokens in the session's counting."""
    return {**columns, "tokens": [session.scaled(count) for count in columns["tokens"]]}


# Reading and computing


def _compute(session: Session) -> Measuring:
    session.refresh_from_db()
    rows = session.runs.filter(origin__in=(RECORDED, SERVED)).defer("columns", "entries_packed")
    runs = {row.origin: row for row in rows}
    bases = _bases(runs)
    while True:
        base = bases.found[-1].copy() if bases.found else tallies.start(runs)
        extents = {name: Extent(base.blocks, base.heads[name]) for name in runs}
        news = read_news(session, runs, base.step, extents, base.seq)
        made = Measuring(session, runs, bases, base, news)
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
    bases = msgspec.msgpack.decode(run.bases, type=Bases) if run.bases else Bases(engine=ENGINE)
    if bases.engine < ENGINE:
        bases = Bases(engine=ENGINE)
    if run.reopened is not None:
        bases.reopen(run.reopened)
    if any(set(base.standing) != set(runs) for base in bases.found):
        bases.reopen(0)  # the served run is new
    return bases


def _go_on(made: Measuring) -> None:
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


def _take(made: Measuring, last: int) -> Part:
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
    if counting.encoding != tokens.STORED:
        session.token_basis = Session.Basis.ESTIMATED


def _hidden(part: Part, news: News) -> int:
    revisions = [one for one in news.revisions[RECORDED] if one.trigger != "clear"]
    prompts = {step: use.prompt for step, use in part.uses.items()}
    seen = {step: part.seen_at(step) for step in prompts}
    return least_gap([revision.step for revision in revisions], prompts, seen)


def least_gap(compacted: Iterable[int], prompts: Mapping[int, int], seen: Mapping[int, int]) -> int:
    """Prompt tokens that no record shows (system prompt, tool schemas), inferred.

    What the first reported prompt had beyond its records, and the first after each compaction;
    the least of these, as a log that goes on from another also lacks that one's messages. Of a
    live session it is the first, and stays that. `compacted` are steps of revisions, `prompts`
    reported tokens and `seen` those of the records, both by step in order.
    """
    gaps = []
    for begin in [1, *compacted]:
        step = next((step for step in prompts if step >= begin), None)
        if step is not None:
            gaps.append(max(prompts[step] - seen[step], 0))
    return min(gaps, default=0)


def _size_revisions(made: Measuring, part: Part, last: int) -> None:
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
