"""How good a compaction is, by measures that need no model; each with its target."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from compaction.context import Block, context_of
from compaction.facts.ledger import Fact, Ledger
from compaction.facts.vocabulary import FactKind
from compaction.facts.weighty import CHANGED, OPEN_ERROR, READ
from compaction.invariants import violations
from compaction.redaction.redact import redact
from compaction.summaries.asked import MESSAGES, TODOS, Part

TARGET = 0.375
"""Share of the window that a context may have after a compaction (Shannon)."""

GAIN = 0.10
"""Least share of the context that has to be won (OpenHands SDK)."""

GROWTH = 1.2
"""How much longer than the earlier summary that it takes up a summary may be."""

NEEDED_LOST = 0.10
"""Share of what later calls named, lost, from which too much was taken out (ours)."""

LONGEST = 400_000
"""Code points of a summary that are looked at."""

Unit = Literal["count", "share", "ratio"]
Fit = Literal["over", "under", "right"]
"""Whether too much was taken out (`over`), too little (`under`), or neither."""

_REFERENCE = re.compile(r"\b([mb]\d[\w.:-]*)@([0-9a-f]{8})\b")


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure: `value` of `of` (a count has no `of`), and whether its target is met.

    A share is `value / of`, a ratio is in permille, a count is of faults. `value` is None where
    nothing tells, `met` is None then, and where there is no target.
    """

    name: str
    unit: Unit
    value: int | None
    of: int | None = None
    met: bool | None = None


@dataclass(frozen=True, slots=True)
class Compacted:
    """A compaction as it is measured: what was replaced and by which text, what stands beside it,
    tokens of the whole context before and after, and the window; None where nobody knows."""

    span: Sequence[Block]
    sources: Sequence[Block]
    standing: Sequence[Block]
    summary: str
    summary_tokens: int
    before: int | None = None
    after: int | None = None
    window: int | None = None


def measures(made: Compacted, ledger: Ledger, parts: Sequence[Part]) -> list[Measure]:
    """All measures of a compaction, in the order in which pages list them. Linear in the texts."""
    found = _of_groups(made) + _of_people(made, parts)
    found += _of_facts(ledger.facts)
    asked = [part for part in parts if part.state != "unasked"]
    there = sum(part.state != "missing" for part in asked)
    found.append(_share("sections", there, len(asked), 1.0))
    found.append(_faults("unsupported", ledger.unsupported))
    found += _of_sizes(made)
    right, all_of_them = _references(made)
    found.append(_share("references", right, all_of_them, 1.0))
    found.append(_faults("secrets", sum(redact(made.summary[:LONGEST]).masked.values())))
    return found


def fit(found: Iterable[Measure], facts: Sequence[Fact]) -> Fit:
    """Whether a compaction took out too much or too little (row by row: docs/review.md).

    Too much: a changed file, an open error, a message or an open todo is nowhere any more, or a
    tenth of what later calls named is lost. Else too little: less than a tenth was won, or the
    context is still above its target.
    """
    missed = {one.name for one in found if one.met is False}
    needed = [fact for fact in facts if fact.needed is not None]
    lost = sum(fact.state == "lost" for fact in needed)
    if missed & {"changed", "open_errors", "messages", "todos"}:
        return "over"
    if needed and lost >= NEEDED_LOST * len(needed):
        return "over"
    return "under" if missed & {"smaller", "gain", "target"} else "right"


def _faults(name: str, count: int) -> Measure:
    return Measure(name, "count", count, met=count == 0)


def _share(name: str, value: int, of: int, least: float | None = None) -> Measure:
    """A share; without anything to count nothing is asked."""
    if not of:
        return Measure(name, "share", None, 0)
    return Measure(name, "share", value, of, None if least is None else value >= least * of)


