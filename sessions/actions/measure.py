"""Measure: what a session's records add up to, once they are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from django.db import transaction
from django.db.models import F

from compaction import composition, prices, tokens
from compaction.cache import CacheUse
from compaction.cache_measured import measured
from compaction.context import KINDS
from compaction.edits import Edit
from compaction.edits import Revision as RevisionValue
from compaction.session import Call
from sessions.actions.figures import figures, is_break
from sessions.live import hint
from sessions.models import ModelCall, Revision, Run, Session, delta, manifest
from sessions.models.values import block_id, calls_of, recorded_session

SPARKLINE_COLUMNS = 60

STORED_ENCODING = "o200k_base"
"""What blocks are counted in; a model of another vocabulary gets an estimate."""

Columns = Mapping[str, Sequence[int]]


def measure(session: Session) -> None:
    """Bring a session's counting, sums and figures per step up to date with its records.

    Reads what is stored, writes only derived values; work is linear in the session.
    """
    with transaction.atomic():
        run = Run.objects.select_for_update().get(session=session, origin=Run.Origin.RECORDED)
        calls = calls_of(session)
        columns = manifest.columns(run)
        _choose_counting(session, calls)
        table = composition.by_step(scaled_columns(session, columns), session.step_count + 1)
        visible = composition.totals(table)
        revisions = _revision_values(run)
        uses = {use.step: use for use in measured(calls, revisions, _price_of)}
        session.hidden_tokens = _hidden(visible, uses, revisions)
        _sum_up(session, table, visible, uses)
        session.cost_at_least = _understates_output(session, columns, uses)
        _cost_calls(session, uses)
        _count_revisions(run, session, columns, visible, uses)
        run.columns = manifest.pack(msgspec.json.encode(figures(session, run, calls, uses)))
        delta.keep_entries(session, run)
        run.save(update_fields=["columns", "entries_packed", "entries_key"])
        session.measured = True
        session.version = F("version") + 1
        session.save()
        session.refresh_from_db()
        hint(f"session:{session.pk}", session.version)


def scaled_columns(session: Session, columns: Columns) -> dict[str, Sequence[int]]:
    """Manifest columns with tokens in the session's counting."""
    return {**columns, "tokens": [session.scaled(count) for count in columns["tokens"]]}


def _price_of(model: str, at: int | None) -> prices.Price | None:
    return prices.price(model, at)


def _choose_counting(session: Session, calls: Sequence[Call]) -> None:
    """Exact where o200k is the model's own vocabulary, else a ratio learned from reported usage."""
    models = [call.model for call in calls if call.model]
    session.model = session.model or (models[-1] if models else "")
    session.window = session.window or prices.window(session.model)
    value = recorded_session(session, window=0, with_text=False)
    rows = session.blocks.values_list("message__seq", "index", "tokens")
    counting = tokens.counting_for(value, {block_id(seq, i): count for seq, i, count in rows})
    session.token_ratio, session.token_basis = counting.permille, counting.basis
    if counting.encoding != STORED_ENCODING:
        session.token_basis = Session.Basis.ESTIMATED


def _revision_values(run: Run) -> list[RevisionValue]:
    return [
        RevisionValue(
            number=row.number,
            step=row.step,
            trigger=row.trigger,  # type: ignore[arg-type]
            edits=tuple(Edit(edit.strategy, (), None, "") for edit in row.edits.all()),
            tokens_before=row.tokens_before or 0,
            tokens_after=row.tokens_after or 0,
        )
        for row in run.revisions.prefetch_related("edits").order_by("number")
    ]


