"""Why a text was forgotten: its life in a run, what removed it, and what that cost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from django.db.models import Count, Sum
from msgspec import convert

from compaction.context import wire
from compaction.context.blocks import Block
from compaction.context.edits import Entry as EntryValue
from compaction.losses.life import Life, Sight, life_of, shows
from compaction.policies.policy import from_dict, to_dict
from compaction.policies.presets import PRESETS
from compaction.policies.trigger_words import words
from compaction.simulation.kept import KeptText
from compaction.strategies import STRATEGIES
from sessions.actions.lab.warm import answer
from sessions.actions.policies.policies import active_version
from sessions.models import Entry, Replacement, Revision, Run, Session
from sessions.models.record.values import CHUNK, blocks_at, contents

LONGEST = 200
"""Most code points of a text."""
MOST = 300
"""Most blocks that hold it: a commoner text has no life of its own."""
FEW, SHARE = 15, 50
"""So few may always hold it; more only up to one in so many blocks (our choice)."""

MOST_BYTES = 64_000_000
"""Most content that is read for one answer: it is searched in the web process."""

Cause = str
"""What a step after the loss was for: "read again", "failed", "corrected"."""


TRIED = ("balanced", "balanced-lean", "offload-first", "sliding-window")
"""Presets to compare with, beside the active policy."""
MOST_STEPS, SECONDS = 3_000, 20.0


class TooCommon(ValueError):
    """More blocks hold the text than one can follow."""


class TooLong(ValueError):
    """The session has more than `MOST_STEPS` steps, or more than `MOST_BYTES` of content."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Calls made because the text was missing: why, their steps, and micro-dollars (None if the
    price is unknown)."""

    why: str
    steps: tuple[int, ...]
    microusd: int | None


@dataclass(frozen=True)
class Why:
    """The life of a text in a run, the revision that removed it, and what followed."""

    session: Session
    run: Run
    life: Life
    revision: Revision | None

    @cached_property
    def by(self) -> str:
        """What removed it, as the subject of a sentence; empty if nothing did."""
        revision = self.revision
        if revision is None:
            return ""
        titles = [
            STRATEGIES[name].title
            for name in revision.edits.values_list("strategy", flat=True).distinct()
            if name in STRATEGIES
        ]
        if titles:
            return titles[-1]
        name = words(revision.trigger, self.session.agent).name
        return name[:1].upper() + name[1:]

    @cached_property
    def costs(self) -> tuple[Cost, ...]:
        """What was done again while the text was missing: estimated, from blocks that hold it.

        A call counts once: it read the text again, failed with it, or answered a person's message
        with it. Empty for a simulated run, where nothing was done.
        """
        if self.run.origin == Run.Origin.SIMULATED:
            return ()
        steps: dict[Cause, list[int]] = {"read again": [], "failed": [], "corrected": []}
        taken: set[int] = set()
        for sight in self.life.again:
            cause = _cause(sight.block)
            if cause and sight.at not in taken:
                taken.add(sight.at)
                steps[cause].append(sight.at)
        prices = dict(
            self.session.calls.filter(step__in=taken).values_list("step", "cost_microusd")
        )
        return tuple(
            Cost(cause, tuple(found), _sum([prices.get(step) for step in found]))
            for cause, found in steps.items()
            if found
        )

    @property
    def sentence(self) -> str:
        """What happened, in a sentence or two, without the text itself."""
        life = self.life
        if not life.seen:
            return "The model never saw it."
        left, needed = life.left, life.needed
        if left is None:
            uses = len(life.used)
            if not uses:
                return "It never left the context."
            times = "once" if uses == 1 else f"{uses} times"
            return f"It was in context at every step that used it: {times}."
        gone = (
            f"{self.by} at step {left.until} removed it."
            if self.by
            else (f"It left the context at step {left.until}.")
        )
        if needed is None:
            return f"{gone} It was not needed again."
        said = _NEEDED[_need(needed)].format(step=needed.at)
        used = next((one.at for one in life.used if one.at > needed.at), None)
        if _need(needed) == "read again" and used is not None:
            said = f"{said[:-1]} and used it at step {used}."
        return f"{gone} {said}"

    @property
    def cost(self) -> int | None:
        """Micro-dollars of all costs; None if one is unknown."""
        return _sum([one.microusd for one in self.costs])


_NEEDED = {
    "used": "At step {step} the agent used it without seeing it.",
    "read again": "At step {step} the agent read it again.",
    "failed": "At step {step} a call failed with it.",
    "corrected": "At step {step} a person said it again.",
    "seen again": "At step {step} it was shown again.",
}


def _need(sight: Sight) -> str:
    if sight.block.role == "assistant":
        return "used"
    return _cause(sight.block) or "seen again"


def _cause(block: Block) -> Cause | None:
    if block.type == "tool_result":
        return "failed" if block.error else "read again"
    return "corrected" if block.role == "user" and block.kind == "user" else None


def _sum(amounts: list[int | None]) -> int | None:
    known = [one for one in amounts if one is not None]
    return sum(known) if len(known) == len(amounts) else None


def why(session: Session, run: Run, text: str) -> Why:
    """Find the life of a text in a run. Raises TooCommon, TooLong, MissingBlob, DamagedBlob.

    Reads every block of the session once, without parsing those that do not hold the text.
    """
    whole = session.blocks.aggregate(size=Sum("bytes"), count=Count("pk"))
    size = whole["size"] or 0
    if size > MOST_BYTES:
        raise TooLong(
            f"This session holds {size / 1e6:,.0f} MB, too much to look through while you wait. "
            "Search for the text instead, and open a step that shows it."
        )
    places = _places(session, text)
    if len(places) > min(MOST, max(FEW, whole["count"] // SHARE)):
        raise TooCommon(
            f"It appears in {len(places):,} blocks: too common to follow. "
            "Choose a longer or rarer text."
        )
    blocks = [block for block in blocks_at(session, places) if shows(block, text)]
    entries = list(_entries(session, run, blocks, text))
    life = life_of(text, blocks, entries, session.step_count)
    left = life.left
    numbers = left.revisions if left is not None else ()
    revision = run.revisions.filter(number__in=numbers).order_by("number").last()
    if revision is not None:
        revision.run = run
    return Why(session, run, life, revision)


def compared(found: Why) -> list[KeptText]:
    """The text under the recorded contexts, the active policy and others, best first.

    Read and simulated in a warm worker. Raises TooLong, NotInTime, FailedApart.
    """
    session = found.session
    if not found.life.seen:
        return []
    if session.step_count > MOST_STEPS:
        raise TooLong(
            f"{session.step_count:,} steps are too many to simulate while you wait. Simulate a "
            "policy on this session in the lab."
        )
    active = active_version(session.team)
    policies = {str(active): from_dict(active.document)}
    policies |= {name: PRESETS[name] for name in TRIED if PRESETS[name] not in policies.values()}
    life = found.life
    asked = {
        "session": str(session.pk),
        "text": life.text,
        "steps": sorted({sight.call for sight in (*life.used, *life.again)}),
        "policies": {name: to_dict(policy) for name, policy in policies.items()},
    }
    line = answer(session.team_id, asked, SECONDS)
    rows = convert(line["rows"], list[KeptText])
    return sorted(rows, key=lambda row: (_worst(row), row.cost is None, row.cost))


def _worst(row: KeptText) -> int:
    """How many needs the context did not show; lost ones count most."""
    return sum({"in_context": 0, "named": 1, "retrievable": 2}.get(at, 100) for at in row.at)


def _places(session: Session, text: str) -> list[int]:
    """Positions of the blocks whose JSON contains the text as JSON writes it, in any case."""
    written = json.dumps(text, ensure_ascii=False)[1:-1]
    nested = json.dumps(written, ensure_ascii=False)[1:-1].lower()
    wanted = written.lower()
    rows = list(session.blocks.order_by("position").values_list("position", "sha"))
    found = []
    for begin in range(0, len(rows), CHUNK):
        part = rows[begin : begin + CHUNK]
        data = contents(session, [sha for _, sha in part])
        for position, sha in part:
            held = data[sha].decode("utf-8", "surrogatepass").lower()
            if wanted in held or nested in held:
                found.append(position)
    return found


def _entries(session: Session, run: Run, blocks: list[Block], text: str) -> Iterator[EntryValue]:
    """The lifespans of blocks that hold the text, and of replacements that hold or refer to it."""
    rows = Entry.objects.filter(run=run, position__in=[block.position for block in blocks])
    rows = rows.exclude(block=None).select_related("closed_by__revision")
    stays = {row.position: row for row in rows}
    for block in blocks:
        row = stays.get(block.position)
        closed = row.closed_by.revision.number if row and row.closed_by else None
        yield EntryValue(
            block,
            row.from_step if row else block.born,
            row.to_step if row else None,
            closed_by=closed,
        )
    yield from _replacements(session, run, {block.id for block in blocks}, text)


def _replacements(session: Session, run: Run, held: set[str], text: str) -> Iterator[EntryValue]:
    rows = list(run.replacements.values_list("pk", "sha", "refs"))
    data: dict[str, bytes] = {}
    for begin in range(0, len(rows), CHUNK):
        data |= contents(session, [sha for _, sha, _ in rows[begin : begin + CHUNK]])
    texts = {pk: wire.text_of(wire.decode(data[sha])) for pk, sha, _ in rows}
    wanted = text.lower()
    about = {
        pk: refs for pk, _, refs in rows if wanted in texts[pk].lower() or not held.isdisjoint(refs)
    }
    spans = Entry.objects.filter(run=run, replacement__in=about).select_related("replacement")
    for row in spans:
        made = row.replacement
        assert made is not None
        yield EntryValue(_block(made, texts[made.pk]), row.from_step, row.to_step)


def _block(made: Replacement, text: str) -> Block:
    """A replacement as far as its text and references go."""
    return Block(
        id=f"p{made.pk}",
        position=made.position,
        message=0,
        born=0,
        turn=0,
        role="user",
        type="text",
        kind="other",
        tokens=made.tokens,
        chars=made.chars,
        sha=made.sha,
        text=text,
        replaces=f"p{made.pk}",
        refs=tuple(made.refs),
    )
