"""The state of a fold: the current context, its history, and each strategy's progress."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from compaction.cache.prefix import PrefixSums
from compaction.context.blocks import KINDS, Block, Context, Ending, Kind
from compaction.context.edits import Edit, Entry, RefusedEdits, Revision, Trigger
from compaction.context.groups import Groups
from compaction.context.ranges import Ranges, joined
from compaction.facts.holders import Holders
from compaction.policies.policy import Policy
from compaction.proposals.plan import Mark, Means, Wish
from compaction.proposals.strategy import Knowledge
from compaction.recitation.recite import Recital
from compaction.recitation.room import LineTokens
from compaction.seen.repeats import Repeats
from compaction.seen.ripening import Ripening
from compaction.seen.sights import STUB, Sights
from compaction.strategies import STRATEGIES, entered_short
from compaction.tokens import scaled
from compaction.topic.mentions import Mentions
from compaction.topic.topic import Rounds

EVEN = 1000
"""Permille at which our count equals the provider's."""


@dataclass(slots=True)
class State:
    """A session's context under a policy, after `step`; made by `start`, changed by the fold.

    `asks` is the knowledge that the policy's strategies need. `standing` is the context, `entries`
    the history of each block, `sums` the tokens by index in `arrivals`. `scale` is the provider's
    count in permille of ours, from the last reported prompt; None before there was one. `used` is
    the number of tokens of the whole prompt before the last step's edits, in the provider's count
    as far as known.

    `unchanged_prefix` and `touched` describe the last step: tokens shared with the context before,
    and the lowest position its revision touched. `requested` is the lowest position that people's
    requests changed since then: no model saw that yet. `bound`: whether edits so far have taken the
    thinking along that they made invalid. `wanted` are artifacts that were not ready
    at the last step, `waiting` the positions up to which strategies had wanted a summary, `skipped`
    the reasons why strategies that were due did nothing. `stubs` are the positions of replacements
    in the context, ascending, except those made on arrival; `shortened` those of all replacements
    of results. `covers` maps a replacement to the originals it covers; `gone` are originals that
    the agent removed. `last` is when the newest call before this step began (ms since the epoch),
    if known, `idle` how long ago. `recital` holds the data of a recitation, `lines` the tokens of
    its lines, `ending` what follows the cacheable blocks.
    """

    policy: Policy
    means: Means
    window: int
    hidden: int
    asks: frozenset[Knowledge] = frozenset()
    step: int = 0
    last: int | None = None
    idle: int | None = None
    standing: Context = field(default_factory=dict)
    originals: Context = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)
    arrivals: list[int] = field(default_factory=list)
    sums: PrefixSums = field(default_factory=PrefixSums)
    by_kind: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    total: int = 0
    used: int = 0
    scale: int | None = None
    groups: Groups = field(default_factory=Groups)
    sights: Sights = field(default_factory=Sights)
    rounds: Rounds = field(default_factory=Rounds)
    repeats: Repeats = field(default_factory=Repeats)
    ripening: Ripening = field(init=False)
    mentions: Mentions = field(default_factory=Mentions)
    marks: list[Mark] = field(default_factory=list)
    failures: list[int] = field(default_factory=list)
    waiting: list[int | None] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    open_entries: dict[int, Entry] = field(default_factory=dict)
    stubs: list[int] = field(default_factory=list)
    shortened: list[int] = field(default_factory=list)
    recital: Recital = field(default_factory=Recital)
    lines: LineTokens = field(init=False)
    ending: Ending = field(default_factory=Ending)
    covers: dict[str, Ranges] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    made: list[Revision] = field(default_factory=list)
    refusals: list[RefusedEdits] = field(default_factory=list)
    wanted: list[Wish] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    unchanged_prefix: int = 0
    touched: int | None = None
    requested: int | None = None
    bound: bool = True

    def __post_init__(self) -> None:
        self.lines = LineTokens(self.means.count)
        self.ripening = Ripening(holders=Holders(self.means.facts_of))

    @property
    def revisions(self) -> int:
        """Number of the newest revision; 0 before the first."""
        return len(self.made)

    @property
    def counts_facts(self) -> bool:
        """Whether the policy needs to know which facts are where."""
        return "facts" in self.asks

    @property
    def counted(self) -> int:
        """Tokens of the whole prompt in our count: hidden, context and recitation."""
        return self.hidden + self.total + self.ending.tokens

    @property
    def billed(self) -> int:
        """Tokens of the whole prompt in the provider's count, as far as known."""
        return self.counted if self.scale is None else scaled(self.counted, self.scale)

    def prefix_tokens(self, position: int) -> int:
        """Return the tokens of the blocks before a position, in O(log n)."""
        return self.sums.before(bisect_left(self.arrivals, position))

    @property
    def frontier(self) -> int:
        """Tokens up to and including the last replacement of a seen block; 0 without one."""
        return self.prefix_tokens(self.stubs[-1] + 1) if self.stubs else 0

    def positions_of(self, block: Block) -> tuple[int, ...]:
        """Positions of the originals that a block is, or tells of, ascending."""
        return tuple(chain.from_iterable(self.covered(block)))

    def covered(self, block: Block) -> Ranges:
        """Return the positions of the originals that a block covers, as ranges."""
        found = self.covers.get(block.id)
        return (range(block.position, block.position + 1),) if found is None else found

    def stands_alone(self, block: Block, place: int) -> bool:
        """Return whether a block covers this position only."""
        return self.covered(block) == (range(place, place + 1),)


