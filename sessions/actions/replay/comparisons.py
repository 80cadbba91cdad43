"""Two sessions compared: their steps aligned by what the model did, and their figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from django.db.models import Count

from compaction.context.align import AlignedOp, AlignedStep, StepAction, actions, align
from sessions.actions.assessments.assessments import ENGINE
from sessions.figures import UNKNOWN, duration, money, percent, tokens, whole
from sessions.models import Assessment, Block, Message, Revision, Run, Session
from sessions.models.record import tail
from sessions.models.record.values import StoredBlock, blocks_of

MOST_STEPS = 10_000
"""Most steps of a session that are aligned while a page waits."""

OPENING = 12
"""Messages at the start of a session among which its first message of a person is."""

FigureUnit = Literal["microusd", "tokens", "share", "count", "ms"]


class TooManySteps(ValueError):
    """A session has more than `MOST_STEPS` steps."""


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """One figure of both sessions; None if unknown. `estimated` and `at_least` say so of each
    side."""

    name: str
    title: str
    unit: FigureUnit
    a: float | None
    b: float | None
    estimated: tuple[bool, bool] = (False, False)
    at_least: tuple[bool, bool] = (False, False)

    @property
    def change(self) -> float | None:
        """By what share b differs from a; None if a side is unknown or only a lower bound."""
        if self.a is None or self.b is None or not self.a or any(self.at_least):
            return None
        return self.b / self.a - 1


def value_text(figure: ComparedFigure, at: Literal[0, 1]) -> str:
    """The value of side a (0) or b (1) for people, with ≈ or ≥ where it is not exact."""
    value = (figure.a, figure.b)[at]
    if value is None:
        return UNKNOWN
    sign = "≥ " if figure.at_least[at] else "≈" if figure.estimated[at] else ""
    return sign + _WRITTEN[figure.unit](value)


_WRITTEN: Mapping[FigureUnit, Callable[[float], str]] = {
    "microusd": lambda value: money(round(value)),
    "tokens": lambda value: tokens(round(value)),
    "share": percent,
    "count": lambda value: whole(round(value)),
    "ms": lambda value: duration(value / 1000),
}


@dataclass(frozen=True, slots=True)
class ComparedStep:
    """What the model did at a step in one line, whether a call failed, and the reported prompt
    (tokens) and cost (micro-dollars) of the step; None if not reported."""

    step: int
    what: str
    failed: bool
    prompt: int | None
    cost: int | None


@dataclass(frozen=True)
class Comparison:
    """Two sessions: figures, steps by number, and the aligned steps of both in order. Of one
    session, `runs` are the two that are compared."""

    a: Session
    b: Session
    figures: tuple[ComparedFigure, ...]
    steps_a: Mapping[int, ComparedStep]
    steps_b: Mapping[int, ComparedStep]
    rows: tuple[AlignedStep, ...]
    same_task: bool
    runs: tuple[Run, Run] | None = None

    @cached_property
    def counts(self) -> dict[AlignedOp, int]:
        """How many rows there are of each kind."""
        found = Counter(row.op for row in self.rows)
        return {op: found[op] for op in get_args(AlignedOp)}

    @cached_property
    def parting(self) -> int | None:
        """The place of the first row with other calls, or a step of one session; None without."""
        alike = ("same", "reworded")
        return next((at for at, row in enumerate(self.rows) if row.op not in alike), None)

    def figure(self, name: str) -> ComparedFigure:
        """The figure with that name."""
        return next(one for one in self.figures if one.name == name)


def compare(a: Session, b: Session) -> Comparison:
    """Align two sessions and compare their figures. Raises TooManySteps, MissingBlob, DamagedBlob.

    Reads the model's own blocks of both with their texts, and no others.
    """
    check_size(a)
    check_size(b)
    (did_a, steps_a), (did_b, steps_b) = steps_of(a), steps_of(b)
    rows = tuple(align(did_a, did_b))
    return Comparison(a, b, tuple(_figures(a, b)), steps_a, steps_b, rows, _same_task(a, b))


def check_size(session: Session) -> None:
    """Raise TooManySteps if it cannot be compared while a page waits."""
    if session.step_count > MOST_STEPS:
        raise TooManySteps(
            f"{session} has {session.step_count:,} steps; at most {MOST_STEPS:,} can be compared."
        )


def _own_words(row: StoredBlock) -> bool:
    return row.role == "assistant" and row.type in ("tool_use", "text")


def steps_of(
    session: Session, run: Run | None = None
) -> tuple[list[StepAction], dict[int, ComparedStep]]:
    """What the model did at each step, with the figures of a run (default: recorded)."""
    blocks = list(blocks_of(session, with_text=_own_words))
    did = actions(blocks)
    failed_calls = {one.tool_call for one in blocks if one.type == "tool_result" and one.error}
    failed = {
        one.born - 1 for one in blocks if one.type == "tool_use" and one.tool_call in failed_calls
    }
    previews = _previews(session)
    run = run or Run.objects.filter(session=session, origin=Run.Origin.RECORDED).first()
    columns = tail.figures(tail.stored(run)).steps if run is not None else {}
    prompts, costs = columns.get("prompt", []), columns.get("cost", [])
    return did, {
        one.step: ComparedStep(
            one.step,
            _what(previews.get(one.step, []), calls=len(one.tools)),
            one.step in failed,
            prompts[one.step - 1] if one.step <= len(prompts) else None,
            costs[one.step - 1] if one.step <= len(costs) else None,
        )
        for one in did
    }


def _previews(session: Session) -> dict[int, list[str]]:
    """The first line of each of the model's blocks by step, calls before words."""
    own = Block.objects.filter(
        session=session, message__role="assistant", type__in=("tool_use", "text")
    )
    found: dict[int, list[str]] = {}
    rows = own.order_by("position").values_list("born", "type", "preview")
    for born, _, preview in sorted(rows, key=lambda row: (row[0], row[1] != "tool_use")):
        found.setdefault(max(born - 1, 1), []).append(preview)
    return found


