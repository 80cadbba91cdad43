"""The fact ledger of a compaction: what became of the facts it replaced, found without a model."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from compaction.context import Block
from compaction.facts.facts import RUN, texts_of
from compaction.facts.vocabulary import FactKind, Vocabulary, kind_of, normal
from compaction.facts.weighty import Weighty, weighty
from compaction.summaries.sections import Form, form_of
from compaction.summaries.supported import known_from, plain, unsupported
from compaction.summaries.told import Lines

ENGINE = 3
"""Rises when a rule changes by which ledgers are made."""

LISTED = 400
"""Facts that a ledger lists, the weightiest first; all are counted."""

LONGEST_SUMMARY = 400_000
"""Code points of a summary that are read: a thousand times what one is meant to have."""

INVENTED = 95
"""Weight of what nothing supports, among the others of a list."""

FactState = Literal["kept", "retrievable", "lost", "unsupported"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of a ledger. `block` is the id of the last block of the span that held it, of a stub
    that of its original; None for what nothing held. `needed` is the first later step that named
    it, as far as is known."""

    key: str
    fact: str
    kind: FactKind
    state: FactState
    weight: int
    block: str | None = None
    needed: int | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """Counts of all facts that count, a list of the weightiest, and a score in permille.

    The score is the share by weight of what was kept, what is retrievable counting half, less the
    same share of what nothing supports; None where no fact counts.
    """

    facts: tuple[Fact, ...]
    kept: int
    retrievable: int
    lost: int
    unsupported: int
    score: int | None
    form: Form = "free"


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands in the context after a compaction beside its summary; `refs` are ids of
    originals that the summary refers to."""

    blocks: Sequence[Block] = ()
    refs: Iterable[str] = ()


def ledger_of(
    span: Sequence[Block],
    summary: str,
    standing: Standing,
    *,
    sources: Sequence[Block] = (),
    needed: Mapping[str, int] | None = None,
) -> Ledger:
    """What became of the facts of a span, and what a summary says that no source holds.

    Which facts count, and how much, `weighty` says. **Kept**: the summary names it, or a block that
    stands after it does. **Retrievable**: a reference to a block that holds it stands there.
    Else **lost**. **Unsupported**: a fact of the summary that neither span, nor standing blocks,
    nor `sources` (originals behind stubs of the span) hold, even in parts. An error is kept where a
    line tells most of its distinctive words. `needed` is what `named_later` finds.

    Names, paths and numbers are compared, and what a sentence claims is not. Pure, and linear in
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
    """What a model has before it after a compaction."""

    def __init__(self, summary: str, standing: Standing) -> None:
        self.here = Vocabulary()
        self.here.add(summary)
        self.here.add(plain(summary))
        texts = [text for block in standing.blocks for text in texts_of(block)]
        texts += [block.file.path for block in standing.blocks if block.file is not None]
        for text in texts:
            self.here.add(text)
        self.lines = Lines("\n".join([summary, *texts])[:LONGEST_SUMMARY])
        self.refs = {*standing.refs, *(ref for block in standing.blocks for ref in block.refs)}

    def fact(self, one: Weighty, needed: Mapping[str, int]) -> Fact:
        return Fact(
            key=_key(one.kind, one.fact),
            fact=one.fact,
            kind=one.kind,
            state=self._state(one),
            weight=one.weight,
            block=_source(one.holders[-1]) if one.holders else None,
            needed=needed.get(normal(one.fact)),
        )

    def _state(self, one: Weighty) -> FactState:
        if one.kind == "error":
            here = self.lines.tell(one.fact)
        elif one.kind == "path":
            here = self._names_path(one)
        else:
            here = self.here.names(one.fact, one.kind)
        if here:
            return "kept"
        held = {name for block in one.holders for name in (block.id, *block.refs)}
        return "lost" if held.isdisjoint(self.refs) else "retrievable"

    def _names_path(self, one: Weighty) -> bool:
        """Also without its folders, where no other path that counts ends alike."""
        name = one.fact.replace("\\", "/").rpartition("/")[2]
        alone = one.alone and "." in name
        if self.here.names(one.fact, "path") or (alone and self.here.holds(normal(name))):
            return True
        # With blanks or other letters it is no single token of a text.
        other = RUN.fullmatch(one.fact) is None
        return other and (self.lines.hold(one.fact) or (alone and self.lines.hold(name)))


def _source(block: Block) -> str:
    """The original that a block is, or is the stub of; an earlier summary has none."""
    return block.id if block.replaces is None or block.kind == "summary" else block.replaces


def _unsupported(summary: str, sources: Iterable[Block]) -> Iterator[Fact]:
    for fact in unsupported(summary, known_from(sources)):
        kind = kind_of(fact)
        yield Fact(_key(kind, fact), fact, kind, "unsupported", INVENTED)


def _key(kind: FactKind, fact: str) -> str:
    """Names a fact of a ledger, the same however often the ledger is made."""
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
