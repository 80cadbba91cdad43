"""Managed runs in memory: folds are built once and then advanced."""

from __future__ import annotations

import sys
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any, TypeVar

from django.conf import settings
from django.db import IntegrityError, transaction

from compaction import tokens
from compaction.cache.economy import Rates, TTLSetting, granted, session_rates
from compaction.cache.simulator import TTL
from compaction.context.blocks import Block
from compaction.context.wire import WireBlock
from compaction.fold.fold import State, start
from compaction.policies.policy import Policy, from_dict
from compaction.prices.binding import binds_thinking
from compaction.prices.system_messages import takes_system_messages
from compaction.proposals.plan import FileText, Means, Span
from sessions import metrics, topic_judge
from sessions.actions.live import artefacts
from sessions.actions.live.rebuilt import take_up
from sessions.actions.live.stopwatch import Stopwatch
from sessions.actions.memory import boards
from sessions.models import Run, Session
from sessions.models.record.model_calls import asked_of
from sessions.models.web.shown import as_stored
from sessions.models.web.statements import Statement, given_uuid

T = TypeVar("T")

MOST_BYTES = 96 * 1024 * 1024
"""Maximum text kept in memory by all folds of a process, in bytes."""

BLOCK_BYTES = 1_500
"""Approximate memory per block besides its text, in bytes."""

PATIENCE = 3
"""Lost races after which the row is locked during the work: rebuilding is slower than advancing, so
a loser might lose forever."""


class Raced(Exception):
    """Another process wrote to the same managed run; nothing was stored."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """The extent of a managed run's rows; each write increments `writes`."""

    head: int = 0
    steps: int = 0
    taken: int = 0
    writes: int = 0

    @classmethod
    def of(cls, run: Run) -> Stamp:
        return cls(run.head, run.steps, run.taken, run.fold.get("writes", 0))


