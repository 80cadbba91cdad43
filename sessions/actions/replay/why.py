"""Why a text was forgotten: its life in a run, what removed it, and what that cost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

from django.db.models import Count, Sum

from compaction.context import wire
from compaction.context.blocks import Block
from compaction.context.edits import Entry as EntryValue
from compaction.facts.facts import texts_of
from compaction.losses.life import Life, Sight, least_of, life_of, shows
from compaction.losses.loss_cost import LossCost, PaidStep, came_again, loss_cost
from compaction.losses.repairs import KINDS, Kind, Repair
from compaction.policies.trigger_words import words
from compaction.strategies import STRATEGIES
from sessions.actions.reviews.after_effects import repairs_of
from sessions.actions.reviews.losses import is_seen, paid_from
from sessions.actions.reviews.tries import CostedTries, tried_before
from sessions.models import Entry, Replacement, Revision, Run, Session
from sessions.models.record.replaced import lifespans
from sessions.models.record.values import CHUNK, blocks_at, contents

LONGEST = 200
"""Most code points of a text."""
MOST = 300
"""Most blocks that hold it: a commoner text has no life of its own."""
FEW, SHARE = 15, 50
"""So few may always hold it; more only up to one in so many blocks (our choice)."""

MOST_BYTES = 64_000_000
"""Most content that is read for one answer: it is searched in the web process."""

Cause = Literal["read again", "repeated", "failed", "corrected"]
"""What a model call after the loss was made for."""

_CAUSES: dict[Kind, Cause] = {
    "reread": "read again",
    "repeat": "repeated",
    "error": "failed",
    "edit": "failed",
    "correction": "corrected",
}


class TooCommon(ValueError):
    """More blocks hold the text than one can follow."""


class TooLong(ValueError):
    """The session is too long to answer while one waits; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Calls made because the text was missing, and what they cost, without what came again."""

    why: Cause
    loss: LossCost


@dataclass(frozen=True)
class Why:
    """The life of a text in a run, the revision that removed it, and what that revision's repairs
    say of the text, with the cause of each model call by step."""

    session: Session
    run: Run
    life: Life
    revision: Revision | None
    repairs: tuple[Repair, ...]

    @cached_property
    def repaired(self) -> Mapping[int, Cause]:
        """The cause of each repair's model call, by step."""
        # What a result shows says more than how a person's message begins.
        ordered = sorted(self.repairs, key=lambda one: KINDS.index(one.kind), reverse=True)
        return {one.step: _CAUSES[one.kind] for one in ordered}

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

    @property
    def needs(self) -> list[int]:
        """The model calls that needed the text while it was missing or to show it again."""
        return sorted({sight.call for sight in (*self.life.used, *self.life.again)})

    @cached_property
    def _paid(self) -> Mapping[int, PaidStep]:
        return paid_from(self.session, min(self.repaired, default=None))

    @cached_property
    def costs(self) -> tuple[Cost, ...]:
        """What was done again while the text was missing, by cause; estimated. Each call counts
        once. Empty for a run that no model saw."""
        by_cause: dict[Cause, list[int]] = {}
        for step, cause in sorted(self.repaired.items()):
            by_cause.setdefault(cause, []).append(step)
        return tuple(
            Cost(cause, loss_cost(by_cause[cause], self._paid))
            for cause in get_args(Cause)
            if cause in by_cause
        )

    @cached_property
    def loss(self) -> LossCost:
        """What losing the text cost: never more than the revision's repairs together."""
        return loss_cost(self.repaired, self._paid, came_again(self.repairs))

    @cached_property
    def tried(self) -> CostedTries:
        """The calls before the first repair that look like tries without the text."""
        life, left = self.life, self.life.left
        if left is None:
            return CostedTries()
        holders = [sight.block for sight in (*life.seen, *life.used)]
        return tried_before(self.session, life.text, holders, left.until, self.repaired)

    @property
    def sentence(self) -> str:
        """What happened, in a sentence or two, without the text itself."""
        life = self.life
        if not life.seen:
            return "The model never saw it, parts of longer words aside."
        left, needed = life.left, life.needed
        if left is None:
            uses = len({use.call for use in life.used})
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
        need = self.need(needed)
        said = _NEEDED[need].format(step=needed.at)
        used = next((one.at for one in life.used if one.at >= (life.asked or needed.at + 1)), None)
        if need == "read again" and used is not None:
            said = f"{said[:-1]} and used it at step {used}."
        elif need == "shown again" and used is not None:
            said = f"{said[:-1]}; the agent used it at step {used}."
        return f"{gone} {said}"

    def need(self, sight: Sight) -> Need:
        """How a step that lacked the text needed it."""
        if sight.block.role == "assistant":
            return "used"
        if sight.block.type != "tool_result":
            return "said again"
        cause = self.repaired.get(sight.at)
        return "shown again" if cause is None or cause == "corrected" else cause


