"""Measure: derive counting, sums and figures from a session's stored records.

Work is linear in new records for live sessions, and in the whole session for imported ones, whose
counting is calibrated on all of it. Steps of live sessions settle: sums of older ones are stored
(`Run.bases`, `Run.columns`), and only later ones are read and computed. If something older changes,
measuring continues from the last base before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from django.db.models import Q

from compaction import tokens
from compaction.context.session import Call
from compaction.prices import prices
from compaction.token_ratio import counting_for
from sessions.actions.record import tally as tallies
from sessions.actions.record.measured import ENGINE, Bases, Measuring, is_live, keep
from sessions.actions.record.news import MANAGED, RECORDED, News, read_news
from sessions.actions.record.tally import TallyPart
from sessions.models import Revision, Run, Session
from sessions.models.record.manifest import Extent
from sessions.models.record.values import block_id, recorded_session
from sessions.models.web.statements import Statement, given_uuid

SETTLE_ABOVE, LEAVE_OPEN = 32, 8
"""When more open steps than the first number exist, all but about the second settle: late usage is
rarely later, and columns are rewritten only once in some twenty steps."""

ROUNDS = 5
"""How often an import measures a session that is written meanwhile."""

Columns = Mapping[str, Sequence[int]]


def measure(session: Session) -> None:
    """Update a session's counting, sums and figures per step.

    Writes only derived values, and computes outside any transaction: records stored meanwhile are
    left to the next run, and if another measurement was faster it starts again.
    """
    while not keep(_compute(session)):
        pass
    session.reread()


def measure_imported(session: Session) -> bool:
    """Measure an imported session, with what is stored meanwhile. Returns False if more is stored
    all the time: its figures are left to a later job."""
    for _ in range(ROUNDS):
        measure(session)
        if session.measured:
            return True
    return False


def is_outdated(session: Session) -> bool:
    """Whether its figures were measured by the rules of an older release."""
    runs = Run.objects.filter(session=session, origin=Run.Origin.RECORDED)
    return runs.filter(engine__lt=ENGINE).exists()


def reopen(session: Session, step: int) -> None:
    """Mark a possibly settled step as changed, as by late usage or a message of an older call."""
    runs = Run.objects.filter(session=session, origin=Run.Origin.RECORDED, settled__gte=step)
    runs.filter(Q(reopened=None) | Q(reopened__gt=step)).update(reopened=step)


# Reading and computing


def _compute(session: Session) -> Measuring:
    session.reread()
    runs = {row.origin: row for row in _RUNS.rows(session=session.pk)}
    for run in runs.values():
        run.session = session
    bases = _bases(runs)
    while True:
        base = bases.newest or tallies.start(runs)
        if set(base.standing) != set(runs):
            bases.reopen(0)  # the managed run is new
            continue
        extents = {name: Extent(base.blocks, base.heads[name]) for name in runs}
        news = read_news(session, runs, base.step, extents, base.seq)
        made = Measuring(session, runs, bases, base, news)
        if news.lowest <= base.step:
            bases.reopen(news.lowest)
            continue
        hidden_unknown = bool(bases.step) and base.hidden is None
        _go_on(made)
        if hidden_unknown and made.tally.hidden is not None:
            bases.reopen(0)  # every size of a revision includes the hidden part
            continue
        return made


_RUNS = Statement(
    lambda: Run.objects.filter(
        session_id=given_uuid("session"), origin__in=(RECORDED, MANAGED)
    ).defer("columns", "entries_packed")
)


def _bases(runs: Mapping[str, Run]) -> Bases:
    run = runs[RECORDED]
    bases = Bases.stored(run.bases)
    if run.reopened is not None:
        bases.reopen(run.reopened)
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
                made.bases.keep(tally)
                made.bases.table += tallies.packed(made.settled[0].table)
    else:
        _choose_counting(session, [call for call, *_ in news.calls])
    made.parts.append(_take(made, last + 1))


def _take(made: Measuring, last: int) -> TallyPart:
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
    """Exact if o200k is the model's vocabulary, else a ratio calibrated on reported usage."""
    _learn_model(session, calls)
    value = recorded_session(session, window=0, with_text=False)
    rows = session.blocks.values_list("message__seq", "index", "tokens")
    counting = counting_for(value, {block_id(seq, i): count for seq, i, count in rows})
    session.token_ratio, session.token_basis = counting.permille, counting.basis
    if counting.encoding != tokens.STORED:
        session.token_basis = Session.Basis.ESTIMATED


def _hidden(part: TallyPart, news: News) -> int:
    revisions = [one for one in news.revisions[RECORDED] if one.trigger != "clear"]
    prompts = {step: use.opening for step, use in part.uses.items()}
    seen = {step: part.seen_at(step) for step in prompts}
    return least_gap([revision.step for revision in revisions], prompts, seen)


def least_gap(compacted: Iterable[int], prompts: Mapping[int, int], seen: Mapping[int, int]) -> int:
    """Infer the prompt tokens that no record shows (system prompt, tool schemas).

    The difference between a reported prompt and its records, for the first prompt and the first
    after each compaction; the minimum is used, because a log that continues another also lacks that
    one's messages. Live sessions keep the first value. `compacted` are steps of revisions;
    `prompts` are reported tokens and `seen` those of the records, by step in order.
    """
    gaps = []
    for begin in [1, *compacted]:
        step = next((step for step in prompts if step >= begin), None)
        if step is not None:
            gaps.append(max(prompts[step] - seen[step], 0))
    return min(gaps, default=0)


def _size_revisions(made: Measuring, part: TallyPart, last: int) -> None:
    """Set the sizes of revisions: tokens of recorded ones if the log has none, and cache effects of
    all from usage."""
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
            seen = MANAGED if row.step in part.managed else RECORDED
            use = part.uses.get(row.step) if seen == origin else None
            broken = use.broken if use is not None else None
            if broken is not None and broken.revision == row.number:
                row.cache_rewritten, row.cost_microusd = broken.rewritten, broken.cost
            if _sizes(row) != before:
                made.resized.append(row)


def _sizes(row: Revision) -> tuple[int | None, ...]:
    return row.tokens_before, row.tokens_after, row.cache_rewritten, row.cost_microusd
