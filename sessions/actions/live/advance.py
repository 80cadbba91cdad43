"""Advance the managed run of a session to what its agent has sent."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from math import inf

from django.db.models import BigIntegerField, F
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Cast

from compaction.context import edits
from compaction.fold.fold import Arrival, State, advance, marks_of
from sessions.actions.live.arrivals import Facts, NewRecords, StepCalls
from sessions.actions.live.artefacts import label
from sessions.actions.live.folds import Fold, Raced, Stamp
from sessions.actions.live.runs import RunWriter, UnsavedRows
from sessions.actions.web.changed import publish
from sessions.models import Run, Session
from sessions.models.erasure.kept import while_kept
from sessions.models.web.statements import Update, given_columns, given_int, given_uuid

SETTLED = edits.BY_THE_AGENT | {"pin"}
"""Triggers of revisions made without a strategy; strategies still run after them."""


def advance_to(
    fold: Fold, session: Session, facts: Facts, target: int, *, seconds: float = inf
) -> bool:
    """Process every step up to `target`, and store the result; return whether all were processed.

    Decides as a simulation does, but nothing for calls that were made without a context of this
    run: many of them may come at once. A step already processed is repeated if something new
    belongs to it. Stops after `seconds` of CPU; the next call goes on from there. Raises Raced.
    """
    end = time.thread_time() + seconds
    news = NewRecords.of(fold, session, facts)
    begin = news.begin(fold, target)
    if begin > target:
        return True
    # Measuring may run after the first usage report, from which the fold learned the same.
    fold.state.hidden = session.hidden_tokens or fold.state.hidden
    fold.state.window = session.window_taken
    calls = StepCalls(fold, session, begin, target)
    revisions: list[edits.Revision] = []
    for step in range(begin, target + 1):
        arrival = news.arrival(fold.state, step, calls, last=step == target)
        fold.late.update((b.position, step) for b in arrival.blocks if b.born != step)
        fold.weigh(arrival.blocks)
        revisions.extend(fold.stopwatch.over(_advance(fold.state, arrival)))
        if time.thread_time() > end:
            break
    fold.taken += news.looked_at
    fold.left_out = [block.position for block in news.blocks[: news.looked_at] if news.out(block)]
    reached = fold.state.step
    fold.recorded = max([fold.recorded, *(n for n, step in news.recorded if step <= reached)])
    store(fold, session, revisions)
    return reached == target


def _advance(state: State, arrival: Arrival) -> Iterator[edits.Revision]:
    _, revision = advance(state, arrival)
    if revision is not None and revision.trigger in SETTLED:
        yield revision
        _, revision = advance(state, Arrival(arrival.step, at=arrival.at, past=arrival.past))
    if revision is not None:
        yield revision


def store(fold: Fold, session: Session, revisions: Sequence[edits.Revision]) -> None:
    """Write the changes of the state since it was refreshed, all or none.

    Raises Raced if another process wrote first, SessionErased.
    """
    run, state = fold.run, fold.state
    assert run is not None and run.policy_version is not None
    old = fold.stamp
    new = Stamp(state.revisions, state.step, fold.taken, old.writes + 1)
    run.head, run.steps, run.taken = new.head, new.steps, new.taken
    run.fold = marks_of(state) | {
        "writes": new.writes,
        "recorded": fold.recorded,
        "counted": state.counted,
        "recited": state.ending.tokens,
        "wanted": [label(wish) for wish in state.wanted],
    }
    now, times = int(time.time() * 1000), fold.stopwatch.times
    news = UnsavedRows(revisions, state.known, fold.late, fold.left_out, now, times)
    # The session's row first, as everyone who writes both locks it before the run's.
    with while_kept(session.pk):
        noted = _note_use(fold, session)
        if noted or revisions:
            publish(session, raised=noted)
        written = _ADVANCE.run(
            run=run.pk,
            old_head=old.head,
            old_steps=old.steps,
            old_taken=old.taken,
            old_writes=old.writes,
            head=run.head,
            steps=run.steps,
            taken=run.taken,
            fold=run.fold,
            token_ratio=fold.ratio,
        )
        if not written:
            raise Raced
        if revisions or fold.late or fold.left_out:
            writer = RunWriter(run, session, run.policy_version, fold.unscaled)
            writer.write(news, fresh=False)
    made = (edit.replacement for revision in revisions for edit in revision.edits)
    fold.weigh(block for block in made if block is not None)
    fold.stamp = new
    fold.late, fold.left_out, fold.unscaled = {}, [], {}


_ADVANCE = Update(
    lambda: (
        Run.objects.alias(writes=Cast(KeyTransform("writes", "fold"), BigIntegerField())).filter(
            pk=given_uuid("run"),
            head=given_int("old_head"),
            steps=given_int("old_steps"),
            taken=given_int("old_taken"),
            writes=given_int("old_writes"),
        ),
        given_columns(Run, ("head", "steps", "taken", "fold", "token_ratio")),
    )
)


def _note_use(fold: Fold, session: Session) -> bool:
    """Store the size of the session's next prompt with another version, unless more messages
    arrived than were processed; return whether it changed."""
    use = {"used_tokens": fold.state.billed, "counted_tokens": fold.state.counted}
    if use == {name: getattr(session, name) for name in use}:
        return False
    return bool(_USE.run(session=session.pk, blocks=fold.taken, **use))


_USE = Update(
    lambda: (
        Session.objects.filter(pk=given_uuid("session"), block_count=given_int("blocks")),
        given_columns(Session, ("used_tokens", "counted_tokens")) | {"version": F("version") + 1},
    )
)
