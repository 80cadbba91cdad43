"""Recorded summaries beside ours of the same span: figures of docs/policies/strategies.md.

    python -m benchmarks.reviews.recorded_summaries FOLDER [--beside folder]

Takes every compaction whose summary the log contains in clear text. Of the same blocks it writes
the extractive summary, as long as the recorded one in o200k tokens or shorter; after a second
compaction, on top of our first. Counts the facts that calls of the next 40 steps, up to the next
compaction, needed from before it and that nothing else in the context showed, and how many of them
each summary names. The agent saw the recorded summary, so what it needed may depend on it.
`--beside` writes both texts of each compaction into a folder, to be read; they are the logs' own
content.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from benchmarks.figures import commit_and_date
from benchmarks.policies.recall import session_of
from benchmarks.reviews.summaries import spoken
from compaction import tokens
from compaction.context.blocks import Block
from compaction.context.wire import text_of
from compaction.facts.facts import FactIndex, texts_of
from compaction.facts.noise import is_noise
from compaction.facts.vocabulary import Vocabulary, kind_of
from compaction.proposals.plan import Span
from compaction.summaries.extract import extractive
from compaction.summaries.model.supported import known_from, known_to, plain, unsupported
from sessions.importers import NotALog, parse, records

STEPS = 40
"""Steps after a compaction whose needs count."""

OUTSIDE = ("system", "tools")
"""Kinds of blocks that no compaction removes."""

READABLE = 1_000
"""Minimum code points of a summary; Codex encrypts its own and leaves a note."""

LEAST = 0.25
"""Share of the reported prompt that the log must contain (our choice): o200k counts fewer tokens
than Claude, and no log has the hidden part. A session that continues another log has less."""

SAMPLES = 10_000
SIDES = ("Recorded", "Ours")


@dataclass(frozen=True)
class Beside:
    """A recorded summary and ours of the same span; `recorded` and `ours` count the needs that
    each names. `whole`: the log contains most of what was replaced."""

    folder: str
    session: str
    steps: int
    before: int
    whole: bool
    texts: tuple[str, str]
    needs: frozenset[str]
    unsupported: tuple[int, int]

    @property
    def recorded(self) -> int:
        return len(named(self.needs, self.texts[0]))

    @property
    def ours(self) -> int:
        return len(named(self.needs, self.texts[1]))

    def row(self, number: int) -> str:
        sizes = " | ".join(f"{tokens.count(text):,}" for text in self.texts)
        lacks = "" if self.whole else ", most not in the log"
        return (
            f"| {self.folder} {number}, step {self.steps}{lacks} | {self.before:,} | {sizes} "
            f"| {len(self.needs)} | {self.recorded} | {self.ours} "
            f"| {self.unsupported[0]}, {self.unsupported[1]} |"
        )


def named(needs: frozenset[str], summary: str) -> set[str]:
    """Return the needs that a summary names; a path also by its last components."""
    here = Vocabulary()
    here.add(summary)
    here.add(plain(summary))
    return {fact for fact in needs if here.names(fact, kind_of(fact))}


def found_in(folder: Path) -> Iterator[tuple[str, records.Session]]:
    """Yield the sessions with a readable summary, each once, with the first folder of its path."""
    seen: set[str] = set()
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        try:
            log = parse(path.read_bytes(), path.name)
        except (NotALog, ValueError, RecursionError):
            continue
        for one in log.sessions:
            if one.external_id not in seen and any(_summaries(one)):
                seen.add(one.external_id)
                yield path.relative_to(folder).parts[0], one


def _summaries(one: records.Session) -> Iterator[tuple[int, records.Compaction, str]]:
    """Yield each compaction with its summary, and where it is in the log."""
    begun: tuple[int, records.Compaction] | None = None
    for number, record in enumerate(one.records):
        if isinstance(record, records.Compaction):
            begun = number, record
        elif begun and isinstance(record, records.Message) and record.kind == "summary":
            text = "\n".join(text_of(block) for block in record.blocks)
            if len(text) >= READABLE:
                yield *begun, text
            begun = None


def beside(folder: str, one: records.Session) -> Iterator[Beside]:
    """Yield the compactions of a session."""
    session = session_of(one, tokens.count)
    if session is None:
        return
    blocks = sorted(spoken(session.blocks), key=lambda block: block.position)
    index = FactIndex(blocks)
    keys = {n: r.key for n, r in enumerate(one.records) if isinstance(r, records.Message)}
    places = [number for number, _, _ in _summaries(one)]
    start, previous = 0, None
    for (number, made, text), end in zip(
        _summaries(one), [*places[1:], len(one.records)], strict=True
    ):
        stays = {n for n, key in keys.items() if n < number and key in made.keep}
        gone = [b for b in blocks if start <= b.message < number and b.message not in stays]
        gone = [b for b in gone if b.kind not in OUTSIDE]
        whole = Span("nine", tuple(gone), tuple(gone), previous, 0)
        ours = as_long(whole, tokens.count(text))
        known = known_to(whole)
        size = sum(block.tokens for block in gone)
        yield Beside(
            folder,
            one.external_id,
            max((block.born for block in gone), default=0),
            size,
            size >= LEAST * (made.tokens_before or 0),
            (text, ours),
            frozenset(_needs(blocks, index, (number, end), stays)),
            (len(unsupported(text, known)), len(unsupported(ours, known))),
        )
        start, previous = number, ours


def as_long(span: Span, most: int) -> str:
    """Return the longest extractive summary of a span within so many tokens."""
    low, high, best = most // 2, most * 3, ""
    while low <= high:
        budget = (low + high) // 2
        text = extractive(Span(span.form, span.blocks, span.originals, span.previous, budget))
        if tokens.count(text) <= most:
            low, best = budget + 25, text
        else:
            high = budget - 25
    return best


def _needs(
    blocks: Sequence[Block], index: FactIndex, between: tuple[int, int], stays: set[int]
) -> Iterator[str]:
    """Yield the facts that calls after a compaction needed first, known from before only."""
    number, end = between
    after = [block for block in blocks if number < block.message < end]
    calls = [block for block in after if block.type == "tool_use"]
    last = min((block.born for block in calls), default=0) + STEPS
    shown = known_from(block for block in blocks if _stands(block, number, stays))
    waiting = sorted(after, key=lambda block: -block.born)
    for call in (block for block in calls if block.born < last):
        while waiting and waiting[-1].born < call.born:
            shown.add(_said(waiting.pop()))
        for fact in sorted(index.held(call)):
            seen = any(one.message < number for one in index.holders[fact])
            if seen and not is_noise(fact) and not shown.names(fact, kind_of(fact)):
                yield fact


def _stands(block: Block, number: int, stays: set[int]) -> bool:
    return block.message < number and (block.kind in OUTSIDE or block.message in stays)


def _said(block: Block) -> str:
    return "\n".join(texts_of(block))


def interval(rows: Sequence[Beside]) -> tuple[float, float, float]:
    """Return by how much more of the needs ours names, and the bounds of 95 % of resampled
    sessions."""
    groups = [list(group) for _, group in groupby(rows, key=lambda row: row.session)]
    sums = [
        (sum(r.ours - r.recorded for r in group), sum(len(r.needs) for r in group))
        for group in groups
    ]
    drawn = random.Random(0)
    samples = sorted(_share(drawn.choices(sums, k=len(sums))) for _ in range(SAMPLES))
    return _share(sums), samples[SAMPLES // 40], samples[-SAMPLES // 40]


def _share(sums: Iterable[tuple[int, int]]) -> float:
    more, needs = map(sum, zip(*sums, strict=True))
    return more / needs if needs else 0.0


def summed(name: str, rows: Sequence[Beside]) -> str:
    """Return a row about these compactions together."""
    sizes = [sum(tokens.count(row.texts[side]) for row in rows) for side in (0, 1)]
    mean, low, high = interval(rows)
    sessions = len({row.session for row in rows})
    return (
        f"| {name} | {sessions}, {len(rows)} | {sizes[0]:,} | {sizes[1]:,} "
        f"| {sum(len(row.needs) for row in rows)} | {sum(row.recorded for row in rows)} "
        f"| {sum(row.ours for row in rows)} | {mean:+.0%} [{low:+.0%}, {high:+.0%}] |"
    )


def together(rows: Sequence[Beside]) -> Iterator[str]:
    """Yield a table with a row for each folder; a log that continues another one lacks most of
    what was replaced, and has a row of its own."""
    yield commit_and_date() + "\n"
    yield (
        "| folder | sessions, compactions | recorded | ours | needs | recorded names | ours names "
        "| difference |"
    )
    yield "| --- " * 8 + "|"
    whole = [row for row in rows if row.whole]
    for folder, group in groupby(whole, key=lambda row: row.folder):
        yield summed(folder, list(group))
    yield summed("all", whole)
    if len(whole) < len(rows):
        yield summed("most not in the log", [row for row in rows if not row.whole])


def each(rows: Sequence[Beside]) -> Iterator[str]:
    """Yield a table with a row for each compaction."""
    yield (
        "| session, step | tokens replaced | recorded | ours | needs | recorded names | ours names "
        "| unsupported: recorded, ours |"
    )
    yield "| --- " * 8 + "|"
    numbers = {name: n for n, name in enumerate(dict.fromkeys(row.session for row in rows), 1)}
    for row in rows:
        yield row.row(numbers[row.session])


def written_beside(row: Beside, folder: Path) -> None:
    """Write both texts of a compaction, and the needs that each names, to be read."""
    parts = [f"# {name}\n\n{text}" for name, text in zip(SIDES, row.texts, strict=True)]
    parts += [
        f"# Needs named: {name}\n\n{sorted(named(row.needs, text))}"
        for name, text in zip(SIDES, row.texts, strict=True)
    ]
    (folder / f"{row.session[:8]}-{row.steps}.md").write_text("\n\n".join(parts))


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--beside", type=Path, help="write both texts of each compaction here")
    given = parser.parse_args()
    rows = [row for folder, one in found_in(given.folder) for row in beside(folder, one)]
    for row in rows if given.beside else ():
        written_beside(row, given.beside)
    sys.stdout.write("\n".join(together(rows)) + "\n\n")
    sys.stdout.write("\n".join(each(rows)) + "\n")


if __name__ == "__main__":
    main()