Need = Literal["used", "read again", "repeated", "failed", "said again", "shown again"]

_NEEDED: dict[Need, str] = {
    "used": "At step {step} the agent used it without seeing it.",
    "read again": "At step {step} the agent read it again.",
    "repeated": "At step {step} the agent repeated the call that had shown it.",
    "failed": "At step {step} a call failed with it.",
    "said again": "At step {step} a person said it again.",
    "shown again": "At step {step} another result showed it again.",
}


def is_too_long(session: Session) -> bool:
    """Whether a session holds too much to look for a text while one waits."""
    return (session.blocks.aggregate(size=Sum("bytes"))["size"] or 0) > MOST_BYTES


def why(session: Session, run: Run, text: str, asked: int | None = None) -> Why:
    """Find the life of a text in a run. `asked` is the step whose need is looked at: with one, a
    common text can be followed too. Raises TooCommon, TooLong, MissingBlob, DamagedBlob.

    Reads every block of the session once, without parsing those that do not hold the text.
    """
    whole = session.blocks.aggregate(size=Sum("bytes"), count=Count("pk"))
    size = whole["size"] or 0
    if size > MOST_BYTES:
        raise TooLong(
            f"This session holds {size / 1e6:,.0f} MB, too much to look through while you wait. "
            "Search for the text instead, and open a step that shows it."
        )
    places = _places(session, least_of(text))
    rare = min(MOST, max(FEW, (whole["count"] or 0) // SHARE))
    if asked is None and len(places) > MOST:
        raise _too_common(len(places))
    blocks = [block for block in blocks_at(session, places) if shows(block, text)]
    # What shows a path by its end alone does not make it common.
    whole_in = sum(any(text.lower() in one.lower() for one in texts_of(block)) for block in blocks)
    if asked is None and whole_in > rare:
        raise _too_common(whole_in)
    entries = list(_entries(session, run, blocks, text))
    life = replace(life_of(text, blocks, entries, session.step_count), asked=asked)
    left = life.left
    numbers = left.revisions if left is not None else ()
    revision = run.revisions.filter(number__in=numbers).order_by("number").last()
    if revision is not None:
        revision.run = run
    return Why(session, run, life, revision, _repaired(session, life, revision))


def _too_common(many: int) -> TooCommon:
    return TooCommon(
        f"It appears in {many:,} blocks: too common to follow. "
        "Give a longer text, such as the words beside it, or a step that needed it."
    )


def _repaired(session: Session, life: Life, revision: Revision | None) -> tuple[Repair, ...]:
    """The repairs of a revision at the steps that needed the text."""
    if revision is None or not is_seen(session, revision.run):
        return ()
    needed = {sight.at for sight in (*life.missed, *life.again)}
    found = repairs_of(session, revision) if needed else ()
    return tuple(one for one in found if one.step in needed)


def holds(session: Session, text: str) -> bool:
    """Whether any block holds the text as the reader sees it."""
    return bool(_places(session, text.lower()))


def _places(session: Session, text: str) -> list[int]:
    """Positions of the blocks whose JSON contains a text as JSON writes it, in any case."""
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
    yield from lifespans(run, blocks)
    yield from _replacements(session, run, {block.id for block in blocks}, text)


def _replacements(session: Session, run: Run, held: set[str], text: str) -> Iterator[EntryValue]:
    rows = list(run.replacements.values_list("pk", "sha", "refs"))
    data: dict[str, bytes] = {}
    for begin in range(0, len(rows), CHUNK):
        data |= contents(session, [sha for _, sha, _ in rows[begin : begin + CHUNK]])
    texts = {pk: wire.text_of(wire.decode(data[sha])) for pk, sha, _ in rows}
    wanted = least_of(text)
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
