"""Fact ledgers of compactions with planted losses and inventions: the table in reviews.md.

    python -m benchmarks.reviews.fact_ledger               # CONTEXTLAB_CORPUS, or the demo
    python -m benchmarks.reviews.fact_ledger /path/to/logs
    python -m benchmarks.reviews.fact_ledger /path/to/logs --show

Of every session: the compactions that its log records, and those of the extractive summarizer in a
narrow window, at most 8 of each. Out of each summary and its context, up to 5 facts are
taken one at a time; into each a path, a number, a name and a link are put that nothing holds.
`flagged` counts facts called unsupported before that; `--show` prints it with the words around,
to be judged by eye. Reads into a store of its own and writes nothing of the logs.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.processes import percentile, say
from compaction.policies.policy import Policy, Step
from compaction.simulation.simulate import simulate
from compaction.strategies.compact_settings import Compact
from compaction.strategies.window import Window
from compaction.summaries.extract import extractive
from compaction.tokens import count, counted
from tests.planted import Case, cases_of, inventions, losses

if TYPE_CHECKING:
    from sessions.importers import records
    from sessions.models import Session

NOW = 1_795_000_000_000
EACH = 8
TAKEN_OUT = 5
WINDOWS = {
    "extractive, nine sections": (
        Policy("nine", steps=(Step("compact", Compact(trigger=0.5, user_tokens=2_000)),)),
        60_000,
    ),
    "extractive, sliding window": (
        Policy("window", steps=(Step("window", Window(budget=32_000)),)),
        32_000,
    ),
}


@dataclass
class Row:
    """Results for the compactions of one writer."""

    compactions: int = 0
    facts: list[int] = field(default_factory=list)
    scores: list[int] = field(default_factory=list)
    flagged: int = 0
    taken_out: int = 0
    missed: int = 0
    put_in: int = 0
    unnoticed: int = 0
    ms: list[float] = field(default_factory=list)

    def judge(self, case: Case, seed: int, show: bool) -> None:
        """Judge one compaction, unchanged and with planted facts."""
        began = time.perf_counter()
        ledger = case.ledger()
        self.ms.append(1000 * (time.perf_counter() - began))
        self.compactions += 1
        self.facts.append(ledger.kept + ledger.retrievable + ledger.lost)
        self.scores += [ledger.score] if ledger.score is not None else []
        flagged = [fact for fact in ledger.facts if fact.state == "unsupported"]
        self.flagged += len(flagged)
        for fact in flagged if show else ():
            place = max(case.summary.find(fact.fact), 0)
            around = " ".join(case.summary[max(place - 60, 0) : place + 80].split())
            say(f"  ! {case.name}: {fact.kind} {fact.fact} | {around}")
        for planted, fact in losses(case, TAKEN_OUT):
            states = {one.key: one.state for one in planted.ledger().facts}
            self.taken_out += 1
            missed = states.get(fact.key) != "lost"
            self.missed += missed
            if missed and show:
                say(f"  ? {case.name}: {fact.kind} {fact.fact} is not found lost")
        planted, made = inventions(case, seed)
        found = {fact.fact for fact in planted.ledger().facts if fact.state == "unsupported"}
        self.put_in += len(made)
        self.unnoticed += len(set(made) - found)


def main() -> None:
    """Store the sessions, judge their compactions, and print a line for each writer."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    corpus = os.environ.get("CONTEXTLAB_CORPUS")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(corpus) if corpus else None)
    parser.add_argument("--show", action="store_true", help="what is unsupported, and where")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _begin(folder)
        rows = {name: Row() for name in ("recorded in logs", *WINDOWS)}
        for session in _stored(given.folder):
            for writer, case in _cases(session):
                rows[writer].judge(case, rows[writer].compactions, given.show)
    say(
        f"{'written by':<28}{'compactions':>12}{'facts':>7}{'score':>7}{'flagged':>9}"
        f"{'losses found':>14}{'inventions found':>18}{'ms p95':>8}"
    )
    for name, row in rows.items():
        if row.compactions:
            say(_line(name, row))


def _line(name: str, row: Row) -> str:
    out = f"{row.taken_out - row.missed}/{row.taken_out}"
    put = f"{row.put_in - row.unnoticed}/{row.put_in}"
    score = f"{median(row.scores) / 10:.0f} %" if row.scores else "-"
    return (
        f"{name:<28}{row.compactions:>12}{median(row.facts):>7.0f}{score:>7}{row.flagged:>9}"
        f"{out:>14}{put:>18}{percentile(row.ms, 0.95):>8.0f}"
    )


def _begin(folder: str) -> None:
    os.environ |= {
        "CONTEXTLAB_DATA_DIR": folder,
        "DATABASE_URL": "",
        "DJANGO_SETTINGS_MODULE": "contextlab.settings",
    }
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)


def _logs(folder: Path | None) -> Iterator[records.Session]:
    from sessions import demo, importers

    if folder is None:
        for group in demo.play(NOW, counted):
            yield from group
        return
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        try:
            yield from importers.parse(path.read_bytes(), path.name).sessions
        except importers.NotALog:
            continue


def _stored(folder: Path | None) -> Iterator[Session]:
    from sessions.actions.accounts.teams import local_team
    from sessions.actions.record.append import append

    for incoming in _logs(folder):
        appended = append(local_team(), incoming, counted, source="measured")
        if appended.created:
            yield appended.session


def _cases(session: Session) -> Iterator[tuple[str, Case]]:
    from sessions.models.record.replaced import replaced, summarised
    from sessions.models.record.values import recorded_session

    for revision in summarised(session)[:EACH]:
        one = replaced(session, revision)
        if one is not None:
            name = f"{session.external_id[:12]} r{revision.number}"
            yield (
                "recorded in logs",
                Case(name, one.span, one.summary, one.standing, one.refs, one.sources),
            )
    if session.step_count < 30:
        return
    value = recorded_session(session, window=0)
    for writer, (policy, window) in WINDOWS.items():
        narrow = replace(value, window=window, hidden=0)
        run = simulate(narrow, policy, count, extractive)
        for case in list(cases_of(run, session.external_id[:12]))[:EACH]:
            yield writer, case


if __name__ == "__main__":
    main()
