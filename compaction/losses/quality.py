"""Measures of a compaction's quality that need no model, each with its target."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from compaction.context.blocks import Block, context_of
from compaction.context.invariants import violations
from compaction.facts.vocabulary import FactKind
from compaction.losses.ledger import Fact, Ledger
from compaction.losses.weighty import CHANGED, OPEN_ERROR, READ
from compaction.redaction.redact import redact
from compaction.summaries.model.asked import MESSAGES, TODOS, AskedSection

TARGET = 0.375
"""Maximum share of the window that a context may fill after a compaction (Shannon)."""

GAIN = 0.10
"""Minimum share of the context to free (OpenHands SDK)."""

GROWTH = 1.2
"""How much longer a summary may be than the earlier summary it includes."""

NEEDED_LOST = 0.10
"""Share of facts named by later calls that may be lost (our choice)."""

LONGEST = 400_000
"""Maximum code points read of a summary."""

Unit = Literal["count", "share", "ratio"]
Fit = Literal["over", "under", "right"]
"""Whether too much was removed (`over`), too little (`under`), or neither."""

_REFERENCE = re.compile(r"\b([mb]\d[\w.:-]{0,60})@([0-9a-f]{8})\b")


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure: `value` of `of` (a count has no `of`), and whether its target is met.

    A share is `value / of`, a ratio is in permille, a count is of faults. `value` is None if
    unknown; `met` is None then, and without a target.
    """

    name: str
    unit: Unit
    value: int | None
    of: int | None = None
    met: bool | None = None


@dataclass(frozen=True, slots=True)
class Compacted:
    """A compaction to measure: the replaced blocks, their summary, and the remaining context.

    `before` and `after` are tokens of the whole context; they and `window` are None if unknown.
    """

    span: Sequence[Block]
    sources: Sequence[Block]
    standing: Sequence[Block]
    summary: str
    summary_tokens: int
    before: int | None = None
    after: int | None = None
    window: int | None = None


def measures(made: Compacted, ledger: Ledger, parts: Sequence[AskedSection]) -> list[Measure]:
    """Compute all measures of a compaction, in display order. Linear in the texts."""
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
    """Return whether a compaction removed too much or too little (by row: docs/reviews/reviews.md).

    Too much: a changed file, an open error, a message or an open to-do item is gone, or a tenth of
    what later calls named is lost. Otherwise too little: less than a tenth was freed, or the
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
    """Build a share; with nothing to count there is no target."""
    if not of:
        return Measure(name, "share", None, 0)
    return Measure(name, "share", value, of, None if least is None else value >= least * of)


def _of_groups(made: Compacted) -> list[Measure]:
    stands = list(made.standing)
    if made.span:
        # The summary, in the place of the blocks it replaces.
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
    """A container that contains everything: references have a measure of their own."""

    def __contains__(self, _: object) -> bool:
        return True


def _of_people(made: Compacted, parts: Sequence[AskedSection]) -> list[Measure]:
    by_name = {part.name: part for part in parts}
    found = []
    for name, part_name in (("messages", MESSAGES), ("todos", TODOS)):
        part = by_name.get(part_name)
        counted = part is not None and part.of is not None and part.covered is not None
        stated, of = (part.covered or 0, part.of or 0) if counted and part is not None else (0, 0)
        found.append(_share(name, stated, of, 1.0))
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
    """Count the references of a summary that lead to an original with that hash, and all."""
    known = {block.id: block.sha[:8] for block in (*made.span, *made.sources, *made.standing)}
    carried = {match for block in made.span if block.kind == "summary"
               for match in _REFERENCE.findall(block.text)}  # fmt: skip
    given = set(_REFERENCE.findall(made.summary[:LONGEST]))
    right = sum(known.get(name) == check or (name, check) in carried for name, check in given)
    return right, len(given)