def start(policy: Policy, window: int, means: Means, hidden: int = 0) -> State:
    """Create an empty context under a policy; `window` and `hidden` are in tokens."""
    marks = [dict(STRATEGIES[step.strategy].mark) for step in policy.steps]
    none: list[int | None] = [None] * len(marks)
    failures = [0] * len(marks)
    asks = frozenset(chain.from_iterable(STRATEGIES[step.strategy].asks for step in policy.steps))
    return State(
        policy, means, window, hidden, asks, marks=[*marks], failures=failures, waiting=none
    )


def take_in(state: State, block: Block, step: int) -> None:
    """Add an original from a step on; its position must be beyond all that arrived."""
    position = block.position
    state.arrivals.append(position)
    state.sums.append(0)
    state.originals[position] = block
    state.groups.add(block)
    state.sights.add(block)
    state.rounds.add(block, state.groups.uses.get(block.tool_call or ""))
    if state.policy.recite is not None:
        state.recital.add(block)
    if "repeats" in state.asks:
        state.repeats.add(block)
    if "ripening" in state.asks:
        state.ripening.add(block, state.groups.uses.get(block.tool_call or ""))
    _open(state, block, step)


def make(state: State, edit: Edit, number: int, step: int) -> None:
    """Make one edit of a revision; its targets must be in the context, its restores must not."""
    closed = [state.standing[state.known[target]] for target in edit.targets]
    covered = joined(part for block in closed for part in state.covered(block))
    if edit.replacement is not None:
        opened = [edit.replacement]
        state.covers[edit.replacement.id] = covered
        _lend(state, edit.replacement)
    else:
        opened = [_own(state, block) for block in edit.restores]
    for block in closed:
        _close(state, block.position, number, step)
    stay = {block.position for block in opened}
    for block in closed:
        if block.position not in stay:
            del state.standing[block.position]
    for block in opened:
        if block.replaces is not None:
            state.covers.setdefault(block.id, covered)
        _open(state, block, step, number)
    if edit.restores:
        state.sights.restored()
        state.standing = dict(sorted(state.standing.items()))
    touched = [block.position for block in (*closed, *opened)]
    if touched:
        before = touched if state.touched is None else [*touched, state.touched]
        state.touched = min(before)


def numbered(
    state: State, trigger: Trigger, edits: Iterable[Edit], before: int, reason: str = ""
) -> Revision:
    """Number the edits just made as one revision."""
    made = tuple(edits)
    reason = reason or "; ".join(edit.reason for edit in made)
    number = state.revisions + 1
    revision = Revision(number, state.step, trigger, made, before, state.total, reason)
    state.made.append(revision)
    return revision


def _lend(state: State, note: Block) -> None:
    """Record that the texts a note relies on are in use again."""
    if note.id.startswith(STUB):
        for source in note.refs[1:]:
            state.ripening.lend(state.known[source], note.born)


def _own(state: State, block: Block) -> Block:
    """Return the state's own object for an original, because some code compares identity."""
    return state.originals[block.position] if block.replaces is None else block


def _open(state: State, block: Block, step: int, number: int | None = None) -> None:
    position = block.position
    # Overwritten, never deleted first: that keeps the dict in context order.
    state.standing[position] = block
    state.known[block.id] = position
    state.sums.add(bisect_left(state.arrivals, position), block.tokens)
    state.by_kind[block.kind] += block.tokens
    state.total += block.tokens
    if state.counts_facts:
        state.ripening.holders.open(block)
    entry = Entry(block, step, opened_by=number)
    state.entries.append(entry)
    state.open_entries[position] = entry
    if block.replaces is not None and not entered_short(block):
        insort(state.stubs, position)
    if block.replaces is not None and block.type == "tool_result":
        insort(state.shortened, position)


def _close(state: State, position: int, number: int, step: int) -> None:
    block = state.standing[position]
    state.sums.add(bisect_left(state.arrivals, position), -block.tokens)
    state.by_kind[block.kind] -= block.tokens
    state.total -= block.tokens
    if state.counts_facts:
        state.ripening.holders.close(block)
    entry = state.open_entries.pop(position)
    entry.to_step, entry.closed_by = step, number
    if block.replaces is not None and not entered_short(block):
        del state.stubs[bisect_left(state.stubs, position)]
    if block.replaces is not None and block.type == "tool_result":
        del state.shortened[bisect_left(state.shortened, position)]


def leave_for_good(state: State, places: set[int]) -> None:
    """Record that the agent removed originals; recitations treat them as never existing."""
    if places - state.gone and state.policy.recite is not None:
        stay = (p for p in state.arrivals if p not in state.gone and p not in places)
        # Unpinned, as they arrived: a rebuilt state receives pins at other times.
        state.recital = Recital.of(replace(state.originals[one], pinned=False) for one in stay)
    state.gone |= places


def set_pinned(state: State, position: int, pinned: bool) -> None:
    """Pin or unpin an original; restores nothing."""
    old = state.originals[position]
    if old.pinned == pinned:
        return
    block = replace(old, pinned=pinned)
    state.originals[position] = block
    state.groups.set_pinned(block)
    if state.standing.get(position) is old:
        state.standing[position] = block
        state.open_entries[position].block = block


def pinned(state: State) -> Sequence[int]:
    """Return the positions of pinned originals, ascending."""
    return state.groups.pins
