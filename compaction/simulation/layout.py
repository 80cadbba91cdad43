"""The prompt of every step of a run as a cache sees it: its length and its unchanged prefix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from compaction.cache.prefix import PrefixSums
from compaction.cache.uses import Cause
from compaction.context.edits import Entry
from compaction.simulation.simulate import Run, StepTokens

HIDDEN_BLOCKS = 2
"""The hidden prompt counts as two blocks, tools and system, with a breakpoint at its end."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The prompt of one step: `total` tokens in `blocks` content blocks. The first
    `prelude` tokens are the hidden prompt and definitions of ours.

    `unchanged` tokens are as in the step before, `appended` are new at the end, `output` is what
    the step wrote, as far as the next one shows. `frontier` is the tokens and blocks up to the last
    replacement, (0, 0) without one; `last` those up to the last breakpoint, None if that is the
    end. The `passing` tokens after it are not part of the next prompt.
    """

    step: StepTokens
    total: int
    blocks: int
    unchanged: int
    appended: int
    output: int
    prelude: int = 0
    frontier: tuple[int, int] = (0, 0)
    changed: Cause = "unexplained"
    last: tuple[int, int] | None = None
    passing: int = 0
    images: bool = False

    @property
    def cacheable(self) -> tuple[int, int]:
        """Tokens and blocks before the last breakpoint."""
        return self.last or (self.total, self.blocks)


@dataclass(slots=True)
class _Timeline:
    """The entries of a run by step: which open, which close, and the output tokens."""

    opens: dict[int, list[Entry]]
    closes: dict[int, list[Entry]]
    output: dict[int, int]

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> _Timeline:
        made = cls({}, {}, {})
        for entry in entries:
            if entry.opened_by is None and entry.block.role == "assistant":
                step = entry.from_step - 1
                made.output[step] = made.output.get(step, 0) + entry.block.tokens
            made.opens.setdefault(entry.from_step, []).append(entry)
            if entry.to_step is not None:
                made.closes.setdefault(entry.to_step, []).append(entry)
        return made


def recorded(run: Run) -> Iterator[Layout]:
    """Yield the prompts of the recorded session, without the run's edits."""
    timeline = _Timeline.of(entry for entry in run.entries if entry.opened_by is None)
    total, blocks, last = run.hidden, HIDDEN_BLOCKS if run.hidden else 0, 0
    unchanged, images = 0, False
    for step in run.steps:
        for passed in range(last + 1, step.step + 1):
            for entry in timeline.opens.get(passed, ()):
                total += entry.block.tokens
                blocks += 1
                images = images or entry.block.type == "image"
        last = step.step
        output = timeline.output.get(step.step, 0)
        appended = total - unchanged
        yield Layout(step, total, blocks, unchanged, appended, output, run.hidden, images=images)
        unchanged = total


def managed(run: Run) -> Iterator[Layout]:
    """Yield the prompts of a run, with the place of the last replacement as frontier."""
    timeline, standing = _Timeline.of(run.entries), _BlockCounts(run.entries)
    triggers = {revision.number: revision.trigger for revision in run.revisions}
    last, once_from = 0, None
    before = run.steps[0].added if run.steps else 0
    for number, step in enumerate(run.steps):
        appended = 0
        for passed in range(last + 1, step.step + 1):
            appended += standing.follow(
                timeline.opens.get(passed, ()), timeline.closes.get(passed, ()), once_from
            )
            once_from = None
        last, once_from = step.step, step.once_from
        changed: Cause = "unexplained"
        if step.revision is not None:
            changed = "rewind" if triggers.get(step.revision) == "rewind" else "edit"
        prelude = run.hidden + step.added
        hidden, total = HIDDEN_BLOCKS if prelude else 0, prelude + step.total
        # A tool that joins is before everything else.
        unchanged = prelude + step.unchanged_prefix if number and step.added == before else 0
        before = step.added
        yield Layout(
            step=step,
            total=total,
            blocks=hidden + standing.count(),
            unchanged=unchanged,
            appended=appended + step.recited if number else total,
            output=timeline.output.get(step.step, 0),
            prelude=prelude,
            frontier=(prelude + step.frontier, hidden + standing.before_frontier())
            if step.frontier
            else (0, 0),
            changed=changed,
            last=(prelude + step.cacheable, hidden + standing.count(once_from)),
            passing=step.passing,
            images=bool(standing.images),
        )


class _BlockCounts:
    """Count the blocks up to a position and up to the last replacement."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        positions = sorted({entry.block.position for entry in entries})
        self.places = {position: place for place, position in enumerate(positions)}
        self.sums = PrefixSums()
        for _ in positions:
            self.sums.append(0)
        self.replacements: list[tuple[int, str]] = []
        self.gone: set[str] = set()
        self.images: set[str] = set()

    def follow(
        self, opens: Sequence[Entry], closes: Sequence[Entry], once_from: int | None = None
    ) -> int:
        """Apply opens and closes; return the new tokens at the end.

        Blocks from position `once_from` on were not meant to last: entries that open there are new.
        """
        for entry in closes:
            # No call saw an entry that opened and closed at once.
            if entry.from_step != entry.to_step:
                self.sums.add(self.places[entry.block.position], -1)
                self.gone.add(entry.block.id)
                self.images.discard(entry.block.id)
        stay = [entry for entry in opens if entry.from_step != entry.to_step]
        fresh = [entry.block.position for entry in opens if entry.opened_by is None]
        for entry in stay:
            self.sums.add(self.places[entry.block.position], 1)
            self.gone.discard(entry.block.id)
            if entry.block.type == "image":
                self.images.add(entry.block.id)
            if entry.block.replaces is not None:
                heappush(self.replacements, (-entry.block.position, entry.block.id))
        start = min(fresh if once_from is None else [once_from, *fresh], default=None)
        if start is None:
            return 0
        return sum(entry.block.tokens for entry in stay if entry.block.position >= start)

    def count(self, before: int | None = None) -> int:
        """Count all blocks, or those before a position."""
        return self.sums.before(len(self.sums) if before is None else self.places[before])

    def before_frontier(self) -> int:
        """Count the blocks up to and including the last replacement."""
        while self.replacements and self.replacements[0][1] in self.gone:
            heappop(self.replacements)
        if not self.replacements:
            return 0
        return self.sums.before(self.places[-self.replacements[0][0]] + 1)
