"""Verify a log: compare what the store would show of it with what a second reader finds in it.

The log is imported into a team of its own, read back from the rows as the replay does, and compared
call by call; then all is rolled back. Nothing of it stays in the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from typing import NamedTuple

from django.db import transaction
from django.utils.crypto import get_random_string

from compaction.context import wire
from compaction.context.session import Usage
from sessions import importers
from sessions.actions.record.append import append_all
from sessions.actions.record.measure import measure
from sessions.actions.record.numbering import recorded_run
from sessions.actions.record.prepare import Count
from sessions.importers.records import Log
from sessions.models import Session, Team
from sessions.models.record import manifest
from sessions.models.record.model_calls import calls_of
from sessions.models.record.values import contents
from sessions.second_reader import READERS
from sessions.second_reader.reread import Billed, Reread, RereadPiece, RereadStep, piece, pieces

_UNREADABLE = (AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What a reader raises for values of kinds that no agent writes: other files are still verified."""


class LogDifference(NamedTuple):
    """The first difference of a session: its external id, the step (0 for none), the log's line,
    and what each reader says."""

    session: str
    step: int
    line: int
    what: str

    def __str__(self) -> str:
        where = f"step {self.step}, line {self.line}: " if self.step else ""
        return f"{self.session}: {where}{self.what}"