@dataclass(slots=True)
class Fold:
    """A managed run as a state, with its unstored changes; use only under its lock.

    `taken` counts processed originals, including excluded ones. `recorded` is the newest revision
    of the recorded run that was processed, `late` originals that arrived after their birth, `wires`
    the wire form of those that were new. `asked` is the TTL that the client asks for; `holders`
    counts users and waiters.
    """

    run_id: uuid.UUID
    lock: threading.RLock = field(default_factory=threading.RLock)
    run: Run | None = None
    current: State | None = None
    stamp: Stamp = field(default_factory=Stamp)
    taken: int = 0
    recorded: int = 0
    late: dict[int, int] = field(default_factory=dict)
    wires: dict[str, WireBlock] = field(default_factory=dict)
    left_out: list[int] = field(default_factory=list)
    unscaled: dict[str, int] = field(default_factory=dict)
    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    rated: tuple[tuple[Any, ...], Rates] | None = None
    asked: TTL = "5m"
    ratio: int = 0
    bytes: int = 0
    holders: int = 0

    @property
    def state(self) -> State:
        """The state; exists while the fold is open."""
        assert self.current is not None
        return self.current

    @property
    def ttl(self) -> TTLSetting:
        """The TTL of its contexts: the policy's, never longer than the client asks for."""
        return granted(self.state.policy.ttl, self.asked)

    def forget(self) -> None:
        """Drop the state, because it may differ from what is stored."""
        self.current, self.stamp, self.bytes = None, Stamp(), 0

    def refresh(self, session: Session) -> None:
        """Update the state to what is stored, from scratch or by others' writes."""
        run = Run.of(session, Run.Origin.MANAGED)
        if run is None or run.pk != self.run_id:
            raise Run.DoesNotExist
        stamp = Stamp.of(run)
        older = stamp.head < self.stamp.head or stamp.writes < self.stamp.writes
        rebuilt = self.current is None or older or self.ratio != session.token_ratio
        metrics.FOLDS.labels("rebuilt" if rebuilt else "in memory").inc()
        if rebuilt:
            self._begin(session, run)
        if stamp != self.stamp:
            self.weigh(take_up(session, run, self.state, self.taken, self.stamp.head))
            self.taken = run.taken
        self.run, self.stamp, self.stopwatch = run, stamp, Stopwatch()
        self.recorded = run.fold.get("recorded", 0)
        self.late, self.left_out, self.unscaled, self.wires = {}, [], {}, {}
        self.state.means = self._means(session, self.state.policy)

    def _begin(self, session: Session, run: Run) -> None:
        assert run.policy_version is not None
        self.stamp, self.taken, self.bytes = Stamp(), 0, 0
        self.ratio = session.token_ratio
        policy = from_dict(session.policy_document or run.policy_version.document)
        self.current = start(policy, 0, self._means(session, policy))

    def weigh(self, blocks: Iterable[Block]) -> None:
        """Add the memory used by these blocks."""
        self.bytes += sum(sys.getsizeof(block.text) + BLOCK_BYTES for block in blocks)

    def _rates(self, session: Session, policy: Policy) -> Rates:
        """Cache rates, recomputed when their inputs change."""
        began, self.asked = asked_of(session)
        follows = session.model, began, self.asked, policy.ttl
        if self.rated is None or self.rated[0] != follows:
            self.rated = follows, session_rates(*follows)
        return self.rated[1]

    def _means(self, session: Session, policy: Policy) -> Means:
        watch = self.stopwatch

        def count(text: str) -> int:
            began = perf_counter_ns()
            known = self.unscaled.get(text)
            if known is None:
                known = self.unscaled[text] = tokens.count(text)
            watch.counting += perf_counter_ns() - began
            return session.scaled(known)

        missing: list[Span] = []
        judge = topic_judge.chosen() if settings.TOPIC_JUDGE == "anthropic" else None

        def summarize(span: Span) -> str | None:
            # When many steps are processed at once, each requests the same span, and digests are
            # slow.
            if span in missing:
                return None
            began = perf_counter_ns()
            text = artefacts.summary_now(session, span)
            if text is None:
                missing[:] = [span]
            else:
                watch.summary_ms = artefacts.summary_ms(session, span)
            watch.outside += perf_counter_ns() - began
            return text

        def outline(file: FileText) -> str | None:
            began = perf_counter_ns()
            text = artefacts.outline_text(session, file)
            watch.outside += perf_counter_ns() - began
            return text

        def board(most: int) -> str:
            began = perf_counter_ns()
            text = boards.shown(session, min(policy.board, most)) if policy.board else ""
            watch.outside += perf_counter_ns() - began
            return text

        return Means(
            count,
            summarize,
            outline,
            judge=None if judge is None else lambda topic: artefacts.verdict(session, topic, judge),
            rates=self._rates(session, policy),
            binds=binds_thinking(session.model),
            one_turn=takes_system_messages(session.model),
            board=board,
        )


_folds: OrderedDict[uuid.UUID, Fold] = OrderedDict()
_guard = threading.Lock()


def serving(session: Session) -> Run | None:
    """The managed run of a session, created on demand; None without a policy. Its other columns are
    read with its fold."""
    found: Run | None = _SERVING.first(session=session.pk)
    if found is not None or session.policy_version_id is None:
        return found
    try:
        with transaction.atomic():
            return Run.objects.create(
                session=session,
                origin=Run.Origin.MANAGED,
                policy_version_id=session.policy_version_id,
                token_ratio=session.token_ratio,
                fold={"writes": 0},
            )
    except IntegrityError:
        return Run.objects.get(session=session, origin=Run.Origin.MANAGED)


_SERVING = Statement(
    lambda: Run.objects.filter(session_id=given_uuid("session"), origin=Run.Origin.MANAGED).only(
        "pk"
    )
)


def with_fold(session: Session, run: Run, work: Callable[[Fold], T]) -> T:
    """Run some work on the fresh fold of a run, kept as stored; retry after lost races."""
    with metrics.FOLD_SECONDS.time(), as_stored():
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
    """Hold the fold of a managed run exclusively. Call before a transaction begins, never within.

    The holder writes, and would deadlock with a transaction that waits here.
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
    """Hold the up-to-date fold, so that a transaction can open it immediately."""
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
    """Evict the least recently used folds until the rest fits."""
    with _guard:
        held = sum(fold.bytes for fold in _folds.values())
        for run_id in list(_folds):
            if held <= MOST_BYTES or run_id == keep:
                break
            # Two folds of one run would break exclusivity.
            if not _folds[run_id].holders:
                held -= _folds.pop(run_id).bytes


def forget_all() -> None:
    """Drop all folds, as in a new process."""
    with _guard:
        _folds.clear()