def _hidden(
    visible: Sequence[int], uses: Mapping[int, CacheUse], revisions: Sequence[RevisionValue]
) -> int:
    """Prompt tokens that no record shows (system prompt, tool schemas), inferred.

    What the first reported prompt had beyond its records, and the first after each compaction;
    the least of these, as a log that goes on from another also lacks that one's messages.
    """
    begins = [1, *(revision.step for revision in revisions if revision.trigger != "clear")]
    gaps = []
    for begin in begins:
        step = next((step for step in sorted(uses) if step >= begin), None)
        if step is not None:
            gaps.append(max(uses[step].prompt - visible[step - 1], 0))
    return min(gaps, default=0)


def _sum_up(
    session: Session,
    table: list[list[int]],
    visible: Sequence[int],
    uses: Mapping[int, CacheUse],
) -> None:
    session.sparkline = composition.sampled(table, SPARKLINE_COLUMNS)
    largest = max((use.prompt for use in uses.values()), default=0)
    session.peak_measured = largest > 0
    session.peak_tokens = largest or max(visible, default=0)
    session.usage_calls = len(uses)
    session.fresh_tokens = sum(use.fresh for use in uses.values())
    session.cache_read_tokens = sum(use.read for use in uses.values())
    session.cache_write_tokens = sum(use.write_5m + use.write_1h for use in uses.values())
    session.output_tokens = sum(use.output for use in uses.values())
    costs = [use.cost for use in uses.values()]
    known = [cost for cost in costs if cost is not None]
    session.cost_microusd = sum(known) if known and len(known) == len(costs) else None
    session.break_count = sum(is_break(use.broken) for use in uses.values())


def _understates_output(session: Session, columns: Columns, uses: Mapping[int, CacheUse]) -> bool:
    """Whether calls reported clearly fewer output tokens than they wrote.

    Some clients log a placeholder while a response streams; costs are then a lower bound.
    """
    own = (KINDS.index("assistant"), KINDS.index("thinking"))
    written = sum(
        session.scaled(count)
        for kind, count, born in zip(
            columns["kind"], columns["tokens"], columns["from"], strict=True
        )
        if kind in own and born - 1 in uses
    )
    return sum(use.output for use in uses.values()) * 1.5 < written


def _cost_calls(session: Session, uses: Mapping[int, CacheUse]) -> None:
    changed = []
    for call in (
        session.calls.filter(step__in=list(uses)) if len(uses) < 500 else session.calls.all()
    ):
        use = uses.get(call.step)
        if use is not None and call.cost_microusd != use.cost:
            call.cost_microusd = use.cost
            changed.append(call)
    ModelCall.objects.bulk_update(changed, ["cost_microusd"], batch_size=200)


def _count_revisions(
    run: Run,
    session: Session,
    columns: Columns,
    visible: Sequence[int],
    uses: Mapping[int, CacheUse],
) -> None:
    """What recorded revisions did: tokens where the log states none, cache as usage shows it."""
    closed: dict[int, int] = {}
    opened: dict[int, int] = {}
    for number, tokens_, is_open in zip(
        columns["closed"], columns["tokens"], columns["edit"], strict=True
    ):
        if number:
            closed[number] = closed.get(number, 0) + session.scaled(tokens_)
        if is_open:
            opened[is_open] = opened.get(is_open, 0) + session.scaled(tokens_)
    rows = list(run.revisions.prefetch_related("edits__summary"))
    for row in rows:
        if row.step > len(visible):
            continue
        came = opened.get(row.number, 0) + sum(
            session.scaled(edit.summary.tokens) for edit in row.edits.all() if edit.summary
        )
        after = session.hidden_tokens + visible[row.step - 1]
        if not row.tokens_stated:
            row.tokens_before = max(after - came + closed.get(row.number, 0), 0)
            row.tokens_after = after
        use = uses.get(row.step)
        if use is not None and use.broken is not None and use.broken.revision == row.number:
            row.cache_rewritten, row.cost_microusd = use.broken.rewritten, use.broken.cost
    fields = ["tokens_before", "tokens_after", "cache_rewritten", "cost_microusd"]
    Revision.objects.bulk_update(rows, fields, batch_size=100)