@dataclass(slots=True)
class Verified:
    """The result for one log. `why_not` says why it was not verified, empty if it was.

    `prompt_tokens` are the sum over the steps with usage. `notes` are sentences on what the calls
    were billed beyond the messages of the log, and on what was not compared.
    """

    format: str
    why_not: str = ""
    sessions: int = 0
    steps: int = 0
    prompt_tokens: int = 0
    compactions: int = 0
    differences: list[LogDifference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def verify_log(data: bytes, name: str, count: Count) -> Verified:
    """Compare both readings of a log. Raises NotALog if it is none.

    On SQLite the store takes no other writes meanwhile.
    """
    log = importers.parse(data, name)
    found = Verified(log.format, sessions=len(log.sessions))
    reader, importer = READERS.get(log.format), importers.IMPORTERS[log.format]
    if reader is None:
        found.why_not = "no second reader"
    elif importer.split is not None and len(importer.split(data)) > 1:
        found.why_not = "the logs of several sessions were joined; verify each file"
    if reader is None or found.why_not:
        return found
    try:
        _compare_all(found, log, [one for one in reader(data) if one.steps or one.end], count)
    except _UNREADABLE as error:
        what = f"it cannot be read twice: {type(error).__name__}. Its values are of other kinds."
        found.differences.append(LogDifference(log.format, 0, 0, what))
    return found


def _compare_all(found: Verified, log: Log, reread: Sequence[Reread], count: Count) -> None:
    with transaction.atomic():
        team = Team.objects.create(slug=f"verify-{get_random_string(24)}", name="verify")
        for session, theirs in zip_longest(log.sessions, reread):
            if session is None or theirs is None:
                what = f"the log has {len(reread)} sessions, ContextLab {len(log.sessions)}"
                found.differences.append(LogDifference(log.format, 0, 0, what))
                break
            stored = append_all(team, [session], count, source=log.format)[0].session
            measure(stored)
            _compare(found, stored, theirs)
        transaction.set_rollback(True)


def _compare(found: Verified, session: Session, theirs: Reread) -> None:
    ours = _shown(session)
    found.differences += _first_difference(session.external_id, theirs, ours)
    found.notes += _hidden(session, theirs)
    found.notes += _reordered(session, theirs, ours)
    found.steps += len(theirs.steps)
    found.prompt_tokens += sum(step.billed.prompt for step in theirs.steps if step.billed)
    found.compactions += theirs.compactions


# What the store shows


def _shown(session: Session) -> Reread:
    """The recorded contexts of a session, from its rows."""
    columns = manifest.columns(recorded_run(session))
    read = _pieces(session)
    places = list(zip(*(columns[n] for n in ("from", "to", "flags", "position")), strict=True))

    def context(step: int) -> list[RereadPiece]:
        return [
            _replacement(read[position]) if flags & manifest.REPLACEMENT else read[position]
            for start, end, flags, position in places
            if start <= step and (not end or step < end)
        ]

    steps = [RereadStep(0, context(call.step), _billed(call.usage)) for call in calls_of(session)]
    return Reread(steps, context(session.step_count + 1), session.compaction_count)


def _billed(usage: Usage | None) -> Billed | None:
    if usage is None:
        return None
    whole = usage.billed
    beside = whole.prompt + whole.output - usage.prompt - usage.output
    return Billed(usage.uncached, usage.cache_read, usage.cache_write, usage.output, beside)


def _pieces(session: Session) -> list[RereadPiece]:
    """The pieces of all blocks, by position."""
    rows = list(session.blocks.order_by("position").values_list("sha", "message__line"))
    data = contents(session, [sha for sha, _ in rows])
    return [pieces([wire.decode(data[sha])], line)[0] for sha, line in rows]


def _replacement(original: RereadPiece) -> RereadPiece:
    return piece("cleared", "", original.line)


# Comparing


def _first_difference(name: str, theirs: Reread, ours: Reread) -> Iterator[LogDifference]:
    # A compaction may bring what it keeps into another order; the store leaves it where it was.
    in_order = not theirs.compactions
    for number, (one, two) in enumerate(zip(theirs.steps, ours.steps, strict=False), start=1):
        what = _apart(one.context, two.context, in_order=in_order)
        if not what and one.billed != two.billed:
            what = f"usage in the log is {_told(one.billed)}, in ContextLab {_told(two.billed)}"
        if what:
            yield LogDifference(name, number, one.line, what)
            return
    if len(theirs.steps) != len(ours.steps):
        what = f"the log has {len(theirs.steps)} steps, ContextLab {len(ours.steps)}"
        yield LogDifference(name, 0, 0, what)
    elif what := _apart(theirs.end, ours.end, in_order=in_order):
        yield LogDifference(name, 0, 0, f"after the last step {what}")
    elif theirs.compactions != ours.compactions:
        what = f"the log has {theirs.compactions} compactions, ContextLab {ours.compactions}"
        yield LogDifference(name, 0, 0, what)


def _apart(theirs: Sequence[RereadPiece], ours: Sequence[RereadPiece], *, in_order: bool) -> str:
    """The first place where two contexts differ, in words; empty if they are equal."""
    if not in_order and sorted(one.same for one in theirs) == sorted(one.same for one in ours):
        return ""
    for one, two in zip_longest(theirs, ours):
        if one is None or two is None or one.same != two.same:
            return f"the log has {_named(one)}, ContextLab {_named(two)}"
    return ""


def _named(one: RereadPiece | None) -> str:
    if one is None:
        return "nothing more in context"
    return f"{one.form} {one.digest[:8]} of line {one.line} ({one.chars:,} chars: {one.begins!r})"


def _told(billed: Billed | None) -> str:
    if billed is None:
        return "unknown"
    *parts, beside = billed
    return str(tuple(parts)) + (f" and {beside:,} tokens beside" if beside else "")


# Notes


def _reordered(session: Session, theirs: Reread, ours: Reread) -> Iterator[str]:
    """After a compaction: contexts that are equal but for the order of their messages."""
    both = zip(_contexts(theirs), _contexts(ours), strict=False)
    many = sum([p.same for p in one] != [p.same for p in two] for one, two in both)
    if theirs.compactions and many:
        yield (
            f"{session.external_id}: {many} contexts have their messages in another order in the "
            "log since a compaction: ContextLab leaves what stays where it was."
        )


def _contexts(reread: Reread) -> list[list[RereadPiece]]:
    return [*(step.context for step in reread.steps), reread.end]


def _hidden(session: Session, theirs: Reread) -> Iterator[str]:
    """Where the usage of calls says more than their messages: a prefix that is in every prompt, and
    prompts that shrank though nothing left."""
    if session.hidden_tokens:
        yield (
            f"{session.external_id}: ≈{session.hidden_tokens:,} tokens of each prompt (system "
            "prompt, tools) are not in the log."
        )
    shrunk = [
        (number, step, before.billed.prompt - step.billed.prompt)
        for number, (before, step) in enumerate(pairwise(theirs.steps), start=2)
        if before.billed and step.billed and step.billed.prompt < before.billed.prompt
        if step.context[: len(before.context)] == before.context
    ]
    if shrunk:
        number, step, fewer = shrunk[0]
        many = "1 prompt is" if len(shrunk) == 1 else f"{len(shrunk)} prompts are"
        yield (
            f"{session.external_id}: {many} smaller than the one before, though nothing left the "
            f"context in the log; first at step {number}, line {step.line}: {fewer:,} tokens."
        )