def _what(previews: list[str], *, calls: int) -> str:
    first = previews[0] if previews else ""
    return f"{first} (+{calls - 1})" if calls > 1 else first


def _figures(a: Session, b: Session) -> list[ComparedFigure]:
    both = (a, b)
    rated = Assessment.objects.filter(session__in=both, engine__gte=ENGINE)
    found = {row.session_id: row for row in rated}
    assessed = found.get(a.pk), found.get(b.pk)
    managed = _compactions_managed(both)

    def figure(
        name: str,
        title: str,
        unit: FigureUnit,
        values: Iterable[float | None],
        estimated: tuple[bool, bool] = (False, False),
        at_least: tuple[bool, bool] = (False, False),
    ) -> ComparedFigure:
        of_a, of_b = values
        return ComparedFigure(name, title, unit, of_a, of_b, estimated, at_least)

    def usage(name: str) -> list[float | None]:
        return [getattr(one, name) if one.usage_calls else None for one in both]

    lower, rough = (a.cost_is_bound, b.cost_is_bound), (True, True)
    unmeasured = not a.peak_measured, not b.peak_measured
    compactions = [one.compaction_count + managed.get(one.pk, 0) for one in both]
    losses = [row.losses_microusd if row else None for row in assessed]
    return [
        figure("cost", "Cost", "microusd", [one.cost_microusd for one in both], at_least=lower),
        figure("recall", "Needed facts in context", "share", map(recall_of, assessed), rough),
        figure("steps", "Steps", "count", [one.step_count for one in both]),
        figure("failures", "Failed tool calls", "count", [one.error_count for one in both]),
        figure("losses", "Cost of losses", "microusd", losses, rough),
        figure("compactions", "Compactions", "count", compactions),
        figure("peak", "Largest context", "tokens", [one.peak_tokens for one in both], unmeasured),
        figure("uncached", "Uncached tokens", "tokens", usage("uncached_tokens")),
        figure("read", "Cache read tokens", "tokens", usage("cache_read_tokens")),
        figure("write", "Cache write tokens", "tokens", usage("cache_write_tokens")),
        figure("output", "Output tokens", "tokens", usage("output_tokens")),
        figure("duration", "Duration", "ms", map(_duration, both)),
    ]


def _compactions_managed(sessions: Iterable[Session]) -> dict[object, int]:
    found = Revision.objects.filter(
        run__session__in=sessions, run__origin=Run.Origin.MANAGED, edits__strategy="compact"
    )
    return dict(found.values_list("run__session").annotate(Count("pk", distinct=True)))


def recall_of(row: Assessment | None) -> float | None:
    """The share of needed facts that were in context; None if unknown."""
    if row is None or not row.needs or row.in_context is None:
        return None
    return row.in_context / row.needs


def _duration(session: Session) -> int | None:
    if session.started_at is None or session.ended_at is None:
        return None
    return session.ended_at - session.started_at


def _same_task(a: Session, b: Session) -> bool:
    if a.task and a.task == b.task:
        return True
    first = first_words([a, b])
    return first.get(a.pk) is not None and first.get(a.pk) == first.get(b.pk)


def first_words(sessions: list[Session]) -> dict[object, str]:
    """The digest of the first message of a person in each session."""
    rows = Message.objects.filter(session__in=sessions, human=True, seq__lte=OPENING)
    found: dict[object, str] = {}
    for session, digest in rows.order_by("seq").values_list("session_id", "digest"):
        found.setdefault(session, digest)
    return found
