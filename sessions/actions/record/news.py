"""Records of a session that are newer than a tally."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from django.db.models import Q

from compaction.context import edits as values
from compaction.context.blocks import KINDS
from compaction.context.iterations import unpacked
from compaction.context.session import Call, Usage
from compaction.simulation.moments import WRITES, ContextChange, Placed, is_program, is_search
from compaction.token_ratio import Added, added
from sessions.actions.record.figures import turn_starts
from sessions.models import Block, Edit, ManagedContext, ModelCall, Revision, Run, Session
from sessions.models.record import delta
from sessions.models.record.manifest import Extent, Row
from sessions.models.web.statements import Statement, given_int, given_uuid

_KIND = {kind: index for index, kind in enumerate(KINDS)}
RECORDED, MANAGED = Run.Origin.RECORDED.value, Run.Origin.MANAGED.value
_POSITION, _FROM, _TO, _KIND_OF, _TOKENS, _MESSAGE, _EDIT, _CLOSED = 0, 1, 3, 4, 5, 6, -2, -1
"""Indexes in a row of `manifest.COLUMNS`."""


@dataclass(frozen=True, slots=True)
class News:
    """New rows since a tally, by run where applicable.

    `entries` are new and newly closed ones; `calls` model calls by step, with row id and stored
    cost; `managed` maps steps with a managed context to the recited tokens; `starts` are turns by
    the step that began them; `images`, `documents`, `changing` and `others` are positions of
    images, of documents, of tool calls that change program files, and of blocks of unknown types.
    """

    runs: Mapping[str, Run]
    entries: Mapping[str, tuple[list[Row], list[Row]]]
    calls: Sequence[tuple[Call, int, int | None]]
    managed: Mapping[int, int]
    revisions: Mapping[str, list[Revision]]
    starts: Mapping[int, list[int]]
    errors: Sequence[tuple[int, str]]
    images: frozenset[int]
    documents: frozenset[int]
    changing: frozenset[int]
    others: frozenset[int]

    def calls_between(self, after: int, last: int) -> list[Call]:
        """Calls of the steps in (after, last]."""
        return [call for call, *_ in self.calls if after < call.step <= last]

    def saw_managed(self, before: bool, after: int, last: int) -> set[int]:
        """Steps at which the model saw the managed context. Calls without a report, and future
        ones, inherit from the previous step (`before` at first)."""
        reported = {call.step for call, *_ in self.calls if call.usage is not None}
        found: set[int] = set()
        for step in range(after + 1, last + 1):
            before = step in self.managed or (before and step not in reported)
            if before:
                found.add(step)
        return found

    @property
    def born(self) -> Iterator[tuple[int, int, int]]:
        """Step of birth, kind and o200k tokens of new recorded entries."""
        for row in self.entries[RECORDED][0]:
            yield max(row[_FROM], 1), _KIND[row[_KIND_OF]], row[_TOKENS]

    def added(self) -> dict[int, Added]:
        """What each step adds to the prompt, as far as a token ratio can be learned from it."""
        apart = self.images | self.documents | self.others
        found: dict[int, list[tuple[str, int]]] = {}
        for row in self.entries[RECORDED][0]:
            kind = "other" if row[_POSITION] in apart or row[_KIND_OF] == "tools" else "text"
            form = "thinking" if row[_KIND_OF] == "thinking" else kind
            found.setdefault(max(row[_FROM], 1), []).append((form, row[_TOKENS]))
        return {step: added(blocks) for step, blocks in found.items()}

    def changes(self, origin: str) -> Iterator[tuple[int, int, int]]:
        """Step, kind and o200k tokens of entries added (positive) and removed (negative)."""
        fresh, closed = self.entries[origin]
        for row in fresh:
            yield max(row[_FROM], 1), _KIND[row[_KIND_OF]], row[_TOKENS]
        for row in (*fresh, *closed):
            if row[_TO]:
                yield max(row[_TO], 1), _KIND[row[_KIND_OF]], -row[_TOKENS]

    def moved(self) -> Iterator[tuple[int, int, int]]:
        """Recorded entries: opening and closing revision, and o200k tokens."""
        fresh, closed = self.entries[RECORDED]
        for row in fresh:
            yield row[_EDIT], row[_CLOSED], row[_TOKENS]
        for row in closed:
            yield 0, row[_CLOSED], row[_TOKENS]

    def since(self, origin: str, after: int, last: int) -> dict[int, ContextChange]:
        """Changes of a run's context at each step in (after, last]."""
        found: dict[int, ContextChange] = {}
        fresh, closed = self.entries[origin]
        for row in fresh:
            if row[_FROM] != row[_TO]:
                found.setdefault(max(row[_FROM], 1), ContextChange()).opens.append(
                    self._placed(row)
                )
        for row in (*fresh, *closed):
            if row[_TO] and row[_FROM] != row[_TO]:
                found.setdefault(max(row[_TO], 1), ContextChange()).closes.append(row[_POSITION])
        for step in self.starts:
            found.setdefault(max(step, 1), ContextChange()).human = True
        for of, revisions in self.revisions.items():
            for one in revisions:
                # Changed tools and system prompts are sent with either run's context.
                if of == origin or (of == RECORDED and one.trigger == "setup"):
                    entry = _revision(one, number=one.number if of == origin else 0)
                    found.setdefault(one.step, ContextChange()).revisions.append(entry)
        return {step: one for step, one in found.items() if after < step <= last}

    def _placed(self, row: Row) -> Placed:
        position, revised = row[_POSITION], bool(row[_EDIT])
        return Placed(
            position,
            image=position in self.images and not revised,
            thinking=row[_KIND_OF] == "thinking",
            wrote=position in self.changing and not revised,
            revised=revised,
            searched=position in self.others and is_search("other", row[_KIND_OF]),
        )

    @property
    def lowest(self) -> int:
        """The lowest step affected by these rows."""
        fresh = [max(row[_FROM], 1) for rows, _ in self.entries.values() for row in rows]
        revised = [row.step for rows in self.revisions.values() for row in rows]
        return min([*fresh, *revised], default=1 << 31)

    def divide(self, after: int, limit: int) -> tuple[int, int, int] | None:
        """The last step in (after, limit] that divides these originals cleanly: that step, the
        position of the first original born later, and the last message before. None if there is
        none."""
        originals = [row for row in self.entries[RECORDED][0] if not row[_EDIT]]
        born = [max(row[_FROM], 1) for row in originals]
        most = list(accumulate(born, max))
        least = list(accumulate(reversed(born), min))[::-1]
        for i in range(len(originals) - 1, 0, -1):
            step = least[i] - 1
            if after < step <= limit and most[i - 1] <= step:
                return step, originals[i][_POSITION], originals[i][_MESSAGE] - 1
        return None