def _of_groups(made: Compacted) -> list[Measure]:
    stands = list(made.standing)
    if made.span:
        # The summary, at the place of what it stands for.
        stands.append(
            replace(made.span[0], role="user", type="text", tool_call=None, replaces=None)
        )
    context = context_of(stands)
    broken = violations(context, _Anything())
    pairs = sum(one.rule in ("pair", "single") for one in broken)
    roles = sum(one.rule == "role" for one in broken)
    pinned = sum(block.pinned for block in made.span)
    return [_faults("pairs", pairs), _faults("roles", roles), _faults("pins", pinned)]


class _Anything:
    """A container that holds everything: references are measured by themselves."""

    def __contains__(self, _: object) -> bool:
        return True


def _of_people(made: Compacted, parts: Sequence[Part]) -> list[Measure]:
    by_name = {part.name: part for part in parts}
    found = []
    for name, part_name in (("messages", MESSAGES), ("todos", TODOS)):
        part = by_name.get(part_name)
        counted = part is not None and part.of is not None and part.told is not None
        told, of = (part.told or 0, part.of or 0) if counted and part is not None else (0, 0)
        found.append(_share(name, told, of, 1.0))
    stand, gone = _said(made.standing), _said(made.span)
    found.insert(1, _share("verbatim", stand, stand + gone))
    return found


def _said(blocks: Iterable[Block]) -> int:
    return sum(b.kind == "user" and b.role == "user" and b.type == "text" for b in blocks)


def _of_facts(facts: Sequence[Fact]) -> list[Measure]:
    listed = [fact for fact in facts if fact.state != "unsupported"]
    kinds: Mapping[str, tuple[tuple[FactKind, ...], float]] = {
        "identifiers": (("identifier",), 0.95),
        "numbers": (("number", "url"), 0.90),
        "errors": (("error",), 0.95),
    }
    weights = {"changed": (CHANGED, 1.0), "read": (READ, 0.95), "open_errors": (OPEN_ERROR, 1.0)}
    found = [
        _kept(name, [fact for fact in listed if fact.weight == weight], least)
        for name, (weight, least) in weights.items()
    ]
    found += [
        _kept(name, [fact for fact in listed if fact.kind in those], least)
        for name, (those, least) in kinds.items()
    ]
    return found


def _kept(name: str, facts: Sequence[Fact], least: float) -> Measure:
    return _share(name, sum(fact.state == "kept" for fact in facts), len(facts), least)


def _of_sizes(made: Compacted) -> list[Measure]:
    before, after, gone = made.before, made.after, sum(block.tokens for block in made.span)
    known = before is not None and after is not None
    found = [
        Measure("smaller", "share", after, before, after < before)
        if before is not None and after is not None
        else Measure("smaller", "share", None)
    ]
    won = (before or 0) - (after or 0)
    gain = Measure("gain", "share", max(won, 0), before, won >= GAIN * (before or 0))
    found.append(gain if known and before else Measure("gain", "share", None))
    if after is not None and made.window:
        met = after <= TARGET * made.window
        found.append(Measure("target", "share", after, made.window, met))
    else:
        found.append(Measure("target", "share", None))
    found.append(_share("summary", made.summary_tokens, gone))
    earlier = sum(block.tokens for block in made.span if block.kind == "summary")
    grown = 1_000 * made.summary_tokens // earlier if earlier else None
    small = None if grown is None else grown <= 1_000 * GROWTH
    found.append(Measure("growth", "ratio", grown, None if earlier else 0, small))
    return found


def _references(made: Compacted) -> tuple[int, int]:
    """References of a summary that lead to an original with these bytes, of all that it gives."""
    known = {block.id: block.sha[:8] for block in (*made.span, *made.sources, *made.standing)}
    carried = {match for block in made.span if block.kind == "summary"
               for match in _REFERENCE.findall(block.text)}  # fmt: skip
    given = set(_REFERENCE.findall(made.summary[:LONGEST]))
    right = sum(known.get(name) == check or (name, check) in carried for name, check in given)
    return right, len(given)
