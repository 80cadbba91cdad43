"""Served runs in memory: folds that were made or rebuilt once, and go on from there."""

from __future__ import annotations

import sys
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from django.db import transaction
from django.db.models import F

from compaction import edits, tokens
from compaction.cache.economy import session_rates
from compaction.context import Block
from compaction.fold import State, marks_of, resume, start
from compaction.plan import FileText, Means, Span, Wish
from compaction.policies.policy import Policy, from_dict
from compaction.topic import Topic
from sessions import topic_judge
from sessions.actions import artefacts
from sessions.actions.runs import News, RunWriter
from sessions.actions.stopwatch import Stopwatch
from sessions.live import hint
from sessions.models import Run, Session
from sessions.models.revised import revisions_of
from sessions.models.values import asked_of, blocks_of
from sessions.summarizers import Extractive, chosen

T = TypeVar("T")

MOST_BYTES = 96 * 1024 * 1024
"""Text kept in memory by all folds of a process together."""

AT_ONCE_CHARS = 250_000
"""Code points up to which code alone summarises within the request: about 30 ms, 150 at worst, most
of it for masking. Longer spans are a worker's."""

BLOCK_BYTES = 1_500
"""About what a block takes beside its text: its values and its places in the state."""

PATIENCE = 3
"""Lost races after which the row stays locked while a fold works: who begins anew is slower than
those who go on, and might lose for ever."""