def read_news(
    session: Session, runs: Mapping[str, Run], step: int, extent: Mapping[str, Extent], seq: int
) -> News:
    """Read the rows after a step and after an extent of each run.

    Rows stored meanwhile are left to the next run.
    """
    entries = {
        origin: delta.news(run, extent[origin], Extent(session.block_count, run.head))
        for origin, run in runs.items()
    }
    rows = _CALLS.rows(session=session.pk, after=step, last=session.step_count)
    first = extent[RECORDED].blocks
    recited = _recited(runs[MANAGED], step) if MANAGED in runs else None
    revisions = {origin: _revisions(run, extent[origin].head) for origin, run in runs.items()}
    marked = _MARKED.rows(session=session.pk, first=first)
    return News(
        runs,
        entries,
        [(_call(row), row[-3], row[-2]) for row in rows],
        {} if recited is None else {row[0]: recited.get(row[-1], 0) for row in rows if row[-1]},
        revisions,
        turn_starts(session, seq),
        [(born, preview) for _, born, _, error, _, _, preview in marked if error],
        frozenset(position for position, _, type, *_ in marked if type == "image"),
        frozenset(position for position, _, type, *_ in marked if type == "document"),
        frozenset(
            position
            for position, _, type, _, action, path, _ in marked
            if type == "tool_use" and action in WRITES and is_program(path)
        ),
        frozenset(position for position, _, type, *_ in marked if type == "other"),
    )


def _revisions(run: Run, after: int) -> list[Revision]:
    """A run's revisions after a number, with their edits."""
    if run.head <= after:
        return []
    place = {"run": run.pk, "after": after, "last": run.head}
    found: list[Revision] = _REVISIONS.rows(**place)
    edits: dict[int, list[Edit]] = {row.pk: [] for row in found}
    for edit in _EDITS.rows(**place):
        edits[edit.revision_id].append(edit)
    for row in found:
        row._prefetched_objects_cache = {"edits": edits[row.pk]}  # type: ignore[attr-defined]
    return found


_REVISIONS = Statement(
    lambda: (
        Revision.objects.defer("parameters")
        .filter(
            run_id=given_uuid("run"), number__gt=given_int("after"), number__lte=given_int("last")
        )
        .order_by("number")
    )
)
_EDITS = Statement(
    lambda: (
        Edit.objects.select_related("summary")
        .filter(
            revision__run_id=given_uuid("run"),
            revision__number__gt=given_int("after"),
            revision__number__lte=given_int("last"),
        )
        .order_by("revision__number", "index")
    )
)


def _revision(row: Revision, number: int) -> values.Revision:
    made = tuple(values.Edit(edit.strategy, (), None, "") for edit in row.edits.all())
    trigger: values.Trigger = row.trigger  # type: ignore[assignment]
    return values.Revision(number, row.step, trigger, made, 0, 0)


def _recited(run: Run, after: int) -> dict[str, int]:
    """Recited tokens of managed contexts for later steps, by id."""
    return dict(_RECITED.rows(run=run.pk, after=after))


_CALL = (
    *("step", "model", "at", "settings", "client", "dropped"),
    *("uncached", "cache_read", "cache_write_5m", "cache_write_1h", "output", "iterations"),
)


_CALLS = Statement(
    lambda: (
        ModelCall.objects.filter(
            session_id=given_uuid("session"),
            step__gt=given_int("after"),
            step__lte=given_int("last"),
        )
        .order_by("step")
        .values_list(*_CALL, "id", "cost_microusd", "context")
    )
)
_RECITED = Statement(
    lambda: ManagedContext.objects.filter(
        run_id=given_uuid("run"), step__gt=given_int("after"), recited__gt=0
    ).values_list("pk", "recited")
)
_MARKED = Statement(
    lambda: (
        Block.objects.filter(
            Q(error=True)
            | Q(type__in=("image", "document", "other"))
            | Q(type="tool_use", file_action__in=list(WRITES)),
            session_id=given_uuid("session"),
            position__gte=given_int("first"),
        )
        .order_by("position")
        .values_list("position", "born", "type", "error", "file_action", "file_path", "preview")
    )
)
"""Blocks that the timeline, the cache or the token ratio treats differently."""


def _call(row: tuple[Any, ...]) -> Call:
    """A row of `_CALL` as a value, without reasoning tokens."""
    step, model, at, settings, client, dropped, uncached, *others, stored = row[: len(_CALL)]
    usage = None
    if uncached is not None:
        read, five, hour, output = (number or 0 for number in others)
        usage = Usage(uncached, read, five, hour, output, iterations=unpacked(stored))
    return Call(step, model, at, usage, settings, client, dropped or 0)
