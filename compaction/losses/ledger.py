"""The fact ledger of a compaction: what happened to the facts it replaced, without a model."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from compaction.context.blocks import Block
from compaction.facts.facts import RUN, as_written, texts_of
from compaction.facts.paths import normal
from compaction.facts.vocabulary import FactKind, Vocabulary, kind_of
from compaction.losses.weighty import Weighty, weighty
from compaction.summaries.lines import IndexedLines
from compaction.summaries.model.supported import known_from, plain, unsupported
from compaction.summaries.sections import Form, form_of

ENGINE = 13
"""Version of the rules that make a ledger."""

LISTED = 400
"""Maximum facts listed in a ledger, by weight; all are counted."""

LONGEST_SUMMARY = 400_000
"""Maximum code points read of a summary: a thousand times the intended size."""

INVENTED = 95
"""Weight of unsupported facts in the list."""

FactState = Literal["kept", "retrievable", "lost", "unsupported"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of a ledger.

    `block` is the id of the last block of the span that held it, or the original of that block if
    it is a stub; None for an unsupported fact. `needed` is the first later step that missed it, if
    a call named it: as `needed_again` says.
    """

    key: str
    fact: str
    kind: FactKind
    state: FactState
    weight: int
    block: str | None = None
    needed: int | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """Counts of all facts that matter, a list of the most important, and a score in permille.

    The score is the weighted share of kept facts, retrievable ones counting half, minus the
    weighted share of unsupported facts; None without facts.
    """

    facts: tuple[Fact, ...]
    kept: int
    retrievable: int
    lost: int
    unsupported: int
    score: int | None
    form: Form = "free"


@dataclass(frozen=True, slots=True)
class CompactedContext:
    """The context after a compaction apart from its summary, and the ids the summary references."""

    blocks: Sequence[Block] = ()
    refs: Iterable[str] = ()


def ledger_of(
    span: Sequence[Block],
    summary: str,
    standing: CompactedContext,
    *,
    sources: Sequence[Block] = (),
    needed: Mapping[str, int] | None = None,
) -> Ledger:
    """Return what happened to the facts of a span, and what a summary claims without a source.

    `weighty` decides which facts count, and how much. **Kept**: the summary or a remaining block
    names it, a path as `paths.tells` says. **Retrievable**: a remaining reference leads to a block
    that holds it. Otherwise **lost**. **Unsupported**: a fact of the summary that neither the span,
    nor remaining blocks, nor `sources` (originals behind stubs of the span) contain, even in parts.
    An error is kept if a line has most of its distinctive words. `needed` is what `needed_again`
    returns. Compares names, paths and numbers, not the claims of a sentence. Pure, and linear in
    the texts.
    """
    summary = summary[:LONGEST_SUMMARY]
    needed = needed or {}
    judge = _Judge(summary, standing)
    listed = [judge.fact(one, needed) for one in weighty(span, needed)]
    invented = list(_unsupported(summary, [*span, *standing.blocks, *sources]))
    counts = Counter(one.state for one in [*listed, *invented])
    everything = sorted([*listed, *invented], key=lambda one: (-one.weight, one.kind, one.fact))
    return Ledger(
        facts=tuple(everything[:LISTED]),
        kept=counts["kept"],
        retrievable=counts["retrievable"],
        lost=counts["lost"],
        unsupported=counts["unsupported"],
        score=_score(listed, invented),
        form=form_of(summary),
    )


class _Judge:
    """What a model sees after a compaction."""

    def __init__(self, summary: str, standing: CompactedContext) -> None:
        self.here = Vocabulary()
        self.here.add(summary)
        self.here.add(plain(summary))
        texts = [text for block in standing.blocks for text in texts_of(block)]
        texts += [block.file.path for block in standing.blocks if block.file is not None]
        for text in texts:
            self.here.add(text)
        self.lines = IndexedLines("\n".join([summary, *texts])[:LONGEST_SUMMARY])
        self.refs = {*standing.refs, *(ref for block in standing.blocks for ref in block.refs)}

    def fact(self, one: Weighty, needed: Mapping[str, int]) -> Fact:
        return Fact(
            key=_key(one.kind, one.fact),
            fact=_written(one),
            kind=one.kind,
            state=self._state(one),
            weight=one.weight,
            block=_source(one.holders[-1]) if one.holders else None,
            needed=needed.get(normal(one.fact)),
        )

    def _state(self, one: Weighty) -> FactState:
        if one.kind == "error":
            here = self.lines.say(one.fact)
        elif one.kind == "path":
            here = self._names_path(one)
        else:
            here = self.here.names(one.fact, one.kind)
        if here:
            return "kept"
        held = {name for block in one.holders for name in (block.id, *block.refs)}
        return "lost" if held.isdisjoint(self.refs) else "retrievable"

    def _names_path(self, one: Weighty) -> bool:
        """Return whether the path is shown (`paths.tells`), or named alone, unambiguously."""
        name = one.fact.replace("\\", "/").rpartition("/")[2]
        alone = one.alone and "." in name
        if self.here.names(one.fact, "path") or (alone and self.here.holds(normal(name))):
            return True
        # With blanks or other letters it is not a single token.
        other = RUN.fullmatch(one.fact) is None
        return other and (self.lines.hold(one.fact) or (alone and self.lines.hold(name)))


def _source(block: Block) -> str:
    """Return the original of a block or stub; an earlier summary has none."""
    return block.id if block.replaces is None or block.kind == "summary" else block.replaces


def _unsupported(summary: str, sources: Iterable[Block]) -> Iterator[Fact]:
    for fact in unsupported(summary, known_from(sources)):
        kind = kind_of(fact)
        yield Fact(_key(kind, fact), fact, kind, "unsupported", INVENTED)


def _written(one: Weighty) -> str:
    """A fact as the last text that holds it writes it: facts lack the start of a path."""
    if one.kind != "path":
        return one.fact
    texts = (text for block in reversed(one.holders) for text in texts_of(block))
    return next((as_written(one.fact, text) for text in texts if one.fact in text), one.fact)


def _key(kind: FactKind, fact: str) -> str:
    """Return a stable identifier of a fact."""
    named = f"{kind} {fact if kind == 'error' else normal(fact)}"
    return hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _score(listed: Sequence[Fact], invented: Sequence[Fact]) -> int | None:
    whole = sum(one.weight for one in listed)
    if not whole:
        return None
    worth = {"kept": 2, "retrievable": 1, "lost": 0}
    won = sum(one.weight * worth[one.state] for one in listed)
    missed = 2 * sum(one.weight for one in invented)
    return max(0, 1000 * (won - missed) // (2 * whole))