class Raced(Exception):
    """Another process wrote the same served run meanwhile; nothing was stored."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """How far the rows of a served run are; each write raises `writes`."""

    head: int = 0
    steps: int = 0
    taken: int = 0
    writes: int = 0

    @classmethod
    def of(cls, run: Run) -> Stamp:
        return cls(run.head, run.steps, run.taken, run.fold.get("writes", 0))


@dataclass(slots=True)
class Fold:
    """A served run as a state, and what is not stored of it yet; used under its lock.

    `taken` counts originals looked at, those that are left out included. `recorded` is the newest
    revision of the recorded run that was heeded, `late` originals that arrived after their birth.
    `holders` counts who has it or waits for it.
    """

    run_id: uuid.UUID
    lock: threading.RLock = field(default_factory=threading.RLock)
    run: Run | None = None
    current: State | None = None
    stamp: Stamp = field(default_factory=Stamp)
    taken: int = 0
    recorded: int = 0
    late: dict[int, int] = field(default_factory=dict)
    left_out: list[int] = field(default_factory=list)
    unscaled: dict[str, int] = field(default_factory=dict)
    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    ratio: int = 0
    bytes: int = 0
    holders: int = 0

    @property
    def state(self) -> State:
        """The fold itself; there is one while the fold is open."""
        assert self.current is not None
        return self.current

    def forget(self) -> None:
        """Let go of the state: it may differ from what is stored."""
        self.current, self.stamp, self.bytes = None, Stamp(), 0

    def refresh(self, session: Session) -> None:
        """Bring the state to what is stored now: from nothing, or by what others wrote since."""
        run = Run.objects.select_related("policy_version").get(pk=self.run_id)
        stamp = Stamp.of(run)
        older = stamp.head < self.stamp.head or stamp.writes < self.stamp.writes
        if self.current is None or older or self.ratio != session.token_ratio:
            self._begin(session, run)
        if stamp != self.stamp:
            self._resume(session, run)
        self.run, self.stamp = run, stamp
        self.recorded = run.fold.get("recorded", 0)
        self.late, self.left_out, self.unscaled = {}, [], {}
        self.stopwatch = Stopwatch()
        self.state.means = self._means(session, self.state.policy)

    def _begin(self, session: Session, run: Run) -> None:
        assert run.policy_version is not None
        self.stamp, self.taken, self.bytes = Stamp(), 0, 0
        self.ratio = session.token_ratio
        policy = from_dict(session.policy_document or run.policy_version.document)
        self.current = start(policy, 0, self._means(session, policy))

    def _resume(self, session: Session, run: Run) -> None:
        state, new = self.state, []
        if run.taken > self.taken:
            new = list(blocks_of(session, with_text=True, start=self.taken, end=run.taken))
        steps, left_out = self._arrivals(run)
        arrived = [(steps.get(b.position, b.born), b) for b in new if b.position not in left_out]
        originals = state.originals | {block.position: block for block in new}
        held = {entry.block.id: entry.block for entry in state.entries if entry.block.replaces}
        revisions = revisions_of(session, run, originals, held, after=self.stamp.head)
        self.weigh([*new, *_made(revisions)])
        resume(state, arrived, revisions, run.fold)
        self.taken = run.taken

    def _arrivals(self, run: Run) -> tuple[dict[int, int], set[int]]:
        """Steps of originals that arrived late, and positions of those that were left out."""
        rows = run.entries.filter(opened_by=None, block__isnull=False, position__gte=self.taken)
        late: dict[int, int] = {}
        left_out: set[int] = set()
        for place, step, end, closed in rows.values_list(
            "position", "from_step", "to_step", "closed_by"
        ):
            late[place] = step
            if end is not None and closed is None:
                left_out.add(place)
        return late, left_out

    def weigh(self, blocks: Iterable[Block]) -> None:
        """Count what these blocks take in memory."""
        self.bytes += sum(sys.getsizeof(block.text) + BLOCK_BYTES for block in blocks)

    def _means(self, session: Session, policy: Policy) -> Means:
        watch = self.stopwatch

        def count(text: str) -> int:
            began = time.perf_counter_ns()
            known = self.unscaled.get(text)
            if known is None:
                known = self.unscaled[text] = tokens.count(text)
            watch.counting += time.perf_counter_ns() - began
            return session.scaled(known)

        missing: list[Span] = []
        judge = topic_judge.chosen()

        def summarize(span: Span) -> str | None:
            # Of many steps taken at once each asks for the same span, and to name it takes long.
            if span in missing:
                return None
            began = time.perf_counter_ns()
            text = _summary(session, span)
            if text is None:
                missing[:] = [span]
            else:
                watch.summary_ms = artefacts.summary_ms(session, span)
            watch.outside += time.perf_counter_ns() - began
            return text

        def outline(file: FileText) -> str | None:
            began = time.perf_counter_ns()
            text = artefacts.outline_text(session, file)
            watch.outside += time.perf_counter_ns() - began
            return text

        return Means(
            count,
            summarize,
            outline,
            judge=None if judge is None else lambda topic: artefacts.verdict(session, topic, judge),
            rates=session_rates(session.model, *asked_of(session), policy.lifetime),
        )

    def store(self, session: Session, revisions: Sequence[edits.Revision]) -> None:
        """Write what the state has become since it was refreshed; all of it or nothing.

        Raises Raced where another process wrote first.
        """
        run, state = self.run, self.state
        assert run is not None and run.policy_version is not None
        old = self.stamp
        new = Stamp(state.revisions, state.step, self.taken, old.writes + 1)
        run.head, run.steps, run.taken = new.head, new.steps, new.taken
        run.fold = marks_of(state) | {
            "writes": new.writes,
            "recorded": self.recorded,
            "counted": state.counted,
            "recited": state.ending.tokens,
            "wanted": [label(wish) for wish in state.wanted],
        }
        news = News(
            revisions, state.known, self.late, self.left_out, int(time.time() * 1000),
            self.stopwatch.times,
        )  # fmt: skip
        with transaction.atomic():
            # First: all who write both lock the session's row before the run's.
            if self._note_use(session) or revisions:
                tell(session)
            written = Run.objects.filter(
                pk=run.pk,
                head=old.head,
                steps=old.steps,
                taken=old.taken,
                fold__writes=old.writes,
            ).update(
                head=run.head,
                steps=run.steps,
                taken=run.taken,
                fold=run.fold,
                token_ratio=self.ratio,
            )
            if not written:
                raise Raced
            writer = RunWriter(run, session, run.policy_version, self.unscaled)
            writer.write(news, fresh=False)
        self.weigh(_made(revisions))
        self.stamp = new
        self.late, self.left_out, self.unscaled = {}, [], {}

    def _note_use(self, session: Session) -> bool:
        """Keep with the session what its next call sends, unless more came than was taken in;
        whether that was news."""
        use = {"used_tokens": self.state.billed, "counted_tokens": self.state.counted}
        caught_up = Session.objects.filter(pk=session.pk, block_count=self.taken)
        return bool(caught_up.exclude(**use).update(**use))


def _made(revisions: Iterable[edits.Revision]) -> list[Block]:
    """The replacements of revisions."""
    made = (edit.replacement for revision in revisions for edit in revision.edits)
    return [block for block in made if block is not None]


def _summary(session: Session, span: Span) -> str | None:
    """The summary of a span; a short one that code alone makes need not wait for a worker."""
    text = artefacts.summary_text(session, span)
    short = sum(block.chars for block in span.blocks) <= AT_ONCE_CHARS
    if text is None and short and isinstance(chosen(), Extractive):
        artefacts.make(session, span)
        text = artefacts.summary_text(session, span)
    return text


def label(wish: Wish) -> str:
    """What an artefact that is not ready is called in a plan."""
    if isinstance(wish, Topic):
        return "topic"
    return "summary" if isinstance(wish, Span) else f"outline of {wish.path}"


def tell(session: Session) -> None:
    """Raise the session's version and tell open pages; inside the transaction of what changed."""
    Session.objects.filter(pk=session.pk).update(version=F("version") + 1)
    session.refresh_from_db(fields=["version", "used_tokens", "counted_tokens"])
    hint(f"session:{session.pk}", session.version)


