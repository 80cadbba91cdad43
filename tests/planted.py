"""Compactions with facts taken out of them, and with facts put in that no source holds."""

from __future__ import annotations

import random
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass, replace

from compaction.context.blocks import Block
from compaction.context.edits import Entry
from compaction.facts.facts import texts_of
from compaction.losses.ledger import CompactedContext, Fact, Ledger, ledger_of
from compaction.simulation.simulate import Run
from compaction.summaries.lines import IndexedLines, flat


@dataclass(frozen=True)
class Case:
    """One compaction: what it replaced, what it says, and what stands after it."""

    name: str
    span: tuple[Block, ...]
    summary: str
    standing: tuple[Block, ...] = ()
    refs: tuple[str, ...] = ()
    sources: tuple[Block, ...] = ()

    def ledger(self) -> Ledger:
        """What became of its facts."""
        return ledger_of(
            self.span,
            self.summary,
            CompactedContext(self.standing, self.refs),
            sources=self.sources,
        )


def cases_of(run: Run, name: str) -> Iterator[Case]:
    """The compactions of a simulated run."""
    known = {entry.block.id: entry.block for entry in run.entries}
    originals = {b.position: b for b in known.values() if b.replaces is None}
    for revision in run.revisions:
        for edit in revision.edits:
            made = edit.replacement
            if made is None or made.kind != "summary":
                continue
            span = tuple(known[target] for target in edit.targets)
            yield Case(
                f"{name} r{revision.number}",
                span,
                made.text,
                tuple(_standing(run.entries, revision.step, made.id)),
                made.refs,
                tuple(originals[block.position] for block in span),
            )


def _standing(entries: tuple[Entry, ...], step: int, without: str) -> Iterator[Block]:
    for entry in entries:
        stands = entry.from_step <= step and (entry.to_step is None or step < entry.to_step)
        if stands and entry.block.id != without:
            yield entry.block


def losses(case: Case, many: int) -> list[tuple[Case, Fact]]:
    """Cases that each lack one fact that was kept: every mention of it is taken out of
    the summary, and every block that holds it out of what stands."""
    kept = [fact for fact in case.ledger().facts if fact.state == "kept"]
    return [(without(case, fact), fact) for fact in kept[:many]]


def without(case: Case, fact: Fact) -> Case:
    """The case with no mention of a fact, nor a reference."""
    mentions = _mentions(fact)
    lines = [
        line
        for line in case.summary.splitlines(keepends=True)
        if fact.kind != "error" or not IndexedLines(line).say(fact.fact)
    ]
    summary = "".join(lines)
    for mention in mentions:
        summary = re.sub(re.escape(mention), "-", summary, flags=re.IGNORECASE)
    standing = tuple(block for block in case.standing if not _holds(block, fact, mentions))
    bare = tuple(replace(block, refs=()) for block in standing)
    return replace(case, summary=summary, standing=bare, refs=())


def _mentions(fact: Fact) -> list[str]:
    """How a fact may be written, the longest first: as it is, without line, by its parts."""
    if fact.kind == "error":
        return []
    bare = re.sub(r":\d[\d:-]*$", "", fact.fact)
    parts = bare.strip("/").split("/")
    found = {fact.fact, bare, *("/".join(parts[i:]) for i in range(len(parts)))}
    if fact.kind == "identifier":
        found |= {part for part in re.split(r"[.:@/-]", bare) if len(part) > 3}
    return sorted(found, key=len, reverse=True)


def _holds(block: Block, fact: Fact, mentions: list[str]) -> bool:
    text = "\n".join([*texts_of(block), block.file.path if block.file else ""])
    if fact.kind == "error":
        return IndexedLines(text).say(fact.fact)
    return any(flat(mention) in flat(text) for mention in mentions)


def inventions(case: Case, seed: int) -> tuple[Case, list[str]]:
    """The case with a path, a number, an identifier and a URL in its summary that nothing holds."""
    dice = random.Random(seed)
    word = ["".join(dice.choices(string.ascii_lowercase, k=9)) for _ in range(5)]
    made = [
        f"src/{word[0]}/{word[1]}.py",
        str(dice.randrange(10**8, 10**9)),
        f"{word[2]}_rows",
        f"https://{word[3]}.example/v2/{word[4]}",
    ]
    lines = case.summary.splitlines()
    for one in made:
        # Never after the last line: a form ends with its own.
        lines.insert(dice.randrange(len(lines)), f"- as {one} shows, it works.")
    return replace(case, summary="\n".join(lines)), made
