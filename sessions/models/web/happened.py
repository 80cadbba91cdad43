"""When sessions happened, in queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db.models import BigIntegerField, DateTimeField, F, Func, Q, QuerySet
from django.db.models.functions import Coalesce
from django.db.models.lookups import GreaterThanOrEqual, LessThan

from sessions.models.web.statements import Given, Statement, given_int


class _Milliseconds(Func):
    """A datetime as whole seconds since the epoch, in ms."""

    output_field = BigIntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        template = "CAST(strftime('%%%%s', %(expressions)s) AS INTEGER) * 1000"
        return self.as_sql(compiler, connection, template=template, **extra)

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        template = "CAST(FLOOR(EXTRACT(EPOCH FROM %(expressions)s)) AS BIGINT) * 1000"
        return self.as_sql(compiler, connection, template=template, **extra)


def happened(path: str = "") -> Coalesce:
    """When a session happened, in ms: its last step, or its arrival if its log has no times.

    `path` leads from the row to its session, as in "run__session__".
    """
    return Coalesce(F(f"{path}ended_at"), _Milliseconds(F(f"{path}created")))


class OrElse(Func):
    """A column, or a number where it is null: the number is in the text, as in an index's."""

    template = "COALESCE(%(expressions)s, %(number)s)"
    output_field = BigIntegerField()

    def __init__(self, expression: Any, number: int) -> None:
        super().__init__(expression, number=number)


class OwnFirst(Func):
    """When the last step of a session happened, in ms, the demo's after everything else."""

    template = f"COALESCE(%(expressions)s THEN {10**15} ELSE 0 END"
    arg_joiner = ", 0) - CASE WHEN "
    output_field = BigIntegerField()


class Fill(Func):
    """A peak in millionths of a window; -1 if the window is unknown."""

    template = "COALESCE(CAST(1000000 AS bigint) * %(expressions)s, 0), -1)"
    arg_joiner = " / NULLIF("
    output_field = BigIntegerField()


def ended(path: str = "") -> OrElse:
    """When the last step of a session happened, in ms; 0 if its log has no times."""
    return OrElse(F(f"{path}ended_at"), 0)


def happened_in(ranges: Iterable[tuple[int | Given, int | Given]], path: str = "") -> Q:
    """Sessions that happened in one of these [since, until), in a form that indexes serve."""
    found = Q(pk__in=[])
    for since, until in ranges:
        timed = Q(GreaterThanOrEqual(ended(path), since), LessThan(ended(path), until))
        timed &= Q(**{f"{path}ended_at__isnull": False})
        arrived = {"gte": _second(since), "lt": _second(until)}
        found |= timed | Q(
            **{f"{path}ended_at": None},
            **{f"{path}created__{side}": at for side, at in arrived.items()},
        )
    return found


def _second(ms: int | Given) -> datetime | Given:
    """The whole second from which a rounded-down arrival is not before `ms`."""
    if isinstance(ms, Given):
        return Given(f"{ms.name}_second", DateTimeField())
    return datetime.fromtimestamp(-(-ms // 1000), UTC)


class StatementIn:
    """A query for sessions of several times; `build` gets these for `happened_in`.

    It is composed once for each power of two, and the last time is repeated to fill that number.
    """

    def __init__(
        self, build: Callable[[Sequence[tuple[Given, Given]]], QuerySet[Any, Any]]
    ) -> None:
        self._build = build
        self._sized: dict[int, Statement] = {}

    def rows(self, ranges: Sequence[tuple[int, int]], **given: Any) -> list[Any]:
        """The rows of all these times; none without any."""
        if not ranges:
            return []
        size = 1 << (len(ranges) - 1).bit_length()
        for number in range(size):
            pair = ranges[min(number, len(ranges) - 1)]
            for side, ms in zip(("since", "until"), pair, strict=True):
                given[f"{side}_{number}"] = ms
                given[f"{side}_{number}_second"] = _second(ms)
        return self._of(size).rows(**given)

    def _of(self, size: int) -> Statement:
        if size not in self._sized:
            named = [(given_int(f"since_{i}"), given_int(f"until_{i}")) for i in range(size)]
            self._sized[size] = Statement(lambda: self._build(named))
        return self._sized[size]