_folds: OrderedDict[uuid.UUID, Fold] = OrderedDict()
_guard = threading.Lock()


def with_fold(session: Session, run: Run, work: Callable[[Fold], T]) -> T:
    """Let some work have the fold of a served run, fresh from the rows; again after a lost race."""
    for _ in range(PATIENCE):
        try:
            with _opened(session, run) as fold:
                return work(fold)
        except Raced:
            continue
    with holding(run), transaction.atomic():
        Session.objects.select_for_update().only("pk").get(pk=session.pk)
        Run.objects.select_for_update().only("pk").get(pk=run.pk)
        with _opened(session, run) as fold:
            return work(fold)


@contextmanager
def holding(run: Run) -> Iterator[Fold]:
    """Have the fold of a served run to oneself; to be called before a transaction, never within.

    Whoever has the fold writes while having it, and would wait for a transaction that waits here.
    """
    with _guard:
        fold = _folds.setdefault(run.pk, Fold(run.pk))
        _folds.move_to_end(run.pk)
        fold.holders += 1
    try:
        with fold.lock:
            yield fold
    finally:
        with _guard:
            fold.holders -= 1


@contextmanager
def ready(session: Session, run: Run) -> Iterator[None]:
    """The same, and the fold is at what is stored: a transaction that opens it does so at once."""
    with holding(run):
        with _opened(session, run):
            pass
        yield


@contextmanager
def _opened(session: Session, run: Run) -> Iterator[Fold]:
    with holding(run) as fold:
        try:
            fold.refresh(session)
            yield fold
        except BaseException:
            fold.forget()
            raise
    _trim(keep=run.pk)


def _trim(keep: uuid.UUID) -> None:
    """Let the folds go that were not used for longest, until the rest fits."""
    with _guard:
        held = sum(fold.bytes for fold in _folds.values())
        for run_id in list(_folds):
            if held <= MOST_BYTES or run_id == keep:
                break
            # Two folds of one run would let two in at once.
            if not _folds[run_id].holders:
                held -= _folds.pop(run_id).bytes


def forget_all() -> None:
    """Let all folds go, as a process that starts has none."""
    with _guard:
        _folds.clear()
