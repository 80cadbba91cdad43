"""What compactions of real sessions suggest, and what comes of it: the table in strategies.md.

    python -m benchmarks.policies.adaptive /path/to/logs    # or CONTEXTLAB_CORPUS

Every session of 30 steps or more runs in a window of --window tokens (60,000), with the extractive
summarizer, under each policy below. All its compactions are measured; what they suggest is taken
over, and the sessions run again, until nothing is suggested or three times. One line a round:
compactions, how many took out too much, too little or neither, tokens sent, and what was suggested
after it. At first, what the compactions that the logs record would suggest. Writes nothing of the
logs.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.processes import say
from benchmarks.reviews.fact_ledger import _begin, _stored
from compaction.advice.adaptive import Model, Past, suggestions, task_of
from compaction.context.session import Session
from compaction.losses.ledger import CompactedContext, ledger_of
from compaction.losses.quality import Compacted, fit, measures
from compaction.losses.weighty import named_later
from compaction.policies.policy import Policy, Step
from compaction.simulation.simulate import Run, simulate
from compaction.strategies.compact_settings import Compact
from compaction.summaries.extract import extractive
from compaction.summaries.model.asked import parts_of
from compaction.tokens import count
from tests.planted import cases_of

if TYPE_CHECKING:
    from sessions.models import Session as Stored

LEAST_STEPS = 30
ROUNDS = 3
WITHIN = 50
BEGIN = {
    "the defaults": Compact(),
    "early": Compact(trigger=0.4),
    "small summaries, no messages": Compact(summary_tokens=400, user_tokens=0),
    "many messages": Compact(user_tokens=30_000),
    "progress form, 1,000 tokens": Compact(form="progress", summary_tokens=1_000),
    "nine sections, 1,000 tokens": Compact(summary_tokens=1_000),
}


def task(session: Session) -> str:
    """Return the task of a session by its blocks."""
    calls = [block for block in session.blocks if block.type == "tool_use"]
    changes = sum(
        b.file is not None and b.file.action in ("write", "edit", "delete") for b in calls
    )
    said = sum(b.type == "text" and b.kind == "user" for b in session.blocks)
    return task_of(len(calls), changes, said)


def compactions(session: Session, run: Run) -> Iterator[Past]:
    """Yield the compactions of a simulated run, measured as the product measures stored ones."""
    steps = {f"r{one.number}": one for one in run.revisions}
    calls = [block for block in session.blocks if block.type == "tool_use"]
    kind = task(session)
    for case in cases_of(run, "x"):
        made = steps[case.name.split()[-1]]
        later = [one for one in calls if made.step < one.born <= made.step + WITHIN]
        ledger = ledger_of(
            case.span, case.summary, CompactedContext(case.standing, case.refs),
            sources=case.sources,
            needed=named_later(later),
        )  # fmt: skip
        value = Compacted(
            case.span, case.sources, case.standing, case.summary, count(case.summary),
            made.tokens_before, made.tokens_after, session.window,
        )  # fmt: skip
        parts = parts_of(case.span, case.summary, case.standing)
        found = measures(value, ledger, parts)
        missed = frozenset(one.name for one in found if one.met is False)
        yield Past(kind, fit(found, ledger.facts), missed)  # type: ignore[arg-type]


def rounds(name: str, now: Compact, listed: list[Session]) -> None:
    """Run, suggest, apply the suggestions, and run again."""
    for number in range(ROUNDS + 1):
        past: list[Past] = []
        sent = 0
        for session in listed:
            run = simulate(session, Policy("x", steps=(Step("compact", now),)), count, extractive)
            sent += run.sent
            past += compactions(session, run)
        found = [
            one
            for one in suggestions(past, now, Model(listed[0].window, 0.1))
            if one.value is not None
        ]
        said = ", ".join(f"{one.name} {one.now} → {one.value}" for one in found) or "nothing"
        say(f"{name if not number else '  taken over':<30}{line(past)}{sent:>13,}   {said}")
        for one in found:
            say(f"{'':<36}{one.name}: {one.reason}")
        if not found:
            return
        values: dict[str, Any] = {one.name: one.value for one in found}
        now = replace(now, **values)


def line(past: list[Past]) -> str:
    """Format how compactions fitted."""
    fits = Counter(one.fit for one in past)
    return f"{len(past):>6}{fits['over']:>6}{fits['under']:>6}{fits['right']:>6}"


def bare(session: Session) -> Session:
    """Return a session without a hidden prompt, for a small window."""
    calls = tuple(replace(call, usage=None) for call in session.calls)
    return replace(session, calls=calls, hidden=0)


def recorded(stored: Stored) -> Iterator[Past]:
    """Return the compactions that a log records."""
    from sessions.actions.reviews.fact_ledgers import judge
    from sessions.models.policies.suggested import tasks_of
    from sessions.models.record.replaced import summarised

    for revision in summarised(stored):
        judged = judge(stored, revision)
        if judged is not None:
            missed = frozenset(one.name for one in judged.quality if one.met is False)
            kind = tasks_of([stored])[stored.pk]
            yield Past(kind, fit(judged.quality, judged.ledger.facts), missed)


def main() -> None:
    """Read the logs and print a line for each round."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    corpus = os.environ.get("CONTEXTLAB_CORPUS")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(corpus) if corpus else None)
    parser.add_argument("--window", type=int, default=60_000, help="tokens")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _begin(folder)
        from sessions.models.record.values import recorded_session

        past: list[Past] = []
        listed: list[Session] = []
        for stored in _stored(given.folder):
            past += recorded(stored)
            if stored.step_count >= LEAST_STEPS:
                listed.append(bare(recorded_session(stored, window=given.window)))
    tasks = ", ".join(f"{n} {kind}" for kind, n in Counter(map(task, listed)).most_common())
    say(f"{len(listed)} sessions: {tasks}")
    say(f"{'policy':<30}{'made':>6}{'over':>6}{'under':>6}{'right':>6}{'tokens sent':>13}")
    say(f"{'recorded in logs':<30}{line(past)}")
    for one in suggestions(past, Compact(), Model(200_000, 0.1)):
        say(f"{'':<36}{one.name} {one.value or 'stays'}: {one.reason}")
    for name, now in BEGIN.items():
        rounds(name, now, listed)


if __name__ == "__main__":
    main()
