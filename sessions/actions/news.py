"""What is stored of a session beyond what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from compaction import edits
from compaction.cache.moments import WRITES, Placed, Since, is_program
from compaction.context import KINDS
from compaction.session import Call, Usage
from sessions.actions.figures import error_rows, turn_starts
from sessions.models import Revision, Run, ServedContext, Session, delta
from sessions.models.manifest import Extent, Row

_KIND = {kind: index for index, kind in enumerate(KINDS)}
RECORDED, SERVED = Run.Origin.RECORDED.value, Run.Origin.SERVED.value
_POSITION, _FROM, _TO, _KIND_OF, _TOKENS, _MESSAGE, _EDIT, _CLOSED = 0, 1, 3, 4, 5, 6, -2, -1
"""Places in a row of `manifest.COLUMNS`."""


@dataclass(frozen=True, slots=True)
class News:
    """Rows beyond a tally's, by run where they are of one.

    `entries` are new ones and those closed since; `calls` model calls by step, each with the id
    of its row and the cost that is stored there; `served` steps whose prompt we had handed out,
    each with the tokens recited in it; `starts` turns by the step that began them; `images` and
    `changing` positions of images, and of tool calls that change a file of a program.
    """

    runs: Mapping[str, Run]
    entries: Mapping[str, tuple[list[Row], list[Row]]]
    calls: Sequence[tuple[Call, int, int | None]]
    served: Mapping[int, int]
    revisions: Mapping[str, list[Revision]]
    starts: Mapping[int, list[int]]
    errors: Sequence[tuple[int, str]]
    images: frozenset[int]
    changing: frozenset[int]

    def calls_between(self, after: int, last: int) -> list[Call]:
        """Calls of the steps after one up to another."""
        return [call for call, *_ in self.calls if after < call.step <= last]

    def saw_served(self, before: bool, after: int, last: int) -> set[int]:
        """The steps at which the model saw the served context; of a call that says nothing, and
        of one to come, what the step before says (`before` at first)."""
        reported = {call.step for call, *_ in self.calls if call.usage is not None}
        found: set[int] = set()
        for step in range(after + 1, last + 1):
            before = step in self.served or (before and step not in reported)
            if before:
                found.add(step)
        return found

    @property
    def born(self) -> Iterator[tuple[int, int, int]]:
        """Step of birth, kind and o200k tokens of the recorded run's new entries."""
        for row in self.entries[RECORDED][0]:
            yield max(row[_FROM], 1), _KIND[row[_KIND_OF]], row[_TOKENS]

    def changes(self, origin: str) -> Iterator[tuple[int, int, int]]:
        """Step, kind and o200k tokens of what came (positive) and left (negative)."""
        fresh, closed = self.entries[origin]
        for row in fresh:
            yield max(row[_FROM], 1), _KIND[row[_KIND_OF]], row[_TOKENS]
        for row in (*fresh, *closed):
            if row[_TO]:
                yield max(row[_TO], 1), _KIND[row[_KIND_OF]], -row[_TOKENS]

    def moved(self) -> Iterator[tuple[int, int, int]]:
        """Of recorded entries: the revisions that opened and closed each, and its o200k tokens."""
        fresh, closed = self.entries[RECORDED]
        for row in fresh:
            yield row[_EDIT], row[_CLOSED], row[_TOKENS]
        for row in closed:
            yield 0, row[_CLOSED], row[_TOKENS]

    def since(self, origin: str, after: int, last: int) -> dict[int, Since]:
        """What happened to a run's context at each step after one up to another."""
        found: dict[int, Since] = {}
        fresh, closed = self.entries[origin]
        for row in fresh:
            if row[_FROM] != row[_TO]:
                found.setdefault(max(row[_FROM], 1), Since()).opens.append(self._placed(row))
        for row in (*fresh, *closed):
            if row[_TO] and row[_FROM] != row[_TO]:
                found.setdefault(max(row[_TO], 1), Since()).closes.append(row[_POSITION])
        for step in self.starts:
            found.setdefault(max(step, 1), Since()).human = True
        for of, revisions in self.revisions.items():
            for one in revisions:
                # Other tools and another system prompt are sent with either run's context.
                if of == origin or (of == RECORDED and one.trigger == "setup"):
                    told = _revision(one, number=one.number if of == origin else 0)
                    found.setdefault(one.step, Since()).revisions.append(told)
        return {step: one for step, one in found.items() if after < step <= last}

    def _placed(self, row: Row) -> Placed:
        position, revised = row[_POSITION], bool(row[_EDIT])
        return Placed(
            position,
            image=position in self.images and not revised,
            thinking=row[_KIND_OF] == "thinking",
            wrote=position in self.changing and not revised,
            revised=revised,
        )

    @property
    def lowest(self) -> int:
        """The lowest step that any of this changes."""
        fresh = [max(row[_FROM], 1) for rows, _ in self.entries.values() for row in rows]
        revised = [row.step for rows in self.revisions.values() for row in rows]
        return min([*fresh, *revised], default=1 << 31)

    def divide(self, after: int, limit: int) -> tuple[int, int, int] | None:
        """The last step up to `limit` that parts these originals cleanly, if any after `after`:
        that step, the position of the first original born later, and the last message before."""
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
    """What came after a step and after an extent of each run, up to what these rows say.

    More may be stored meanwhile; it is left to the next time.
    """
    entries = {
        origin: delta.news(run, extent[origin], Extent(session.block_count, run.head))
        for origin, run in runs.items()
    }
    rows = list(
        session.calls.filter(step__gt=step, step__lte=session.step_count)
        .order_by("step")
        .values_list(*_CALL, "id", "cost_microusd", "context")
    )
    new = session.blocks.filter(position__gte=extent[RECORDED].blocks)
    writes = new.filter(type="tool_use", file_action__in=WRITES)
    written = writes.values_list("position", "file_path")
    recited = _recited(runs[SERVED], step) if SERVED in runs else None
    revisions = {
        origin: list(
            run.revisions.filter(number__gt=extent[origin].head, number__lte=run.head)
            .order_by("number")
            .prefetch_related("edits__summary")
        )
        for origin, run in runs.items()
    }
    return News(
        runs,
        entries,
        [(_call(row), row[-3], row[-2]) for row in rows],
        {} if recited is None else {row[0]: recited.get(row[-1], 0) for row in rows if row[-1]},
        revisions,
        turn_starts(session, seq),
        error_rows(session, extent[RECORDED].blocks),
        frozenset(new.filter(type="image").values_list("position", flat=True)),
        frozenset(position for position, path in written if is_program(path)),
    )


def _revision(row: Revision, number: int) -> edits.Revision:
    made = tuple(edits.Edit(edit.strategy, (), None, "") for edit in row.edits.all())
    trigger: edits.Trigger = row.trigger  # type: ignore[assignment]
    return edits.Revision(number, row.step, trigger, made, 0, 0)


def _recited(run: Run, after: int) -> dict[str, int]:
    """What was recited in contexts that were handed out for the steps after one, by their id."""
    found = ServedContext.objects.filter(run=run, step__gt=after, recited__gt=0)
    return dict(found.values_list("pk", "recited"))


_CALL = (
    *("step", "model", "at", "settings", "client"),
    *("fresh", "cache_read", "cache_write_5m", "cache_write_1h", "output"),
)


def _call(row: tuple[Any, ...]) -> Call:
    """A row of `_CALL` as a value; what was reported of reasoning is no matter here."""
    step, model, at, settings, client, fresh, *others = row[: len(_CALL)]
    usage = None if fresh is None else Usage(fresh, *(number or 0 for number in others))
    return Call(step, model, at, usage, settings, client)
